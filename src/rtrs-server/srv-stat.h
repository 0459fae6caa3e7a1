/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of IO: for each connection, whose path adds them up, and for each export on each thread.
 *
 * A request is counted by the thread that answers it, in memory that no other thread writes; its
 * time is that from arrival to answer, and the clock is read once for all requests of a poll and
 * once for all answers of a pass.  The control thread reads the counters where they are, without a
 * message to anybody: a thread that the storage holds would not answer one, and then it is that one
 * asks.  So what is read may miss requests that are being counted.  A reset remembers what was
 * there and takes it away from what is read later. */
#ifndef SRV_STAT_H
#define SRV_STAT_H

#include <stdint.h>

#include "io-stat.h"
#include "rnbd-msg.h"

struct export;
struct srv;
struct srv_path;

static inline enum io_stat_op srv_stat_op(enum rnbd_io_op op)
{
	switch (op) {
	case RNBD_OP_READ:
		return IO_STAT_READ;
	case RNBD_OP_WRITE:
		return IO_STAT_WRITE;
	case RNBD_OP_FLUSH:
		return IO_STAT_FLUSH;
	case RNBD_OP_WRITE_ZEROES:
		return IO_STAT_ZEROES;
	case RNBD_OP_EXTENTS:
		return IO_STAT_NOPS;	/* no IO */
	default:
		return IO_STAT_DISCARD;
	}
}

/* ---- control thread ---- */

/* Room for all exports on all threads.  0 or -ENOMEM; srv_stat_fini() in any case. */
int srv_stat_init(struct srv *srv);
void srv_stat_fini(struct srv *srv);

/* What was counted since the last reset, into @sum. */
void srv_stat_path(const struct srv_path *path, struct io_stat *sum);
void srv_stat_export(const struct srv *srv, const struct export *ex, struct io_stat *sum);
/* 0 or -ENOMEM. */
int srv_stat_reset_path(struct srv_path *path);
int srv_stat_reset_export(struct srv *srv, const struct export *ex);

#endif
