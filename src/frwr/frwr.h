/* SPDX-License-Identifier: BSD-3-Clause */
/* FRWR in user space: keys that live as long as their IO.
 *
 * WHY.  A peer needs a key (an rkey) to write into our memory.  A key that stays good after the
 * answer is a hole: a late or a hostile write lands in memory that by then serves another IO.
 * The kernel registers memory with a work request for each IO, and invalidates the key behind the
 * answer ("fast registration work requests").  libibverbs has memory windows instead.  A window
 * opens a range of a registered region under a key of its own.  Work requests bind the window and
 * take its key away, so both happen in order with the sends around them, without a system call.
 *
 * MODES, tried on the device by frwr_query(); frwr_pick() takes the first of an order that works:
 *
 *	FRWR_MW2	window of type 2B: good on one connection; taken away by the peer with the
 *			answer (SEND_WITH_INV), or by us (LOCAL_INV).  For clients.
 *	FRWR_MW1	window of type 1: good on every connection of the pd; taken away by a bind
 *			to nothing.  For servers, whose clients use any chunk on any connection; for
 *			clients of devices without type 2, which then must not ask to invalidate.
 *			Binds on two connections have no order: post the second bind when a request
 *			behind the first bind has completed.
 *	FRWR_REREG	the region itself gets another key for each IO: a table entry on tcp,
 *			system calls elsewhere.  No requests; done when the call returns.  For
 *			devices without windows.
 *	FRWR_SUSPEND	the region's key is closed and opened again: the same key, so the peer need
 *			not be told, of the same bytes each time.  A table entry on tcp; no RDMA
 *			device offers the mode.  No requests; done when the call returns.  For
 *			servers, whose chunks stay in place.
 *	FRWR_STATIC	the key of the region, for good.  Nothing is taken away.
 *
 * The keys of all modes but MW2 reach the whole pd, so each path has a pd of its own.  The caller
 * asks a peer to invalidate only with MW2, and calls frwr_expect_reminv() then.
 *
 * A WINDOW belongs to its slot and has a single owner at a time:
 *
 *	FREE --map--> MAPPED --posted--> VALID --fill_unmap, posted--> INVALIDATING --wc--> FREE
 *	              MAPPED --map_end-> FREE   VALID --reminv---------------------------> FREE
 *	any --flush, pool_kill--> DEAD
 *
 * With REREG, SUSPEND and STATIC no entry need be filled: between map and map_end the peer has
 * the key.  No event leads out of DEAD: the first error fails the connection and with it the
 * path, whose pool is killed when its connections have drained, and then destroyed.
 *
 * THIS LIBRARY FILLS WORK REQUESTS AND NEVER POSTS (doc/decisions.md D11).  An entry is a chain of
 * work requests, and a function posted().  The poster of the chain calls posted() right after
 * fab_post_send(), under the connection's send lock.  A client's read and its answer
 * (tests/frwr/device-rw-client.c has both ends of many):
 *
 *	frwr_map(w, slot->mr, slot->addr, len, FRWR_PEER_WRITES, &h);	// h goes into the request
 *	if (mode == FRWR_MW2)
 *		frwr_expect_reminv(w);			// set "need invalidate" in the request
 *	frwr_fill_send(&slot->entry, conn, w, &req, &req);	// [BIND_MW, RDMA_WRITE_WITH_IMM]
 *		...
 *	rc = fab_post_send(conn, slot->entry.first);	// by the poster, maybe in a longer chain
 *	slot->entry.posted(&slot->entry, rc);
 *		...
 *	frwr_reminv(pool, conn, wc);			// each receive with IBV_WC_WITH_INV
 *	rc = frwr_answered(w, response_type_says_invalidated);	// -EPROTO: fail the path
 *	rc = frwr_fill_unmap(&slot->entry, conn, w, done, slot);
 *							// -EALREADY: the peer did already
 *		...					// 0: post the entry; done() when it is FREE
 *
 * RACE: another thread may poll the answer before posted() has run.  A window and its entry are
 * not used again before both have happened: frwr_map() and frwr_fill_unmap() return -EBUSY.
 *
 * A server that revokes (always_invalidate) takes three steps:
 *
 *	at the start	frwr_map() of each chunk, and a single frwr_fill_send() without a request
 *			for all chunks, before the server tells the keys
 *	a request	frwr_fill_unmap(); the IO begins in done()
 *	the answer	frwr_map() again, and frwr_fill_send() without a request; entry.first..last
 *			in front of the message that tells the key, both in one entry
 *
 * A DOUBLE INVALIDATE, which stops a host with soft-RoCE, cannot be filled: only a VALID window
 * can be unmapped, once.  While a peer that was asked to invalidate has not answered, unmapping
 * is refused, too.  (A hostile peer can send a second invalidate: the kernel has to survive.)
 *
 * ORDER.  Up: connections, regions, pool.  Down: disconnect, drain, frwr_pool_kill(),
 * frwr_pool_destroy(), connections, regions, pd.  A queue pair that is destroyed with a window
 * bound blocks for 50 s on rxe.  A region covers a slot, not the arena: rxe enforces the bounds of
 * regions, not of windows (FRWR_QUIRK_MR_BOUNDS).
 *
 * THREADS.  A window's owner calls map, map_end and fill; the handlers run on the polling thread;
 * posted() runs under the send lock.  Only create and destroy may sleep, and REREG on devices
 * where REREG is a system call.  Errors are negative errno.  tests/frwr/README has the
 * requirements. */
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
/* The name of @mode for the log: "MW2", ... */
const char *frwr_mode_name(enum frwr_mode mode);

/* ---- what a device can do, and how much of it (frwr-map.c, frwr-pool.c) ---- */

#define FRWR_QUIRK_MR_BOUNDS 0x1	/* a window ends where its region does */
#define FRWR_QUIRK_INV_FATAL 0x2	/* invalidating an unbound key stops the host */
#define FRWR_QUIRK_RETRIED_BIND 0x4	/* a bind behind a retransmission fails */
#define FRWR_QUIRK_INV_FLAG 0x8		/* receives tell of an invalidate with the wrong flag */

struct frwr_caps {
	struct fab_device_attr dev;
	int rc[FRWR_NMODES];		/* 0: tried, and works */
	const char *why[FRWR_NMODES];	/* the reason when rc is not 0 */
	bool unable[FRWR_NMODES];	/* offered, and a lesson says: does not work */
	unsigned quirks;
};

/* Ask the device of @conn for its limits and try each mode in @pd; leaves nothing behind.  May
 * block.  Returns 0, or -errno of the question; @caps holds the reasons against the failed
 * modes. */
int frwr_query(struct fab_conn *conn, struct fab_pd *pd, struct frwr_caps *caps);

/* The client tries MW2, MW1, REREG; the server MW1, SUSPEND.  STATIC is a choice of users. */
extern const enum frwr_mode frwr_order_client[3];
extern const enum frwr_mode frwr_order_server[2];

/* Returns the first of the @n modes in @order that works, or -EOPNOTSUPP when none does.  @why gets
 * the name of the mode, and the reasons against the modes before, for the log: "MW1 (not MW2: the
 * device has no windows of type 2B)". */
int frwr_pick(const struct frwr_caps *caps, const enum frwr_mode *order, unsigned n, char *why,
	      size_t len);

struct frwr_load {
	bool server;
	enum frwr_mode mode;
	uint32_t queue_depth;		/* wanted */
	uint32_t spare_wr;		/* sends beside the requests: heartbeats, ... */
	uint32_t spare_windows;		/* client: in addition to a window for each request */
};

struct frwr_sizes {
	uint32_t queue_depth;		/* possible, at most the wanted depth */
	uint32_t wr_per_req;		/* the longest chains of a request, together */
	uint32_t max_send_wr, max_recv_wr;	/* for fab_create_qp() */
};

/* Size the queues of @dev for the longest chains of @load, because nothing is throttled in the IO
 * path.  sizes->queue_depth sinks below the wanted depth, if the device has less.
 *
 * Not counted: requests of the fabric's own, and requests whose answer was polled before their
 * completion.  (The plugin uses such a slot again at once, and adds 4 for each.)  A server whose
 * device has too few windows for its depth is not lowered: the server can do without windows.
 *
 *  -ENOMEM: not even one request; -EOPNOTSUPP: the device cannot send a client's two elements. */
int frwr_sizing(const struct fab_device_attr *dev, const struct frwr_load *load,
		struct frwr_sizes *sizes);
/* Send queue entries of a single request under @load. */
uint32_t frwr_wr_per_req(const struct frwr_load *load);

/* ---- windows ---- */

struct frwr_pool;

enum frwr_state {
	FRWR_FREE,			/* no peer reaches memory through the window */
	FRWR_MAPPED,			/* has a range and a key; no post is known */
	FRWR_VALID,			/* the peer may write */
	FRWR_INVALIDATING,
	FRWR_DEAD,
};

enum frwr_dir { FRWR_PEER_WRITES, FRWR_PEER_READS };

/* A range that a peer may reach, in the form that goes over the wire. */
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
	_Atomic uint32_t key;		/* the key of the last frwr_map() */
	_Atomic(struct fab_conn *) conn;	/* carries the bind */
	struct ibv_mw *mw;		/* MW2, MW1 */
	struct ibv_mr *mr;		/* the region bound to; REREG: a region of its own */
	uint64_t addr;			/* start of the range, as an address of @mr */
	struct frwr_handle handle;
	int access;
	uint32_t revoke_key;		/* MW1: of the bind to nothing */
	struct ibv_send_wr wr;		/* bind, then invalidate */
	struct fab_cqe bind_cqe, inv_cqe;
	struct frwr_entry *unmap;	/* the entry that invalidates, until done() */
	_Atomic uint64_t mapped, revoked;	/* counts; revoked: without a request */
};

/* The end of an unmap: the window is FREE (@rc 0), or dead with its connection (-ENOTCONN).  On the
 * polling thread; under the send lock, if the completion was faster than posted(); or in
 * frwr_pool_kill().  May fill and queue an entry. */
typedef void frwr_done_fn(void *arg, int rc);

/* An entry is a chain of work requests to post.  An entry, and all that its chain names, must live
 * until posted() has run; the entry of an unmap also until done(). */
struct frwr_entry {
	struct ibv_send_wr *first, *last;	/* a chain; NULL: nothing to post */
	/* @rc is the result of fab_post_send() for the chain that held this entry, or -ENOTCONN, if
	 * the chain was never posted.  Called exactly once, serialised with the posts of the
	 * connection. */
	void (*posted)(struct frwr_entry *e, int rc);

	/* private */
	struct frwr_pool *pool;
	struct frwr *list;		/* windows of the chain; an unmap has one window */
	frwr_done_fn *done;
	void *arg;
	_Atomic unsigned events;
};

/* Private.  Where the window with a key is. */
struct frwr_index {
	uint32_t key;			/* the upper 24 bits of an rkey, without the tag */
	unsigned i;
};

struct frwr_stats {
	_Atomic uint64_t mapped, bind_posted;
	_Atomic uint64_t local_inv, remote_inv;
	_Atomic uint64_t remote_inv_missing;	/* the answer claimed an invalidate that was not
						 * seen */
	_Atomic uint64_t flushed_bind, flushed_inv;
	_Atomic uint64_t post_fail;		/* entries whose post failed */
	_Atomic uint64_t partial_post;		/* of these: how far the post went is unknown */
	_Atomic uint64_t orphaned;		/* windows that the device refused to free */
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
	struct frwr_stats stats;	/* without the counts of the windows */
};

/* Make a pool of @n FREE windows in @pd, after the connections that will use the windows.  May
 * block.  Returns 0, -ENOMEM, -EOPNOTSUPP, or the error of the device.  frwr_pool_destroy() frees
 * @out. */
int frwr_pool_create(struct frwr_pool **out, struct fab_pd *pd, enum frwr_mode mode, unsigned n);
/* Window @i of @pool. */
static inline struct frwr *frwr_at(struct frwr_pool *pool, unsigned i)
{
	assert(i < pool->n);
	return &pool->windows[i];
}
/* Give each handle of @pool the address 0, so the peer does not learn the address of our memory.
 * Windows: with FAB_CAP_MW_ZERO_BASED; REREG: if regions can be named so, else nothing
 * changes.  Call before the first frwr_map(). */
void frwr_pool_zero_based(struct frwr_pool *pool);
/* Make all windows dead and call each pending done() with -ENOTCONN.  Before: the connections have
 * drained, and each entry that was not posted got posted(-ENOTCONN).  Idempotent. */
void frwr_pool_kill(struct frwr_pool *pool);
/* Kill @pool and free its windows; call before the connections are destroyed.  Returns 0, and @pool
 * is freed; or the number of windows that the device refused to free.  The pool keeps these windows
 * (and counts them as orphaned) for another call, at the latest when the device is closed.  May
 * block. */
unsigned frwr_pool_destroy(struct frwr_pool *pool);

/* ---- devices that offer windows and cannot use them (frwr-pool.c) ---- */

/* A device may give a window and refuse to bind the window, or to take its key away.  The refusal
 * is seen when a connection is up, and fails the connection: -EOPNOTSUPP of fab_post_send(), or a
 * bind that completes with an error of its own.  The name of the device is remembered, and logged
 * once, so the next attempt does without windows.
 *
 * Two failures teach nothing: a failed LOCAL_INV, which a peer can bring about, and a flushed bind,
 * because soft-RoCE flushes any request that fails. */
#define FRWR_LESSONS 16			/* further lessons are dropped */

struct frwr_lesson {
	char device[FAB_DEVICE_NAME];
	enum frwr_mode mode;
	char why[160];
};

/* The lessons of a process.  Any thread; outlives the pools that learn, and the caps that
 * frwr_lessons_apply() changed. */
struct frwr_lessons {
	pthread_mutex_t lock;		/* innermost */
	atomic_uint n;
	struct frwr_lesson lesson[FRWR_LESSONS];
};

#define FRWR_LESSONS_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }
/* Make @l empty. */
void frwr_lessons_init(struct frwr_lessons *l);
/* Destroy the lock of @l, when no pool learns any more. */
void frwr_lessons_fini(struct frwr_lessons *l);
/* The number of lessons.  When the count has grown, a set-up that failed may be tried again. */
unsigned frwr_lessons_count(struct frwr_lessons *l);
/* Mark in @caps, just queried, each mode that a lesson says the device cannot do. */
void frwr_lessons_apply(struct frwr_lessons *l, struct frwr_caps *caps);
/* Let @l learn from the failures of @pool, whose device has @caps.  Call before the first post. */
void frwr_pool_learn(struct frwr_pool *pool, struct frwr_lessons *l, const struct frwr_caps *caps);

/* ---- their life ---- */

/* The state of @w now. Any thread. */
enum frwr_state frwr_state(const struct frwr *w);

/* Give @w the range [addr, addr + len) of @mr, as fab_mr_iova() counts, and a fresh key.  Posts
 * nothing and, but for REREG and SUSPEND, opens nothing.  @mr may be NULL with REREG, which
 * registers the range.
 *  -EBUSY	not FREE
 *  -EINVAL	@mr does not cover the range, is of another pd, lacks a right (windows: MW_BIND, and
 *		LOCAL_WRITE for FRWR_PEER_WRITES; STATIC: the remote right), or len is 0 or above
 *		2 GiB; SUSPEND: another range than at the first call, which stays
 *  -ENOTCONN	the pool was killed
 *  REREG, SUSPEND: the error of registering.  After an error nothing has happened. */
int frwr_map(struct frwr *w, struct ibv_mr *mr, uint64_t addr, uint32_t len, enum frwr_dir dir,
	     struct frwr_handle *handle);
/* End an IO without a post: @w becomes FREE.  @w is MAPPED or VALID; a window: MAPPED and not
 * filled in.  Owner; idempotent.
 *
 *  -EBUSY	filled in, and posted() has not run
 *  -EINVAL	a window that is VALID
 *  -ENOTCONN	dead
 *  REREG, SUSPEND: the error of the device, and @w is dead. */
int frwr_map_end(struct frwr *w);

/* Hold the peer's writes under the key of @w back (fab_hold_mr()), until frwr_release().  @w was
 * mapped before, and its pool was not killed.  0, or the error of fab_hold_mr(); -EOPNOTSUPP unless
 * SUSPEND.  Any thread. */
int frwr_hold(struct frwr *w);
/* Let the peer write again. */
void frwr_release(struct frwr *w);

/* Make @e a chain to be posted on @conn: the binds of @list (MAPPED, all of one pool) and, behind
 * the binds, the requests from @first to @last.  The binds are unsignaled.  @first NULL: only the
 * binds.  -EINVAL: @list is empty, mixed, or not MAPPED, or only one of @first and @last is NULL;
 * nothing happened. */
int frwr_fill_send(struct frwr_entry *e, struct fab_conn *conn, struct frwr *list,
		   struct ibv_send_wr *first, struct ibv_send_wr *last);

/* Call between map and the post, if the request asks the peer to invalidate @w: frwr_fill_unmap()
 * refuses @w until the peer has answered.  -EOPNOTSUPP unless MW2; -EINVAL unless MAPPED and not
 * filled in. */
int frwr_expect_reminv(struct frwr *w);
/* Handle a receive with an invalidate on @conn.  Returns the window, now out of reach of the peer.
 * Returns NULL, if the key is no window's of @pool, or the window is not bound on @conn with this
 * key: fail the path.  Polling thread. */
struct frwr *frwr_reminv(struct frwr_pool *pool, struct fab_conn *conn, const struct ibv_wc *wc);
/* True if @wc should be given to frwr_reminv(): a receive with an invalidate, or maybe with an
 * invalidate (FRWR_QUIRK_INV_FLAG). */
bool frwr_wc_may_inv(const struct ibv_wc *wc);
/* The answer has come, and says in @invalidated whether the peer has invalidated @w.  -EPROTO: the
 * answer says so, and no invalidate came; fail the path.  -ENOTCONN: the connection has failed
 * since then, and a flushed invalidate may have been carried out. */
int frwr_answered(struct frwr *w, bool invalidated);

/* Make @e the request that takes the key of @w away on @conn, signaled.
 *  0		post @e; done() follows
 *  1		done, and nothing to post (not windows: frwr_map_end()); no done()
 *  -EALREADY	@w is FREE, or another unmap is under way
 *  -EBUSY	the peer was asked to invalidate, or posted() has not run
 *  -EINVAL	not VALID; MW2: bound on another connection
 *  -ENOTCONN	dead
 *  After an error nothing has happened. */
int frwr_fill_unmap(struct frwr_entry *e, struct fab_conn *conn, struct frwr *w,
		    frwr_done_fn *done, void *arg);

/* Copy the counters of @pool, and the sums over its windows, to @stats.  Any thread. */
void frwr_stats(const struct frwr_pool *pool, struct frwr_stats *stats);

#endif
