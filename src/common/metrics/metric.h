/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a program as a table, and the text of a table for Prometheus and for readers of
 * OpenMetrics.
 *
 *	static void read_exports(struct metric_out *out, const void *program)
 *	{
 *		metric_value(out, NULL, ((const struct server *)program)->nexports);
 *	}
 *
 *	static const struct metric rows[] = {
 *		{ .name = "rtrs_server_exports", .type = METRIC_GAUGE,
 *		  .help = "Exports offered to clients.", .read = read_exports },
 *		...
 *
 * A row is a family of metrics.  metric_text() calls read() of each row, and read() writes one
 * sample for each object of the program.  Values are whole numbers.  A time is read in nanoseconds,
 * and the text has seconds.  Labels may be texts that a peer chose: metric_text() masks and escapes
 * them.  Thread of the program's objects; keeps nothing. */
#ifndef METRIC_H
#define METRIC_H

#include <stddef.h>
#include <stdint.h>

#include "counter.h"

enum metric_type {
	METRIC_GAUGE,			/* goes up and down */
	METRIC_COUNTER,			/* grows from the start of the program on */
	METRIC_HISTOGRAM,		/* of times: metric_hist() */
	METRIC_INFO,			/* labels alone; the value is 1 */
	METRIC_TYPES
};

enum metric_unit {
	METRIC_NUMBER,
	METRIC_BYTES,
	METRIC_SECONDS,			/* read in nanoseconds */
	METRIC_UNITS
};

/* The two texts differ in the names of counters, in units, and in a last line. */
enum metric_format {
	METRIC_PROMETHEUS,		/* version 0.0.4; also for files of node_exporter */
	METRIC_OPENMETRICS,		/* version 1.0.0 */
	METRIC_FORMATS
};

struct metric_out;

struct metric {
	/* Ends in the unit, unless the unit is METRIC_NUMBER.  The text has "_total" behind the
	 * name of a counter, and "_info" behind the name of an info. */
	const char *name;
	enum metric_type type;
	enum metric_unit unit;
	const char *help;		/* one sentence without quotes and backslashes */
	void (*read)(struct metric_out *out, const void *program);
	unsigned what;			/* read()'s own, for rows that share a read() */
};

struct metric_table {
	const struct metric *rows;
	unsigned n;
};

#define METRIC_LABEL_MAX 512		/* bytes; a longer value is cut off */

struct metric_label {
	const char *name, *value;
};

/* The labels of a sample, for metric_value() and metric_hist(). */
#define METRIC_LABELS(...) ((const struct metric_label[]){ __VA_ARGS__, { NULL, NULL } })

/* Write a sample of the row that is being read.  @labels ends with a NULL name; NULL: no labels.
 * The value of METRIC_INFO is 1. */
void metric_value(struct metric_out *out, const struct metric_label *labels, uint64_t value);
/* Write the samples of a METRIC_HISTOGRAM: cumulative buckets, sum and count. */
void metric_hist(struct metric_out *out, const struct metric_label *labels, const struct hist *h);

/* metric.what of a row that calls metric_io(): the member of struct io_stat_count. */
enum metric_io {
	METRIC_IO_BYTES,
	METRIC_IO_ERRORS,
	METRIC_IO_LATENCY,		/* METRIC_HISTOGRAM */
};

/* Write a sample for each operation of the IO of an export, which has the labels @of, at most
 * METRIC_IO_LABELS. */
#define METRIC_IO_LABELS 2u
void metric_io(struct metric_out *out, const struct metric_label *of, const struct io_stat *stat);

/* The real-time clock in nanoseconds, for the start of a program. */
uint64_t metric_time_ns(void);
/* The row that is being read. */
const struct metric *metric_row(const struct metric_out *out);

/* The text of all rows of @table in @format, of *@len bytes, for the caller to free.  NULL: no
 * memory.  Each sample has the label process=@process, if that is not NULL. */
char *metric_text(const struct metric_table *table, const void *program, enum metric_format format,
		  const char *process, size_t *len);
/* The value of the header Content-Type for @format. */
const char *metric_content_type(enum metric_format format);

#endif
