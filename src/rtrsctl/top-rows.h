/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with their exports, sessions and paths, with what each has done in the last minutes: the
 * rows of "rtrsctl top".  Pure. */
#ifndef TOP_ROWS_H
#define TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "state.h"
#include "text.h"

#define TOP_KEPT 120			/* samples of a row */
#define TOP_STATE 12			/* columns of a state */

enum top_kind { TOP_PROGRAM, TOP_EXPORT, TOP_SESSION, TOP_PATH, TOP_NKINDS };
enum top_order { TOP_BY_NAME, TOP_BY_IOPS, TOP_BY_MBS, TOP_BY_P99, TOP_NORDERS };

struct top_row {
	enum top_kind kind;
	unsigned program;		/* the program's place in the sample, from 1 on */
	char *key;			/* the same in each answer, of no other row */
	char name[TEXT_CELL], state[TEXT_CELL];	/* safe for a terminal */
	enum health health;
	double mbs;			/* megabytes a second */
	/* the last @n samples, the newest last: requests a second, and nanoseconds, 0: no request
	 * or not known */
	unsigned n;
	double iops[TOP_KEPT], p99_ns[TOP_KEPT];
};

struct top {				/* all 0: empty */
	struct top_row *rows;
	size_t n;
	unsigned nprograms;
	struct top_row *old;		/* between top_rows_begin() and top_rows_end() */
	size_t nold;
};

/* Begin a sample: the rows are to come again. */
void top_rows_begin(struct top *top);
/* Add a program and its rows from two answers to "stats", @before and, later, @after.  Rows of the
 * last sample give the new rows their older samples.  False: no memory; some rows are missing. */
bool top_rows_add(struct top *top, const json_t *before, const json_t *after);
/* End the sample: rows that did not come again are gone. */
void top_rows_end(struct top *top);
/* Sort: by program; the program itself, exports, sessions, paths; in each of them by @order, names
 * from A on, values from the largest on; or @reverse. */
void top_rows_sort(struct top *top, enum top_order order, bool reverse);
/* Free all. */
void top_rows_fini(struct top *top);

/* The newest sample of @row. */
static inline double top_last(const struct top_row *row, const double samples[TOP_KEPT])
{
	return row->n ? samples[row->n - 1] : 0;
}

/* Draw the last @width of @n @samples as bars, the largest as high as the line, to the right end of
 * @width characters.  @utf8: as U+2581 to U+2588; else by ASCII characters that grow darker. */
void top_rows_spark(const double *samples, unsigned n, unsigned width, bool utf8, char *buf,
		    size_t len);

#endif
