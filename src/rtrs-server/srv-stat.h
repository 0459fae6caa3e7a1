/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of IO: for each connection, whose path adds them up, and for each export on each thread.
 *
 * A request is counted by the thread that answers it, in memory that no other thread writes; the clock
 * is read once for all requests of a poll and once for all answers of a pass.  The control thread reads
 * the counters where they are, without a message to anybody: a thread that the storage holds would not
 * answer one, and then it is that one asks.  So what is read may miss requests that are being counted.
 * A reset remembers what was there and takes it away from what is read later. */
#ifndef SRV_STAT_H
#define SRV_STAT_H

#include <stdint.h>

#include "counter.h"
#include "hist.h"
#include "rnbd-msg.h"

struct export;
struct srv;
struct srv_path;

enum srv_stat_op {
	SRV_STAT_READ, SRV_STAT_WRITE, SRV_STAT_FLUSH, SRV_STAT_DISCARD, SRV_STAT_ZEROES,
	SRV_STAT_NOPS,			/* also: of no request for IO */
};

struct srv_stat_count {
	struct counter count, bytes, errors;	/* @bytes of those without an error */
	struct hist latency;		/* from arrival to answer */
};

struct srv_stat {			/* all 0: nothing was counted */
	struct srv_stat_count op[SRV_STAT_NOPS];
};

static inline enum srv_stat_op srv_stat_op(enum rnbd_io_op op)
{
	switch (op) {
	case RNBD_OP_READ:
		return SRV_STAT_READ;
	case RNBD_OP_WRITE:
		return SRV_STAT_WRITE;
	case RNBD_OP_FLUSH:
		return SRV_STAT_FLUSH;
	case RNBD_OP_WRITE_ZEROES:
		return SRV_STAT_ZEROES;
	default:
		return SRV_STAT_DISCARD;
	}
}

/* Count a request for @bytes, answered with @status after @ns.  The thread of @c. */
static inline void srv_stat_count(struct srv_stat_count *c, int status, uint64_t bytes, uint64_t ns)
{
	counter_add(&c->count, 1);
	if (status)
		counter_add(&c->errors, 1);
	else
		counter_add(&c->bytes, bytes);
	hist_count(&c->latency, ns);
}

/* ---- control thread ---- */

/* "read", ... */
const char *srv_stat_name(enum srv_stat_op op);
/* Room for all exports on all threads.  0 or -ENOMEM; srv_stat_fini() in any case. */
int srv_stat_init(struct srv *srv);
void srv_stat_fini(struct srv *srv);

/* What was counted since the last reset, into @sum. */
void srv_stat_path(const struct srv_path *path, struct srv_stat *sum);
void srv_stat_export(const struct srv *srv, const struct export *ex, struct srv_stat *sum);
/* 0 or -ENOMEM. */
int srv_stat_reset_path(struct srv_path *path);
int srv_stat_reset_export(struct srv *srv, const struct export *ex);

#endif
