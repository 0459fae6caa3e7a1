/* SPDX-License-Identifier: BSD-3-Clause */
/* The request engine: how requests travel from their threads to the server and back.  Nothing here
 * blocks but what clt-wait.h says.
 *
 * An operation is what the caller wants (a read of 64 MiB); a part is what one RTRS request
 * carries.  A part travels in a slot, which is a permit of the session, the memory of the request
 * and its state.  Parts of one operation go over one connection, CLT_OP_PARTS at a time.
 *
 *	 caller's thread               whoever sends          whoever polls
 *	 clt_op_run
 *	   clt_op_step    clt-op.c
 *	     a permit     clt-slot.c
 *	     copy in      clt-mem.c    (bounce only)
 *	     queue -----------------> clt-tx.c: encode,
 *	                              map, post a chain ---> server
 *	   sleep          clt-wait-threads.c                 clt-rx.c: which slot is it?
 *	     finished <------------------------------------- all that it waits for is there
 *	   clt_op_step
 *	     unmap, copy out, permit back
 *
 * SENDING is flat combining: a slot is pushed on its connection's list; whoever gets the send lock
 * encodes and posts the whole list as one chain; who does not get it leaves, because the holder
 * looks at the list again after it let go.
 *
 * POLLING is a role that one thread has for each connection (clt-wait.h).
 *
 * FAILURE: a request in flight ends in one of two ways, by its answer (and, when its source is the
 * caller's buffer, its send completion), or when its path has drained.  So no operation is done
 * while a connection may still read or write its buffer (doc/decisions.md D12).
 *
 * The engine knows neither paths nor sessions.  Of a session it has struct clt_io, of a path's
 * attempt to connect struct clt_attempt, both parts of their owners (clt-sess.h, clt-path.h), and
 * it tells what happens to a connection through struct clt_con_ops.  The files of the engine share
 * clt-io-priv.h. */
#ifndef CLT_IO_H
#define CLT_IO_H

#include <stdatomic.h>

#include "bitmap.h"
#include "clt-fsm.h"
#include "loop.h"
#include "clt-wait.h"
#include "counter.h"
#include "fabric.h"
#include "frwr.h"
#include "rtrs-hb.h"
#include "rtrs-msg.h"
#include "rtrs-wr.h"

struct clt_attempt;
struct clt_con;
struct clt_slot;

#define CLT_OP_PARTS 16			/* in flight for one operation */
#define CLT_ARENA_SLOTS 128		/* of a session with an arena: what it costs is locked
					 * memory */
#define CLT_PATHS_MAX 16		/* of a session */

/* Statuses that are no answer: the request is to be sent again (or given up), or it does not fit
 * the path that came back, which has fewer permits or takes less in one request. */
#define CLT_AGAIN 1
#define CLT_TOO_LARGE 2

/* ---- what the engine has of a session ---- */

/* Permits (doc/protocol.md 2.7).  Permits outlive paths.
 *
 * IO may wait for a user message, when its device is to be opened again, and keeps its permits
 * meanwhile.  So IO does not get permit 0, whose slot is the control slot: a user message takes
 * permit 0 when the others are in use.  With a queue depth of 1 IO uses permit 0, too.  Then IO and
 * user messages take turns: a slot that is held and not sent does not keep the other slot from
 * being sent. */
struct clt_slot_table {
	struct clt_slot *slot;		/* [n + 1]: the last is the control slot */
	struct clt_slot **order;	/* [n + 1]: clt_tx_fail_over()'s */
	struct bitmap permits;		/* bit i: permit i + 1 */
	atomic_bool zero_taken;		/* permit 0, by IO: only where there is no other */
	atomic_bool zero_sent;		/* buf_id 0 is in flight */
	unsigned n;			/* queue depth the session began with */
	atomic_uint limit;		/* ids below it may be used; a path that came back may have
					 * less */
	atomic_uint nwaiting;		/* operations in line */
};

/* Memory of slots whose data is copied. */
struct clt_arena {
	uint8_t *mem;			/* NULL: none */
	size_t room;			/* bytes of a slot */
	unsigned n;
};

/* Which of the paths that are up an operation goes over (clt-pick.c). */
enum clt_policy {
	CLT_POLICY_ROUND_ROBIN,		/* in turns */
	CLT_POLICY_MIN_INFLIGHT,	/* the one with the fewest requests in flight */
	CLT_POLICY_MIN_LATENCY,		/* the one whose heartbeats are answered fastest */
	CLT_NPOLICIES
};

struct clt_io {
	struct loop *loop;
	const struct clt_wait_ops *wait;	/* how requests wait */
	unsigned poll_us;		/* who polls looks for answers for at most so long before it
					 * sleeps (spin.h) */
	struct clt_slot_table slots;
	struct clt_arena arena;
	/* Counts how often the session began anew on the server.  The server answers no request of
	 * an earlier epoch.  The service thread changes @epoch while no path is open. */
	unsigned epoch;
	atomic_uint max_io_size;	/* of the paths that are or were up, the least; 0: never
					 * was */
	struct clt_attempt *atts[CLT_PATHS_MAX];	/* [natts], of its paths, in order of
							 * creation */
	atomic_uint natts;		/* grows only; paths that were removed are CLOSED */
	atomic_uint policy;		/* enum clt_policy */
	atomic_uint state;		/* of the session, enum clt_sess_state: from EXPIRED on
					 * operations do not wait for a path */

	pthread_mutex_t lock;		/* lists below, op->granted; taken before a waiter's */
	struct list permit_waiters;	/* clt_op.permit_link, in order */
	struct list up_waiters;		/* clt_op.up_link */
};

/* @io->loop, wait and poll_us are set. */
void clt_slot_init(struct clt_io *io);
/* Free the table.  No operation is left. */
void clt_slot_fini(struct clt_io *io);
/* @depth permits can be used from now on: of those that there are, which the first call makes.
 * Returns how many could be used before, or -ENOMEM.  Service thread, not up. */
int clt_slot_limit(struct clt_io *io, unsigned depth);
/* Wake all operations that wait for a permit or for a path.  Any thread. */
void clt_slot_wake(struct clt_io *io);

/* ---- what it has of a path's attempt ---- */

/* How the device reaches the caller's data (doc/decisions.md D7).  All requests of an attempt use
 * the same way. */
enum clt_mem_way {
	/* The device has a local_dma_lkey and rereg_mr (tcp): the caller's buffer is used itself,
	 * under a key that lives as long as the request, that of its window.  Windows are bound to
	 * one region that is all there is, and opens nothing itself. */
	CLT_MEM_DIRECT,
	/* The same with the key of the slot's region, which gets another one for each READ
	 * (FRWR_REREG). */
	CLT_MEM_REREG,
	/* The device has neither (verbs), or registration=static is given.  The caller's buffer may
	 * move or be given back while a registration stands, and then data is lost without a word;
	 * so each slot has a piece of an arena that is registered as long as the connections live,
	 * and data is copied on the request's own thread.  A READ's key, the region's or its
	 * window's, opens its own slot's piece and nothing else. */
	CLT_MEM_BOUNCE,
};

/* Calls from a connection to its owner. */
struct clt_con_ops {
	/* The connection failed, or its peer broke the protocol.  Any thread, also from handlers;
	 * more than once. */
	void (*failed)(struct clt_con *con, int err, const char *cause);
	/* A heartbeat message or its acknowledgement came.  From a handler. */
	void (*heartbeat)(struct clt_con *con, unsigned type);
	/* Something was posted on connection 0, which the service loop polls.  Any thread. */
	void (*posted)(struct clt_con *con);
	/* The poll role that clt_wait_con_take() asked for is free.  Any thread. */
	void (*role_free)(struct clt_con *con);
};

/* Set by the path while nothing is in flight; constant while it is up. */
struct clt_attempt {
	struct clt_io *io;
	const struct clt_con_ops *ops;
	unsigned index;			/* in io->atts */
	struct clt_con *cons;		/* [ncons], 0 is the service connection */
	unsigned ncons;
	atomic_uint state;		/* of the path, enum clt_path_state: requests may be
					 * submitted when it is UP or SILENT, user messages of the
					 * upper layer in OPENING, too */

	struct rtrs_geom geom;
	unsigned depth;			/* requests in flight: of the server's, what this side can
					 * use */
	uint32_t max_io;		/* bytes of data in one: likewise */
	bool new_rkey;			/* the server tells another key of a chunk with each
					 * answer */
	struct rtrs_rbuf *rbufs;	/* [geom.queue_depth] */
	struct rtrs_hb hb;		/* what comes is a sign of life */

	enum clt_mem_way way;		/* with CLT_MEM_BOUNCE @pd and the regions are of this
					 * attempt */
	struct fab_pd *pd;
	struct frwr_caps caps;		/* of the device of @pd, as @mode */
	enum frwr_mode mode;		/* of keys for READs */
	uint32_t dma_lkey;		/* not with CLT_MEM_BOUNCE */
	struct ibv_mr **mrs;		/* [slots.n + 1], clt-mem.c */
	struct ibv_mr *all_mr;		/* instead of them: CLT_MEM_DIRECT */
	struct frwr_pool *keys;		/* CLT_MEM_REREG: [slots.n + 1] regions */
	struct ibv_mr *slots_mr;
	struct frwr_pool *pool;		/* [nwindows] of them, or NULL */
	struct frwr_stats key_stats;	/* service thread: of pools that are gone */
	unsigned nwindows;
};

/* Any thread.  The state may change at any time. */
static inline enum clt_path_state clt_attempt_state(const struct clt_attempt *att)
{
	/* seq_cst: clt-wait-threads.c counts on it */
	return (enum clt_path_state)atomic_load(&att->state);
}

/* May IO be submitted on @att? Any thread. */
static inline bool clt_attempt_is_up(const struct clt_attempt *att)
{
	enum clt_path_state state = clt_attempt_state(att);

	return state == CLT_PATH_UP || state == CLT_PATH_SILENT;
}

/* ---- which path ---- */

extern const char *const clt_pick_policies[CLT_NPOLICIES];
/* clt_pick() where there are several. */
struct clt_attempt *clt_pick_one(struct clt_io *io, unsigned hint);

/* Choose the path for a request that may go over any path; NULL if no path is up.  @hint:
 * clt_op.hint.  Any thread. */
static inline struct clt_attempt *clt_pick(struct clt_io *io, unsigned hint)
{
	if (atomic_load_explicit(&io->natts, memory_order_acquire) != 1)
		return clt_pick_one(io, hint);
	return clt_attempt_is_up(io->atts[0]) ? io->atts[0] : NULL;
}

/* Regions for all slots, and the arena when they need one and there is none.  The arena belongs to
 * the session, because slots do; regions belong to the attempt, because the next one may find
 * another device, and a server that is gone should keep no key.  Service thread, not up.  0, or
 * -errno with @why. */
int clt_mem_attach(struct clt_attempt *att, char *why, size_t len);
/* Deregister the regions of @att.  No connection is left.  Service thread; idempotent. */
void clt_mem_detach(struct clt_attempt *att);
/* Write into @why the reason why memory was not registered, and the remedy. */
void clt_mem_why(const struct clt_attempt *att, int err, char *why, size_t len);
/* Free the memory of the arena. */
void clt_mem_arena_fini(struct clt_arena *arena);

/* Windows for all slots, if the mode has any.  All connections are there.  @lessons outlives the
 * attempt.  Service thread.  0, or -errno with @why. */
int clt_key_open(struct clt_attempt *att, struct frwr_lessons *lessons, char *why, size_t len);
/* Free the windows of @att, and log their use as @name.  Call it twice: when all connections are
 * drained and sealed, and with @again = true once all are destroyed, to free windows that the
 * device refused to free the first time.  Windows that the device refuses again are leaked.
 * Service thread; idempotent. */
void clt_key_close(struct clt_attempt *att, const char *name, bool again);

/* Add up into @sum the use of keys in all attempts of this path.  Service thread. */
void clt_key_stats(const struct clt_attempt *att, struct frwr_stats *sum);
/* Add the statistics of @pool, which is about to be closed, to att->key_stats. */
void clt_key_keep_stats(struct clt_attempt *att, const struct frwr_pool *pool);

/* ---- connections ---- */

struct clt_recv {
	struct fab_cqe cqe;
	struct rtrs_msg_rkey_rsp msg;
};

struct clt_con {
	struct clt_attempt *att;
	unsigned cid;
	unsigned key;			/* unique in the session; not 0 */
	struct fab_conn *fab;		/* changed under send lock and poll role */
	/* send side */
	_Alignas(64) _Atomic(struct clt_slot *) sendq;	/* newest first */
	atomic_int send_lock;
	bool open;			/* send lock: posts are possible */
	unsigned nsent;			/* send lock: numbers requests in order of submission */
	/* send lock: requests of IO with data, by enum rtrs_dir, and those that another path had
	 * and lost */
	struct counter sent[2], sent_bytes[2], failovers;
	/* poll side */
	_Alignas(64) struct clt_wait_con wait;
	struct counter answered;	/* poll role: requests of IO */
	atomic_uint unsent;		/* answered, and waiting for a send completion or
					 * invalidate */
	atomic_uint inflight;		/* slots between clt_tx_queue() and their owners */
	atomic_bool has_inv;		/* a handler queued an invalidate: flush behind it */
	struct fab_cqe recv_cqe;	/* of all empty receives */
	struct clt_recv *recvs;		/* NEW_RKEY: [nrecvs] */
	struct ibv_mr *recvs_mr;
	unsigned nrecvs;
	/* the owner's, service thread */
	struct loop_watch watch;
	atomic_uint state;		/* enum clt_con_state */
};

/* The poll role of @con (clt-wait.h). */
static inline int clt_wait_con_init(struct clt_con *con)
{
	return con->att->io->wait->con_init(con);
}

static inline void clt_wait_con_fini(struct clt_con *con)
{
	con->att->io->wait->con_fini(con);
}

/* Ask for the poll role for the service loop.  True if the service loop has the role now; else
 * clt_con_ops.role_free() is called as soon as the leader releases the role. */
static inline bool clt_wait_con_take(struct clt_con *con)
{
	return con->att->io->wait->con_take(con);
}

/* Give the poll role of the service loop back: waiters may lead again. */
static inline void clt_wait_con_release(struct clt_con *con)
{
	con->att->io->wait->con_release(con);
}

/* Make a leader that sleeps in ppoll() look at @con again (fab_need_rearm, failure).  Any thread;
 * does nothing when no leader sleeps. */
static inline void clt_wait_con_kick(struct clt_con *con)
{
	con->att->io->wait->con_kick(con);
}

/* Tell the owner that @con has failed, for the reason that is printed.  Any thread, also from
 * handlers. */
void clt_tx_fail(struct clt_con *con, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, for the reason that the fabric gives. */
void clt_tx_lost(struct clt_con *con);
/* Send the slots that are queued on @con, unless another thread does already.  Any thread. */
void clt_tx_flush(struct clt_con *con);
/* Are slots queued on @con while no thread sends? Then call clt_tx_flush().  The holder of the send
 * lock sends the queued slots.  No other thread has to stay awake, even if the holder is preempted
 * for long.  Any thread. */
static inline bool clt_tx_must_flush(struct clt_con *con)
{
	return atomic_load(&con->sendq) && !atomic_load(&con->send_lock);
}
/* Must @con be polled, because a post since fab_arm() has left an event that would not wake a
 * sleeping leader, and that cannot wait for the next answer? Under the send lock or the poll role.
 * RACE: a send completion can wait for the answer, unless that has overtaken it.  @unsent is
 * counted by the poller before it arms, which is before we are told to re-arm. */
static inline bool clt_tx_must_poll(struct clt_con *con)
{
	int rearm = fab_need_rearm(con->fab);

	return (rearm & FAB_REARM_EVENTS) || (rearm && atomic_load(&con->unsent));
}
/* No post is going on and none will be until the path comes back: what is queued goes back to its
 * owners.  Service thread. */
void clt_tx_seal(struct clt_con *con);
/* Allow posts on @con.  Service thread. */
void clt_tx_unseal(struct clt_con *con);
/* Give all requests that were in flight back to their owners as CLT_AGAIN, those of a connection in
 * the order in which they were sent.  All connections are drained and sealed.  Service thread. */
void clt_tx_fail_over(struct clt_attempt *att);

/* Post @n receives on @con: of 8 bytes each with NEW_RKEY, else empty.  Service thread.  0 or
 * -errno. */
int clt_rx_post(struct clt_con *con, unsigned n);
/* Free the receives of @con, which is drained and destroyed. */
void clt_rx_free(struct clt_con *con);
/* Dispatch completions.  Returns what fab_dispatch() does; -ENOTCONN was told as a failure.  Poll
 * role. */
int clt_rx_poll(struct clt_con *con, int budget);

/* ---- operations ---- */

enum clt_op_kind {
	CLT_OP_IO,
	/* User messages of RNBD: connection 0, one part. */
	CLT_OP_FREE,			/* on any path, when there is one */
	CLT_OP_BOUND,			/* for one epoch: @ready tells when that is over, and
					 * nothing else ends the wait */
	CLT_OP_JOIN,			/* over @via while that is OPENING, and others are up */
	CLT_OP_HANDSHAKE,		/* the same where no other is up: without a permit */
};

enum clt_op_stage {
	CLT_OP_CUTS,			/* not all of it is covered by parts */
	CLT_OP_CUT,
	CLT_OP_RESTARTS,		/* a part was too large: all anew when none is in flight */
};

struct clt_op {
	/* set by the caller before clt_op_start() */
	struct clt_io *io;
	enum rtrs_dir dir;
	enum clt_op_kind kind;
	/* JOIN, HANDSHAKE: the path that is OPENING; NULL: it is not any more, and the operation
	 * ends with -ECONNABORTED */
	struct clt_attempt *via;
	void *buf;			/* READ target, WRITE source; NULL: no data */
	uint64_t len;			/* bytes covered */
	uint32_t part_max;		/* bytes a part may cover at most; for data also bounded by
					 * the session's max_io_size */
	unsigned hint;			/* spreads over connections */
	/* Write the user message for the part [off, off + len) to @usr[RTRS_USR_MAX]; returns its
	 * length.  Under the send lock, each time the part is sent, with a @tag that is newer
	 * then. */
	size_t (*encode)(const struct clt_op *op, uint64_t off, uint32_t len, uint32_t tag,
			 uint8_t *usr);
	/* May parts be sent now, apart from the path's state?  0 yes, CLT_AGAIN not yet, negative:
	 * fails the operation.  NULL: yes.  Owner. */
	int (*ready)(const struct clt_op *op);
	/* The path was lost with the part in flight: CLT_AGAIN (and NULL) sends it again, over
	 * whichever path is up, anything else ends it with that status. */
	int (*lost)(const struct clt_op *op);
	/* Hears of a part that was sent, last in @epoch, and not answered, and whose permit goes to
	 * others: the server may still carry the part out.  NULL: not called.  Owner. */
	void (*gave_up)(const struct clt_op *op, unsigned epoch);

	/* result, when clt_op_step() returned true */
	int status;			/* 0 or the first error */
	unsigned epoch;			/* oldest in which a part was answered */
	uint64_t waited_ns;		/* with nothing in flight: for a path, a permit, or
					 * @ready */

	/* private */
	struct clt_waiter waiter;
	struct clt_con *con;
	_Atomic(struct clt_slot *) finished;
	struct clt_slot *held;		/* owner: to be sent again */
	struct clt_slot *granted;	/* io->lock */
	struct list permit_link;	/* io->lock: in line for a permit */
	struct list up_link;		/* io->lock: waits for the path */
	bool listed;			/* owner: may be on one of the two */
	uint64_t waits_since_ns;	/* owner; 0: it does not */
	unsigned inflight;		/* owner: submitted, not yet taken from finished */
	uint64_t next_off;
	enum clt_op_stage stage;	/* owner */
};

/* Is @op a user message of RNBD, not IO? */
static inline bool clt_op_is_user(const struct clt_op *op)
{
	return op->kind != CLT_OP_IO;
}

/* Is @op a user message that only goes over the path that is OPENING? */
static inline bool clt_op_is_handshake(const struct clt_op *op)
{
	return op->kind == CLT_OP_HANDSHAKE || op->kind == CLT_OP_JOIN;
}

/* Begin @op with a waiter of @fn (NULL: the calling thread's, clt-wait.h).  Then run it, or step it
 * whenever its waiter was told something. */
void clt_op_start(struct clt_op *op, void (*fn)(struct clt_waiter *w));
/* Take the parts that have finished, and send the parts that can be sent.  True when @op is done:
 * nothing refers to @op any more.  Owner. */
bool clt_op_step(struct clt_op *op);
/* Step @op until it is done; blocks.  Thread of nbdkit; @op was started on it. */
void clt_op_run(struct clt_op *op);

#endif
