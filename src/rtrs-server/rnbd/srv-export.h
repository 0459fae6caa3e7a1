/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's part of each export and each store: counters, and a share of the private buffers of
 * each thread.  And the counters of a path. */
#ifndef SRV_EXPORT_H
#define SRV_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "export-life.h"
#include "export.h"
#include "rnbd-msg.h"
#include "srv-rnbd-state.h"

struct srv;

/* For export_life_init(), with the struct srv as its @arg. */
extern const struct export_users srv_export_users;

/* The exports that a server begins with.  0 or -ENOMEM; srv_export_fini() in any case.  Control
 * thread; no other thread serves yet. */
int srv_export_init(struct srv *srv);
/* Give @ex the priority @prio (conf-limits.h), for IO that begins from now on. */
void srv_export_set_prio(struct srv *srv, struct export *ex, uint16_t prio);
/* No thread serves any more. */
void srv_export_fini(struct srv *srv);

/* ---- exports as people see them; control thread ---- */

/* These are the exports that clients find, and the removed ones that clients still have open.  Of
 * exports with the same name and the same store people see one: the listed one, or else the one
 * that was removed first.  The users of all of them are its users. */

/* The export that people see for @ex, which clients find or have open. */
struct export *srv_export_shown(const struct export *ex);
/* The first of these exports, if @ex is NULL, or the next one behind @ex; NULL: no more.  Those
 * that clients find come first. */
struct export *srv_export_next(const struct srv *srv, const struct export *ex);
/* The body may not let exports come or go. */
#define srv_export_each(ex, srv)                                                                   \
	for (ex = srv_export_next(srv, NULL); ex; ex = srv_export_next(srv, ex))

/* ---- counters: each thread counts in its own copy, as each connection does ---- */

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

/* The counters of @ex on @thread.  Thread of @thread. */
static inline struct io_stat *srv_export_stat_here(const struct srv_thread *thread,
						   const struct export *ex)
{
	return &srv_export_of(ex)->threads[thread->index].stat;
}

/* True if @ex has limits (srv-limit.h).  Any thread. */
static inline bool srv_export_is_limited(const struct export *ex)
{
	return atomic_load_explicit(&srv_export_of(ex)->limit.on, memory_order_relaxed);
}

/* The best priority of IO on @ex, as srv_export_wire_prio() makes it; 0: any, and the thread's own
 * for IO whose client has chosen none.  Any thread. */
static inline uint16_t srv_export_prio(const struct export *ex)
{
	return atomic_load_explicit(&srv_export_of(ex)->prio, memory_order_relaxed);
}

/* ---- control thread ---- */

/* Add up in @sum the counts of @ex since the export came; resets change nothing. */
void srv_export_stat_ever(const struct srv_rnbd *rnbd, const struct export *ex,
			  struct io_stat *sum);
/* Add up in @sum the counts of @ex since the last reset. */
void srv_export_stat(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum);
/* Count @ex from now on from zero. */
void srv_export_stat_reset(const struct srv_rnbd *rnbd, const struct export *ex);

/* ---- the IO of a path, counters and the age of the oldest request; control thread ---- */

/* Each connection has counters, and the path adds these up.
 *
 * A request is counted by the thread of the answer, in memory that no other thread writes.  The
 * time of a request is from arrival to answer; the clock is read once for all requests of a poll
 * and once for all answers of a pass.
 *
 * The control thread reads the counters in place, without a message to any thread: a thread held
 * by the storage would not answer, and just then the counters matter.  So a reader may miss
 * requests that are being counted.  A reset remembers the counts, and later reads subtract the
 * remembered counts. */

/* Add up in @sum the counts since the last reset. */
void srv_stat_path(const struct srv_path *path, struct io_stat *sum);
/* The requests on @path that are not answered. */
uint64_t srv_stat_inflight(const struct srv_path *path);
/* Count @path from now on from zero.  0 or -ENOMEM. */
int srv_stat_reset_path(struct srv_path *path);

/* How long has the oldest request waited that has arrived and is not answered?  Look at all
 * requests of @srv, in place, as at counters; the other threads write nothing for this that other
 * requests share.  srv_sess.oldest_ns and srv_export.oldest_ns have the result, too.  Returns the
 * age of the oldest request, in nanoseconds; 0: there is none. */
uint64_t srv_stat_age_look(const struct srv *srv);

/* ---- the priority of an IO, in the form for the storage (doc/protocol.md 8.4;
 * <linux/ioprio.h>); any thread, cannot fail ---- */

/* May this process do IO in the class real-time?  The kernel refuses such IO to other processes. */
bool srv_export_may_realtime(void);

/* Turn @wire, the priority of an IO, into a priority that this kernel takes from this process.
 * Real-time becomes the best of best-effort if @may_realtime is false; an invalid priority becomes
 * 0, the thread's own. */
uint16_t srv_export_wire_prio(uint16_t wire, bool may_realtime);

/* The priority of an IO: @client, that of its client, but no better than @export, that of the
 * export; both as srv_export_wire_prio() makes them.  0 and the kernel's default count as none: a
 * kernel's client sends the default with each read, write and discard for which nobody has chosen a
 * priority. */
uint16_t srv_export_limit_prio(uint16_t client, uint16_t export);

#endif
