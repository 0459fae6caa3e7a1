/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the text of metrics into memory.  Owns nothing.  A write that finds no memory marks the
 * stream, and the whole text is dropped at the end. */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "names.h"
#include "metric.h"

/* Buckets of the text, of those that struct hist has: up to 2^13 ns (8 us), and each power of two
 * up to 2^34 ns (17 s).  More buckets cost a reader a time series each. */
#define BUCKET_FIRST 12
#define BUCKET_LAST 33

#define NS_PER_S 1000000000u

struct metric_out {
	FILE *f;
	enum metric_format format;
	const char *process;		/* the first label of each sample; NULL: none */
	const struct metric *row;
};

static const char *const type_names[METRIC_FORMATS][METRIC_TYPES] = {
	[METRIC_PROMETHEUS] = {
		[METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter",
		[METRIC_HISTOGRAM] = "histogram", [METRIC_INFO] = "gauge",
	},
	[METRIC_OPENMETRICS] = {
		[METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter",
		[METRIC_HISTOGRAM] = "histogram", [METRIC_INFO] = "info",
	},
};

static const char *const unit_names[METRIC_UNITS] = {
	[METRIC_BYTES] = "bytes", [METRIC_SECONDS] = "seconds",
};

/* The end of the name of a sample, by the type of the family. */
static const char *const suffixes[METRIC_TYPES] = {
	[METRIC_GAUGE] = "", [METRIC_COUNTER] = "_total", [METRIC_HISTOGRAM] = "",
	[METRIC_INFO] = "_info",
};

const char *metric_content_type(enum metric_format format)
{
	static const char *const types[METRIC_FORMATS] = {
		[METRIC_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
		[METRIC_OPENMETRICS] =
			"application/openmetrics-text; version=1.0.0; charset=utf-8",
	};

	return types[format];
}

const struct metric *metric_row(const struct metric_out *out)
{
	return out->row;
}

uint64_t metric_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- values ---- */

/* Print @ns in seconds, exactly, without zeros at the end. */
static void put_seconds(FILE *f, uint64_t ns)
{
	char fraction[16];
	size_t n = (size_t)snprintf(fraction, sizeof(fraction), "%09u", (unsigned)(ns % NS_PER_S));

	while (n && fraction[n - 1] == '0')
		n--;
	fprintf(f, "%" PRIu64 "%s%.*s", ns / NS_PER_S, n ? "." : "", (int)n, fraction);
}

static void put_value(const struct metric_out *out, uint64_t value)
{
	if (out->row->unit == METRIC_SECONDS)
		put_seconds(out->f, value);
	else
		fprintf(out->f, "%" PRIu64, value);
	fputc('\n', out->f);
}

/* ---- labels ---- */

static void put_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', f);
		fputc(*text, f);
	}
}

/* A newline would end the sample, and readers refuse a text that is no UTF-8: mask both. */
static void put_label(FILE *f, const struct metric_label *label)
{
	char text[METRIC_LABEL_MAX];

	snprintf(text, sizeof(text), "%s", label->value);
	mask_control(text);
	fprintf(f, "%s=\"", label->name);
	put_escaped(f, text);
	fputc('"', f);
}

/* Print metric_out.process and all of @labels, and the open bracket in front.  Returns what is to
 * stand before the next label. */
static const char *put_labels(const struct metric_out *out, const struct metric_label *labels)
{
	const struct metric_label process = { "process", out->process };
	const char *before = "{";

	if (out->process) {
		fputs(before, out->f);
		put_label(out->f, &process);
		before = ",";
	}
	for (; labels && labels->name; labels++) {
		fputs(before, out->f);
		put_label(out->f, labels);
		before = ",";
	}
	return before;
}

static void put_name(const struct metric_out *out, const char *suffix,
		     const struct metric_label *labels)
{
	fprintf(out->f, "%s%s", out->row->name, suffix);
	if (*put_labels(out, labels) == ',')
		fputc('}', out->f);
	fputc(' ', out->f);
}

/* ---- samples ---- */

void metric_value(struct metric_out *out, const struct metric_label *labels, uint64_t value)
{
	put_name(out, suffixes[out->row->type], labels);
	put_value(out, value);
}

static void put_bucket(const struct metric_out *out, const struct metric_label *labels,
		       uint64_t below_ns, uint64_t n)
{
	FILE *f = out->f;

	fprintf(f, "%s_bucket", out->row->name);
	fprintf(f, "%sle=\"", put_labels(out, labels));
	if (below_ns == UINT64_MAX)
		fputs("+Inf", f);
	else
		put_seconds(f, below_ns);
	fprintf(f, "\"} %" PRIu64 "\n", n);
}

void metric_hist(struct metric_out *out, const struct metric_label *labels, const struct hist *h)
{
	uint64_t n = 0;

	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		n += counter_get(&h->n[b]);
		if (b >= BUCKET_FIRST && b <= BUCKET_LAST)
			put_bucket(out, labels, UINT64_C(2) << b, n);
	}
	put_bucket(out, labels, UINT64_MAX, n);
	put_name(out, "_sum", labels);
	put_value(out, counter_get(&h->sum_ns));
	put_name(out, "_count", labels);
	fprintf(out->f, "%" PRIu64 "\n", n);
}

void metric_io(struct metric_out *out, const struct metric_label *of, const struct io_stat *stat)
{
	struct metric_label labels[METRIC_IO_LABELS + 2] = { { NULL, NULL } };
	unsigned n = 0;

	for (; of[n].name; n++) {
		assert(n < METRIC_IO_LABELS);
		labels[n] = of[n];
	}
	for (unsigned op = 0; op < IO_STAT_NOPS; op++) {
		const struct io_stat_count *c = &stat->op[op];

		labels[n] = (struct metric_label){ "operation", io_stat_name(op) };
		switch ((enum metric_io)out->row->what) {
		case METRIC_IO_BYTES:
			metric_value(out, labels, counter_get(&c->bytes));
			break;
		case METRIC_IO_ERRORS:
			metric_value(out, labels, counter_get(&c->errors));
			break;
		case METRIC_IO_LATENCY:
			metric_hist(out, labels, &c->latency);
			break;
		}
	}
}

/* ---- the whole ---- */

static void put_row(struct metric_out *out)
{
	const struct metric *row = out->row;
	bool open = out->format == METRIC_OPENMETRICS;
	const char *suffix = open ? "" : suffixes[row->type];

	fprintf(out->f, "# HELP %s%s %s\n", row->name, suffix, row->help);
	fprintf(out->f, "# TYPE %s%s %s\n", row->name, suffix, type_names[out->format][row->type]);
	if (open && row->unit != METRIC_NUMBER)
		fprintf(out->f, "# UNIT %s %s\n", row->name, unit_names[row->unit]);
}

char *metric_text(const struct metric_table *table, const void *program, enum metric_format format,
		  const char *process, size_t *len)
{
	struct metric_out out = { .format = format, .process = process };
	char *text = NULL;
	bool failed;

	out.f = open_memstream(&text, len);
	if (!out.f)
		return NULL;
	for (unsigned i = 0; i < table->n; i++) {
		out.row = &table->rows[i];
		put_row(&out);
		out.row->read(&out, program);
	}
	if (format == METRIC_OPENMETRICS)
		fputs("# EOF\n", out.f);
	failed = ferror(out.f);
	failed |= fclose(out.f) != 0;
	if (!failed)
		return text;
	free(text);
	return NULL;
}
