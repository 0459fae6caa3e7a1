/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters that both ends keep of the IO of an export or a path. */
#ifndef BASE_IO_STAT_H
#define BASE_IO_STAT_H

#include "counter.h"
#include "hist.h"

enum io_stat_op {
	IO_STAT_READ, IO_STAT_WRITE, IO_STAT_FLUSH, IO_STAT_DISCARD, IO_STAT_ZEROES,
	IO_STAT_NOPS,			/* number of operations; as an operation: not IO */
};

struct io_stat_count {
	struct counter count, bytes, errors;	/* @bytes without failed requests */
	struct hist latency;
};

struct io_stat {			/* all 0: nothing was counted */
	struct io_stat_count op[IO_STAT_NOPS];
};

/* Count a request for @bytes that ended with @status after @ns.  The thread of @c. */
static inline void io_stat_count(struct io_stat_count *c, int status, uint64_t bytes, uint64_t ns)
{
	counter_add(&c->count, 1);
	if (status)
		counter_add(&c->errors, 1);
	else
		counter_add(&c->bytes, bytes);
	hist_count(&c->latency, ns);
}

/* The name of @op: "read", ... */
const char *io_stat_name(enum io_stat_op op);
/* Add @stat to @sum @times times, like hist_add(). */
void io_stat_add(struct io_stat *sum, const struct io_stat *stat, int times);

#endif
