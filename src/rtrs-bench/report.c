/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user sees: on a terminal the progress of the load, and its result. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <jansson.h>

#include "cleanup.h"
#include "ctl-json.h"
#include "bench.h"

/* ---- stderr: the cursor stands behind the shown text ---- */

#define CLEAR "\r\033[K"		/* go to the beginning of the line, and clear the line */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool shown;

bool report_progress_possible(void)
{
	return isatty(STDERR_FILENO);
}

void report_progress(const char *text)
{
	LOCK_SCOPE(&lock);
	fprintf(stderr, CLEAR "%s", text);
	shown = true;
}

static void line_clear(void)
{
	if (shown)
		fputs(CLEAR, stderr);
	shown = false;
}

void report_progress_end(void)
{
	LOCK_SCOPE(&lock);
	line_clear();
}

void report_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	LOCK_SCOPE(&lock);
	line_clear();
	fprintf(stderr, "rtrs-bench: %s\n", line);
}

/* ---- the result ---- */

static const char *const sides[LOAD_NDIRS] = { [LOAD_READ] = "read", [LOAD_WRITE] = "write" };

static double load_seconds(const struct load *l)
{
	return l->elapsed_ns ? (double)l->elapsed_ns / 1e9 : 1;
}

static uint64_t load_ios(const struct load *l)
{
	return l->side[LOAD_READ].ios + l->side[LOAD_WRITE].ios;
}

/* CPU time of an IO. */
static double cpu_us(const struct load *l)
{
	return load_ios(l) ? (double)l->cpu_ns / 1e3 / (double)load_ios(l) : 0;
}

static void print_time(uint64_t ns)
{
	char text[LAT_TEXT_MAX];

	printf("  %9s", lat_text(ns, text));
}

static void print_side(const struct load *l, unsigned dir)
{
	const struct load_side *side = &l->side[dir];
	double rate = (double)side->ios / load_seconds(l);

	printf("%-5s %11" PRIu64 " %9.0f %9.1f", sides[dir], side->ios, rate,
	       rate * l->conf.block / 1e6);
	print_time(lat_mean(&side->lat));
	print_time(lat_quantile(&side->lat, 500));
	print_time(lat_quantile(&side->lat, 990));
	print_time(lat_quantile(&side->lat, 999));
	print_time(side->lat.max_ns);
	putchar('\n');
}

void report_text(const struct options *o, const struct load *l)
{
	printf("%s of %s: %s, %" PRIu32 " bytes, %u in flight, %.2f s, CPU %.2f us/IO here\n",
	       o->session.export_name, o->session.server,
	       l->conf.random ? "random" : "sequential", l->conf.block, l->conf.depth,
	       load_seconds(l), cpu_us(l));
	printf("%-5s %11s %9s %9s  %9s  %9s  %9s  %9s  %9s\n", "", "IOs", "IOPS", "MB/s", "mean",
	       "p50", "p99", "p99.9", "max");
	for (unsigned dir = 0; dir < LOAD_NDIRS; dir++) {
		if (l->side[dir].ios)
			print_side(l, dir);
	}
	if (l->conf.verify)
		printf("verified %" PRIu64 " blocks: %" PRIu64 " differ\n", l->verified,
		       l->differing);
}

static json_t *json_side(const struct load *l, unsigned dir)
{
	const struct load_side *side = &l->side[dir];
	double rate = (double)side->ios / load_seconds(l);

	return json_pack("{s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I}",
			 "ios", (json_int_t)side->ios,
			 "bytes", (json_int_t)side->ios * (json_int_t)l->conf.block,
			 "iops", rate, "bytes_per_s", rate * l->conf.block,
			 "mean_ns", (json_int_t)lat_mean(&side->lat),
			 "p50_ns", (json_int_t)lat_quantile(&side->lat, 500),
			 "p99_ns", (json_int_t)lat_quantile(&side->lat, 990),
			 "p999_ns", (json_int_t)lat_quantile(&side->lat, 999),
			 "max_ns", (json_int_t)side->lat.max_ns);
}

int report_json(const struct options *o, const struct load *l)
{
	json_t *root = json_pack("{s:o, s:o, s:b, s:i, s:I, s:i, s:f, s:f, s:o, s:o, s:I, s:I}",
				 "server", ctl_json_text(o->session.server),
				 "export", ctl_json_text(o->session.export_name),
				 "random", (int)l->conf.random,
				 "read_percent", (int)l->conf.read_percent,
				 "block", (json_int_t)l->conf.block, "iodepth", (int)l->conf.depth,
				 "elapsed_s", load_seconds(l), "cpu_us_per_io", cpu_us(l),
				 "read", json_side(l, LOAD_READ), "write", json_side(l, LOAD_WRITE),
				 "verified", (json_int_t)l->verified,
				 "differing", (json_int_t)l->differing);

	if (!root) {
		fputs("rtrs-bench: out of memory\n", stderr);
		return -ENOMEM;
	}
	json_dumpf(root, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(root);
	return 0;
}
