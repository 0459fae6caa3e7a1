/* SPDX-License-Identifier: BSD-3-Clause */
/* FRWR in user space: keys that live as long as their IO.
 *
 * WHY.  To let a peer write into our memory it gets a key (an rkey).  A key that stays good after
 * the answer is a hole: a late or a hostile write lands in memory that is by then somebody else's.
 * The kernel registers memory with a work request for each IO and invalidates it behind the answer
 * ("fast registration work requests").  libibverbs has memory windows instead: a window opens a
 * range of a registered region under a key of its own, and is bound and taken away by work
 * requests, so in order with the sends around it and without a system call.
 *
 * MODES, tried on the device by frwr_query(); frwr_pick() takes the first of an order that works:
 *
 *	FRWR_MW2	window of type 2B: good on one connection; taken away by the peer with the
 *			answer (SEND_WITH_INV), or by us (LOCAL_INV).  For clients.
 *	FRWR_MW1	window of type 1: good on every connection of the pd; taken away by a bind
 *			to nothing.  For servers, whose clients use any chunk on any connection; for
 *			clients of devices without type 2, which then must not ask to invalidate.
 *			Binds on two connections have no order: the later one is for when something
 *			behind the earlier one has completed.
 *	FRWR_REREG	the region itself gets another key for each IO: a table entry on tcp,
 *			system calls elsewhere.  No requests; done when the call returns.  For
 *			devices without windows.
 *	FRWR_SUSPEND	the region's key is closed and opened again: the same key, so nothing new
 *			has to be told, of the same bytes each time.  A table entry on tcp; RDMA
 *			devices have nothing like it.  No requests; done when the call returns.  For
 *			servers, whose chunks stay where they are.
 *	FRWR_STATIC	the key of the region, for good.  Nothing is taken away.
 *
 * All but MW2 reach the whole pd, so there is one pd for each path.  The caller asks a peer to
 * invalidate only with MW2 (frwr_expect_reminv() says so).
 *
 * A WINDOW belongs to its slot and has one owner at a time:
 *
 *	FREE --map--> MAPPED --posted--> VALID --fill_unmap, posted--> INVALIDATING --wc--> FREE
 *	              MAPPED --map_end-> FREE   VALID --reminv---------------------------> FREE
 *	any --flush, pool_kill--> DEAD
 *
 * With REREG, SUSPEND and STATIC nobody need fill an entry: between map and map_end the peer has
 * the key.  There is no way back from DEAD: the first error fails the connection and with it the
 * path, whose pool is killed when its connections have drained, and destroyed.
 *
 * THIS LIBRARY FILLS WORK REQUESTS AND NEVER POSTS (doc/decisions.md D11).  What it fills is an
 * entry: a chain, and a function posted() that whoever posts the chain calls right after
 * fab_post_send(), under the connection's send lock.  A client's read and its answer
 * (tests/frwr/example-frwr.c is a program):
 *
 *	frwr_map(w, slot->mr, slot->addr, len, FRWR_PEER_WRITES, &h);	// h goes into the request
 *	if (mode == FRWR_MW2)
 *		frwr_expect_reminv(w);			// and so does "need invalidate"
 *	frwr_fill_send(&slot->entry, conn, w, &req, &req);	// [BIND_MW, RDMA_WRITE_WITH_IMM]
 *		...
 *	rc = fab_post_send(conn, slot->entry.first);	// whoever posts; may be in a longer chain
 *	slot->entry.posted(&slot->entry, rc);
 *		...
 *	frwr_reminv(pool, conn, wc);			// each receive with IBV_WC_WITH_INV
 *	rc = frwr_answered(w, response_type_says_invalidated);	// -EPROTO: fail the path
 *	rc = frwr_fill_unmap(&slot->entry, conn, w, done, slot);
 *							// -EALREADY: the peer did it
 *		...					// 0: post the entry; done() when it is FREE
 *
 * RACE: the answer may be polled by another thread before posted() has run.  Neither a window nor
 * its entry is used again before both have happened: frwr_map() and frwr_fill_unmap() say -EBUSY.
 *
 * A server that revokes (always_invalidate): frwr_map() of each chunk and one frwr_fill_send()
 * without a request for all of them, before the keys are told.  A request: frwr_fill_unmap(); the
 * IO begins in its done().  The answer: frwr_map() again, frwr_fill_send() without a request,
 * entry.first..last in front of the message that tells the key, which is one entry with it.
 *
 * A DOUBLE INVALIDATE, which is the end of a host with soft-RoCE, cannot be said: only a VALID
 * window can be unmapped, once, and not while its peer has been asked to do it and has not
 * answered.  (A hostile peer can send one by itself.  That is for the kernel to survive.)
 *
 * ORDER.  Up: connections, regions, pool.  Down: disconnect, drain, frwr_pool_kill(),
 * frwr_pool_destroy(), connections, regions, pd.  A queue pair that is destroyed with a window
 * bound blocks for 50 s on rxe.  A region covers one slot, not the arena: rxe does not enforce the
 * bounds of windows, only those of regions (FRWR_QUIRK_MR_BOUNDS).
 *
 * THREADS.  A window's owner calls map, map_end and fill; the handlers run on who polls; posted()
 * under the send lock.  Nothing sleeps but create, destroy, and REREG on devices where that is a
 * system call.  Errors are negative errno.  tests/frwr/README has the requirements. */
#ifndef FRWR_H
#define FRWR_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric.h"

enum frwr_mode { FRWR_MW2, FRWR_MW1, FRWR_REREG, FRWR_SUSPEND, FRWR_STATIC };
#define FRWR_NMODES 5
/* "MW2", ... */
const char *frwr_mode_name(enum frwr_mode mode);

/* ---- what a device can do, and how much of it (frwr-query.c, frwr-pick.c) ---- */

#define FRWR_QUIRK_MR_BOUNDS 0x1	/* a window ends where its region does */
#define FRWR_QUIRK_INV_FATAL 0x2	/* an invalidate of what is not bound stops the machine */
#define FRWR_QUIRK_RETRIED_BIND 0x4	/* a bind behind what is sent again fails */
#define FRWR_QUIRK_INV_FLAG 0x8		/* receives tell of an invalidate with the wrong flag */

struct frwr_caps {
	struct fab_device_attr dev;
	int rc[FRWR_NMODES];		/* 0: was tried and works */
	const char *why[FRWR_NMODES];	/* else why not, in words */
	bool unable[FRWR_NMODES];	/* it is offered, and a lesson says that it does not work */
	unsigned quirks;
};

/* Ask and try what the device of @conn can do, in @pd; leaves nothing behind.  May block. */
int frwr_query(struct fab_conn *conn, struct fab_pd *pd, struct frwr_caps *caps);

/* MW2, MW1, REREG; and MW1, SUSPEND.  STATIC is a choice of users. */
extern const enum frwr_mode frwr_order_client[3];
extern const enum frwr_mode frwr_order_server[2];

/* The first of @order that works, with the reasons against those before it in @why, for the log:
 * "MW1 (not MW2: the device has no windows of type 2B)".  -EOPNOTSUPP when none does. */
int frwr_pick(const struct frwr_caps *caps, const enum frwr_mode *order, unsigned n, char *why,
	      size_t len);

struct frwr_load {
	bool server;
	enum frwr_mode mode;
	uint32_t queue_depth;		/* wanted */
	uint32_t spare_wr;		/* sends that are no request's: heartbeats, ... */
	uint32_t spare_windows;		/* client: beside one for each request */
};

struct frwr_sizes {
	uint32_t queue_depth;		/* possible, at most what was wanted */
	uint32_t wr_per_req;		/* longest chains of one request, together */
	uint32_t max_send_wr, max_recv_wr;	/* for fab_create_qp() */
};

/* Queues for the longest chains, because nothing is throttled in the IO path; the depth gives way
 * to the device.  Not counted: requests of the fabric's own, and those whose answer was polled
 * before their completion (the plugin, which uses a slot again then, adds 4 for each).  A server
 * whose device has too few windows for its depth is not lowered: it can do without them.
 * -ENOMEM: not even one request; -EOPNOTSUPP: the device cannot send a client's two elements. */
int frwr_sizing(const struct fab_device_attr *dev, const struct frwr_load *load,
		struct frwr_sizes *sizes);
/* Entries of a send queue that one request takes under @load. */
uint32_t frwr_wr_per_req(const struct frwr_load *load);

/* ---- windows ---- */

struct frwr_pool;

enum frwr_state {
	FRWR_FREE,			/* nobody reaches anything through it */
	FRWR_MAPPED,			/* has a range and a key; nothing known to be posted */
	FRWR_VALID,			/* the peer may write */
	FRWR_INVALIDATING,
	FRWR_DEAD,
};

enum frwr_dir { FRWR_PEER_WRITES, FRWR_PEER_READS };

/* Goes over the wire. */
struct frwr_handle {
	uint64_t addr;
	uint32_t rkey, len;
};

struct frwr_entry;

struct frwr {
	struct frwr *next;		/* the caller's list; NULL ends it */

	/* private */
	struct frwr_pool *pool;
	unsigned index;
	_Atomic uint32_t state;		/* see frwr-priv.h */
	_Atomic uint32_t key;		/* the key that was mapped last */
	_Atomic(struct fab_conn *) conn;	/* that carries the bind */
	struct ibv_mw *mw;		/* MW2, MW1 */
	struct ibv_mr *mr;		/* bound to; REREG: its own */
	uint64_t addr;			/* where, as @mr calls it */
	struct frwr_handle handle;
	int access;
	uint32_t revoke_key;		/* MW1: of the bind to nothing */
	struct ibv_send_wr wr;		/* bind, then invalidate */
	struct fab_cqe bind_cqe, inv_cqe;
	struct frwr_entry *unmap;	/* it is invalidated by, until done() */
	_Atomic uint64_t mapped, revoked;	/* so often; revoked: without a request */
};

/* The window is FREE (@rc 0), or dead with its connection (-ENOTCONN).  On the polling thread; or
 * under the send lock, when the completion was faster than posted(); or in frwr_pool_kill().  May
 * post, or rather fill and queue. */
typedef void frwr_done_fn(void *arg, int rc);

/* Lives, with what it names, until posted() has run; of an unmap also until done(). */
struct frwr_entry {
	struct ibv_send_wr *first, *last;	/* a chain; NULL: nothing to post */
	/* @rc is what fab_post_send() returned for a chain with this one in it; -ENOTCONN as well
	 * when it was never posted.  Exactly once, serialised with the posts of the connection. */
	void (*posted)(struct frwr_entry *e, int rc);

	/* private */
	struct frwr_pool *pool;
	struct frwr *list;		/* of an unmap: one */
	frwr_done_fn *done;
	void *arg;
	_Atomic unsigned events;
};

/* Private. */
struct frwr_index {
	uint32_t key;			/* without the tag */
	unsigned i;
};

struct frwr_stats {
	_Atomic uint64_t mapped, bind_posted;
	_Atomic uint64_t local_inv, remote_inv;
	_Atomic uint64_t remote_inv_missing;	/* the answer said done, and it was not */
	_Atomic uint64_t flushed_bind, flushed_inv;
	_Atomic uint64_t post_fail;		/* entries whose post failed */
	_Atomic uint64_t partial_post;		/* of these: nobody knows how far it went */
	_Atomic uint64_t orphaned;		/* windows that could not be given back */
	_Atomic uint64_t key_wraps;
	_Atomic uint64_t quirk_inv_flag;	/* FRWR_QUIRK_INV_FLAG was met */
};

struct frwr_pool {
	struct fab_pd *pd;
	enum frwr_mode mode;
	bool zero_based;
	unsigned n;
	struct frwr *windows;
	struct frwr_index *by_key;	/* MW2; sorted */
	struct frwr_lessons *lessons;	/* or NULL */
	char device[FAB_DEVICE_NAME];	/* with lessons */
	struct frwr_stats stats;	/* without what windows count themselves */
};

/* @n windows, FREE.  After the connections that will use them.  May block.  -ENOMEM, -EOPNOTSUPP,
 * or what the device says. */
int frwr_pool_create(struct frwr_pool **out, struct fab_pd *pd, enum frwr_mode mode, unsigned n);
static inline struct frwr *frwr_at(struct frwr_pool *pool, unsigned i)
{
	assert(i < pool->n);
	return &pool->windows[i];
}
/* From now on a handle of @pool has the address 0, so the peer is not told where memory lies.  With
 * windows: fab_device_attr.mw_zero_based; REREG: where regions can be called so, else nothing
 * changes.  Before anything is mapped. */
void frwr_pool_zero_based(struct frwr_pool *pool);
/* All windows are dead; each done() that has not run runs with -ENOTCONN.  The connections have
 * drained, and what was not posted was told so (posted(-ENOTCONN)).  Idempotent. */
void frwr_pool_kill(struct frwr_pool *pool);
/* Kill, and give the windows back; before their connections.  Returns 0, and @pool is gone; or how
 * many windows the device did not take.  The pool keeps these windows (and counts them as orphaned)
 * for another try, at the latest when the device is closed.  May block. */
unsigned frwr_pool_destroy(struct frwr_pool *pool);

/* ---- devices that offer windows and cannot use them (frwr-lesson.c) ---- */

/* A device may give a window and refuse to bind it, or to take it away.  The refusal is seen when a
 * connection is up, and fails the connection: -EOPNOTSUPP of fab_post_send(), or a bind that
 * completes with an error of its own.  The name of the device is remembered, and logged once, so
 * the next attempt does without windows.  Nothing is learned from a failed LOCAL_INV, which a peer
 * can bring about, nor from a flushed bind: soft-RoCE flushes whatever it does not like, and has
 * its quirks. */
#define FRWR_LESSONS 16			/* more are not remembered */

struct frwr_lesson {
	char device[FAB_DEVICE_NAME];
	enum frwr_mode mode;
	char why[160];
};

/* Of a process.  Any thread; outlives the pools that learn and the caps that it was applied to. */
struct frwr_lessons {
	pthread_mutex_t lock;		/* innermost */
	unsigned n;
	struct frwr_lesson lesson[FRWR_LESSONS];
};

#define FRWR_LESSONS_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }
void frwr_lessons_init(struct frwr_lessons *l);
void frwr_lessons_fini(struct frwr_lessons *l);
/* A larger count: there is a new lesson, and a set-up that failed may be tried again. */
unsigned frwr_lessons_count(struct frwr_lessons *l);
/* Take from @caps, just queried, what its device has turned out not to do. */
void frwr_lessons_apply(struct frwr_lessons *l, struct frwr_caps *caps);
/* @l learns from @pool, whose device has @caps.  Before anything of @pool is posted. */
void frwr_pool_learn(struct frwr_pool *pool, struct frwr_lessons *l, const struct frwr_caps *caps);

/* ---- their life ---- */

/* The state of @w now. Any thread. */
enum frwr_state frwr_state(const struct frwr *w);

/* Give @w the range [addr, addr + len) of @mr, as fab_mr_iova() counts, and a fresh key.  Posts
 * nothing and, but for REREG and SUSPEND, opens nothing.  @mr may be NULL with REREG: this
 * registers memory.
 *  -EBUSY	not FREE
 *  -EINVAL	@mr does not cover the range, is of another pd, lacks a right (windows: MW_BIND, and
 *		LOCAL_WRITE for FRWR_PEER_WRITES; STATIC: the remote right), or len is 0 or above
 *		2 GiB
 *  -ENOTCONN	the pool was killed
 *  SUSPEND: -EINVAL for another range than the first, which stays.
 *  REREG, SUSPEND: what registering said.  All errors: nothing happened */
int frwr_map(struct frwr *w, struct ibv_mr *mr, uint64_t addr, uint32_t len, enum frwr_dir dir,
	     struct frwr_handle *handle);
/* The end of an IO for which nothing is to be posted: @w is FREE.  MAPPED or VALID; windows: MAPPED
 * and not filled in.  Owner; idempotent.  -EBUSY: filled in, and posted() has not
 * run; -EINVAL: a window that is VALID; -ENOTCONN: dead; REREG, SUSPEND: what the device says,
 * and it is dead. */
int frwr_map_end(struct frwr *w);

/* Make @e the chain of the binds of @list (MAPPED, one pool) and, behind them, @first to @last, to
 * be posted on @conn: one post, binds unsignaled.  @first NULL: the binds alone.  -EINVAL: @list is
 * not what it should be, and nothing happened. */
int frwr_fill_send(struct frwr_entry *e, struct fab_conn *conn, struct frwr *list,
		   struct ibv_send_wr *first, struct ibv_send_wr *last);

/* Between map and the post: the peer will be asked to invalidate @w, so we do not until it has
 * answered.  -EOPNOTSUPP unless MW2. */
int frwr_expect_reminv(struct frwr *w);
/* A receive with an invalidate came on @conn.  Returns the window, which nobody reaches any more,
 * or NULL when it is none of @pool's, not bound there or not with this key: fail the path.  Polling
 * thread. */
struct frwr *frwr_reminv(struct frwr_pool *pool, struct fab_conn *conn, const struct ibv_wc *wc);
/* Is @wc worth frwr_reminv()?  True for what only may be one (FRWR_QUIRK_INV_FLAG). */
bool frwr_wc_may_inv(const struct ibv_wc *wc);
/* The answer has come and says whether the peer did invalidate.  -EPROTO: it says so and did not;
 * fail the path.  -ENOTCONN: the connection has failed since, and what it flushed may have been
 * done. */
int frwr_answered(struct frwr *w, bool invalidated);

/* Make @e the request that takes @w away on @conn, signaled.
 *  0		post it; done() follows
 *  1		it is done and there is nothing to post (not windows: frwr_map_end()); no done()
 *  -EALREADY	it is FREE, or somebody does it already
 *  -EBUSY	the peer was asked to, or posted() is still to run
 *  -EINVAL	not VALID; MW2: bound on another connection
 *  -ENOTCONN	dead.  All errors: nothing happened */
int frwr_fill_unmap(struct frwr_entry *e, struct fab_conn *conn, struct frwr *w,
		    frwr_done_fn *done, void *arg);

void frwr_stats(const struct frwr_pool *pool, struct frwr_stats *stats);

#endif
