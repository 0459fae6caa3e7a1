/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the IO of an export: each thread counts in its own copy, as each connection does
 * (srv-stat.h). */
#ifndef SRV_EXPORT_STAT_H
#define SRV_EXPORT_STAT_H

#include "conf-allow.h"
#include "export.h"
#include "io-stat.h"
#include "rnbd-msg.h"
#include "srv-limit.h"
#include "srv-rnbd-state.h"

/* The counter for @op. */
static inline enum io_stat_op srv_export_stat_op(enum rnbd_io_op op)
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

/* The counters, the limits, the rules and the priority of an export (export.user).  Exports with
 * the same name and the same store have them together: one may be listed, and the others are
 * removed and still in use. */
struct srv_export_stat {
	uint64_t id;			/* another one than all others of this server had */
	unsigned exports;		/* that have it; control thread */
	struct srv_limit limit;
	struct allow_list allow, read_only;	/* srv-allow.h; control thread */
	_Atomic(uint16_t) prio;		/* srv_export_prio() */
	struct io_stat base;		/* at the last reset */
	uint64_t oldest_ns;		/* srv-age.h; control thread */
	/* [srv.nthreads]; each in cache lines of its own */
	struct srv_export_thread {
		_Alignas(64) struct io_stat stat;
	} threads[];
};

/* The counters of @ex on @thread.  Thread of @thread. */
static inline struct io_stat *srv_export_stat_here(const struct srv_thread *thread,
						   const struct export *ex)
{
	return &((struct srv_export_stat *)ex->user)->threads[thread->index].stat;
}

/* True if @ex has limits (srv-limit.h).  Any thread. */
static inline bool srv_export_is_limited(const struct export *ex)
{
	return atomic_load_explicit(&((struct srv_export_stat *)ex->user)->limit.on,
				    memory_order_relaxed);
}

/* The best priority of IO on @ex, as srv_prio() makes it; 0: any, and the thread's own for IO whose
 * client has chosen none.  Any thread. */
static inline uint16_t srv_export_prio(const struct export *ex)
{
	return atomic_load_explicit(&((struct srv_export_stat *)ex->user)->prio,
				    memory_order_relaxed);
}

/* ---- control thread ---- */

/* Give @ex counters, on all threads, and no limits: those of an export with the same name and
 * store, or new ones.  0 or -ENOMEM. */
int srv_export_stat_begin(struct srv_rnbd *rnbd, struct export *ex);
/* Take the counters of @ex, if it has some, and no thread counts for @ex any more. */
void srv_export_stat_end(struct export *ex);
/* The number of the counters of @ex. */
uint64_t srv_export_id(const struct export *ex);

/* Add up in @sum the counts of @ex since the export came; resets change nothing. */
void srv_export_stat_ever(const struct srv_rnbd *rnbd, const struct export *ex,
			  struct io_stat *sum);
/* Add up in @sum the counts of @ex since the last reset. */
void srv_export_stat(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum);
/* Count @ex from now on from zero. */
void srv_export_stat_reset(const struct srv_rnbd *rnbd, const struct export *ex);

#endif
