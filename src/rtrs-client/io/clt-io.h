/* SPDX-License-Identifier: BSD-3-Clause */
/* The request engine: how requests travel from their threads to the server and back.  No function
 * blocks, except the functions of clt-wait.h that say so.
 *
 * An operation is a wish of the caller (a read of 64 MiB); a part is the piece of an operation in a
 * single RTRS request.  A part travels in a slot: a permit of the session, with the memory and the
 * state of the request.  The parts of an operation all go over the same connection, CLT_OP_PARTS at
 * a time.
 *
 *	 caller's thread               thread that sends      thread that polls
 *	 clt_op_run
 *	   clt_op_step    clt-op.c
 *	     a permit     clt-slot.c
 *	     copy in      clt-mem.c    (bounce only)
 *	     queue -----------------> clt-tx.c: encode,
 *	                              map, post a chain ---> server
 *	   sleep          clt-wait-threads.c                 clt-rx.c: find the slot
 *	     finished <------------------------------------- nothing left to wait for
 *	   clt_op_step
 *	     unmap, copy out, permit back
 *
 * SENDING is flat combining: a slot is pushed on the list of the connection, and a thread that gets
 * the send lock encodes and posts the whole list as a chain.  A thread that does not get the lock
 * leaves, because the holder looks at the list again after releasing the lock.
 *
 * POLLING is a role: for each connection a single thread has the poll role (clt-wait.h).
 *
 * FAILURE: a request in flight ends by the answer, or when the path has drained.  If the source is
 * the caller's buffer, a request that was answered ends by the send completion, too.  So no
 * operation is done while a connection may still read or write the buffer (doc/decisions.md D12).
 *
 * The engine knows neither paths nor sessions.  The engine's part of a session (clt-sess.h) is
 * struct clt_io.  The engine's part of a path's attempt to connect (clt-path.h) is struct
 * clt_attempt.  The engine calls struct clt_con_ops with events of a connection.  The files of the
 * engine share clt-io-priv.h. */
#ifndef CLT_IO_H
#define CLT_IO_H

#include <stdatomic.h>

#include "bitmap.h"
#include "clt-account.h"
#include "clt-fsm.h"
#include "clt-wait.h"
#include "counter.h"
#include "fab-service.h"
#include "frwr.h"
#include "loop.h"
#include "rtrs-hb.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"

struct clt_attempt;
struct clt_con;
struct clt_slot;

#define CLT_OP_PARTS 16			/* in flight for an operation */
#define CLT_ARENA_SLOTS 128		/* of a session with an arena, whose cost is locked
					 * memory */
#define CLT_PATHS_MAX 16		/* of a session */

/* Statuses that are no answer.  CLT_AGAIN: the request is to be sent again, or given up.
 * CLT_TOO_LARGE: the request does not fit the path that came back, with fewer permits or a lower
 * limit of bytes. */
#define CLT_AGAIN 1
#define CLT_TOO_LARGE 2

/* ---- the engine's part of a session ---- */

/* Permits (doc/protocol.md 2.7).  Permits outlive paths.
 *
 * IO may wait for a user message, when a device is to be opened again, and keeps permits meanwhile.
 * So IO does not get permit 0, whose slot is the control slot: a user message takes permit 0 when
 * the others are in use.  With a queue depth of 1 IO uses permit 0, too.  Then IO and user messages
 * take turns: a slot that is held and not sent does not keep the other slot from being sent. */
struct clt_slot_table {
	struct clt_slot *slot;		/* [n + 1]: the last is the control slot */
	struct clt_slot **order;	/* [n + 1]: clt_tx_fail_over()'s */
	struct bitmap permits;		/* bit i: permit i + 1 */
	atomic_bool zero_taken;		/* permit 0, by IO: only with a queue depth of 1 */
	atomic_bool zero_sent;		/* buf_id 0 is in flight */
	unsigned n;			/* queue depth the session began with */
	atomic_uint limit;		/* ids below @limit may be used; a path that came back may
					 * have lowered @limit */
	atomic_uint ntaken;		/* permits, by IO and by user messages */
	atomic_uint nwaiting;		/* operations in line */
};

/* Memory of slots whose data is copied. */
struct clt_arena {
	uint8_t *mem;			/* NULL: none */
	size_t room;			/* bytes of a slot */
	unsigned n;			/* places: of slots, CLT_ARENA_SLOTS at most, and of the
					 * control slot */
};

/* How the path of an operation is chosen among the paths that are up (clt-pick.c). */
enum clt_policy {
	CLT_POLICY_ROUND_ROBIN,		/* in turns */
	CLT_POLICY_MIN_INFLIGHT,	/* the path with the fewest requests in flight */
	CLT_POLICY_MIN_LATENCY,		/* the path whose heartbeats are answered fastest */
	CLT_NPOLICIES
};

struct clt_io {
	struct loop *loop;		/* of the service thread */
	struct loop *const *loops;	/* [nloops], 1 at least: connection n of each path belongs
					 * to loop (n - 1) % nloops (clt-loop.h) */
	unsigned nloops;
	const struct clt_wait_ops *wait;	/* how requests wait */
	unsigned poll_us;		/* busy-poll for up to so many microseconds before sleeping
					 * (spin.h) */
	struct clt_slot_table slots;
	struct clt_arena arena;
	/* Counts how often the session began again on the server.  The server answers no request of
	 * an earlier epoch.  The service thread changes @epoch while no path is open. */
	unsigned epoch;
	atomic_uint max_io_size;	/* the least of the paths that are or were up; 0: no path
					 * was up */
	struct clt_attempt *atts[CLT_PATHS_MAX];	/* [natts], of the session's paths, in order
							 * of creation */
	atomic_uint natts;		/* grows only; a path that was removed is CLOSED */
	atomic_uint policy;		/* enum clt_policy */
	atomic_uint state;		/* of the session, enum clt_sess_state: from EXPIRED on
					 * operations do not wait for a path */

	atomic_uint naccounts;		/* that are open */
	atomic_uint nholders;		/* of them, those that hold permits */

	pthread_mutex_t lock;		/* lists below, those of accounts, op->granted; taken
					 * before a wait lock */
	struct list users;		/* clt_op.permit_link: user messages that wait for a permit,
					 * in order */
	struct list turns;		/* clt_account.turn, in turns */
	struct list up_waiters;		/* clt_op.up_link */
};

/* Initialize the lines of waiting operations.  @io->loop, wait and poll_us are set; the permits
 * follow with clt_slot_limit(). */
void clt_slot_init(struct clt_io *io);
/* Free the table.  No operation is left. */
void clt_slot_fini(struct clt_io *io);
/* Let @depth permits be used from now on, or all if the table has fewer.  The first call makes the
 * table with @depth permits.  Returns how many could be used before, or -ENOMEM.  Service thread,
 * not up. */
int clt_slot_limit(struct clt_io *io, unsigned depth);
/* Wake all operations that wait for a path, and user messages that wait for a permit.  Any
 * thread. */
void clt_slot_wake(struct clt_io *io);

/* ---- the engine's part of a path's attempt ---- */

/* How the device reaches the caller's data (doc/decisions.md D7).  All requests of an attempt use
 * the same way. */
enum clt_mem_way {
	/* The device has FAB_CAP_DMA_LKEY and FAB_CAP_REREG_MR (tcp): the caller's buffer is used
	 * itself.  The key of a READ is the key of a window, which lives as long as the request.
	 * Windows are bound to a region of all memory, whose own key opens nothing. */
	CLT_MEM_DIRECT,
	/* As CLT_MEM_DIRECT, but the key of a READ is the key of the slot's region, which gets
	 * another key for each READ (FRWR_REREG). */
	CLT_MEM_REREG,
	/* The device has neither (verbs), or registration=static is given.  The caller's buffer may
	 * move or be given back while a registration stands, and then data is lost without a word.
	 * So each slot has a piece of an arena, registered as long as the connections live, and the
	 * request's own thread copies the data.  The key of a READ, of the region or of a window,
	 * opens the slot's own piece and nothing else. */
	CLT_MEM_BOUNCE,
};

/* Digests of an attempt (rtrs-req.h; doc/decisions.md D26). */
enum clt_digest {
	CLT_DIGEST_NONE,
	CLT_DIGEST_WANTED,		/* answers may have them; SESS_INFO asks the server */
	CLT_DIGEST_ON,			/* the server has agreed: each request and answer has one */
};

/* Calls from a connection to its owner. */
struct clt_con_ops {
	/* The connection failed, or the peer broke the protocol.  Any thread, also from handlers;
	 * more than once. */
	void (*failed)(struct clt_con *con, int err, const char *cause);
	/* A heartbeat message or an acknowledgement came.  From a handler. */
	void (*heartbeat)(struct clt_con *con, unsigned type);
	/* Something was posted on connection 0, which the service loop polls.  Any thread. */
	void (*posted)(struct clt_con *con);
	/* The poll role is free, after clt_wait_ops.con_take() has asked for it.  Any thread. */
	void (*role_free)(struct clt_con *con);
};

/* Set by the path while nothing is in flight; constant while the path is up. */
struct clt_attempt {
	struct clt_io *io;
	const struct clt_con_ops *ops;
	unsigned index;			/* in io->atts */
	struct clt_con *cons;		/* [ncons], 0 is the service connection */
	unsigned ncons;
	atomic_uint state;		/* of the path, enum clt_path_state: requests may be
					 * submitted in UP and SILENT, user messages of the upper
					 * layer in OPENING, too */

	struct rtrs_geom geom;
	unsigned depth;			/* requests in flight that this side can use of the
					 * server's */
	uint32_t max_io;		/* bytes of data in a request: likewise */
	bool new_rkey;			/* each answer of the server has another key of a chunk */
	enum clt_digest digest;		/* ON from OPENING on, before any request but SESS_INFO */
	struct rtrs_rbuf *rbufs;	/* [geom.queue_depth] */
	struct rtrs_hb hb;		/* each receive is a sign of life */

	enum clt_mem_way way;		/* with CLT_MEM_BOUNCE @pd and the regions are of this
					 * attempt */
	struct fab_pd *pd;
	struct frwr_caps caps;		/* of the device of @pd, as @mode */
	enum frwr_mode mode;		/* of keys for READs */
	uint32_t dma_lkey;		/* not with CLT_MEM_BOUNCE */
	struct ibv_mr **mrs;		/* [arena.n], clt-mem.c */
	struct ibv_mr *all_mr;		/* instead of @mrs: CLT_MEM_DIRECT */
	struct frwr_pool *keys;		/* CLT_MEM_REREG: [slots.n + 1] regions */
	struct ibv_mr *slots_mr;
	struct frwr_pool *pool;		/* [nwindows] windows, or NULL */
	struct frwr_stats key_stats;	/* service thread: of pools that were closed */
	unsigned nwindows;
};

/* Any thread.  The state may change at any time. */
static inline enum clt_path_state clt_attempt_state(const struct clt_attempt *att)
{
	/* seq_cst: clt-wait-threads.c relies on this order */
	return (enum clt_path_state)atomic_load(&att->state);
}

/* May IO be submitted on @att? Any thread. */
static inline bool clt_attempt_is_up(const struct clt_attempt *att)
{
	enum clt_path_state state = clt_attempt_state(att);

	return state == CLT_PATH_UP || state == CLT_PATH_SILENT;
}

/* A number to spread the caller's operations over connections (clt_op.hint).  Waiting threads get
 * the same number each time.  On loop n of the session the number is n, modulo the loops. */
static inline unsigned clt_io_hint(const struct clt_io *io)
{
	return io->wait->hint(io);
}

/* ---- which path ---- */

extern const char *const clt_pick_policies[CLT_NPOLICIES];
/* The requests in flight on all connections of @att.  Any thread. */
unsigned clt_pick_inflight(const struct clt_attempt *att);
/* clt_pick() for a session with several paths. */
struct clt_attempt *clt_pick_one(struct clt_io *io, unsigned hint);

/* Choose the path for a request that may go over any path; NULL if no path is up.  @hint:
 * clt_op.hint.  Any thread. */
static inline struct clt_attempt *clt_pick(struct clt_io *io, unsigned hint)
{
	if (atomic_load_explicit(&io->natts, memory_order_acquire) != 1)
		return clt_pick_one(io, hint);
	return clt_attempt_is_up(io->atts[0]) ? io->atts[0] : NULL;
}

/* Register regions for all slots, and make the arena at first use, if the regions need an arena.
 * Lowers att->max_io to the room of a slot there.
 * The arena belongs to the session, because slots do.  Regions belong to the attempt: the next
 * attempt may find another device, and a server that is gone should keep no key.  Service thread,
 * not up.  0, or -errno with @why. */
int clt_mem_attach(struct clt_attempt *att, char *why, size_t len);
/* Deregister the regions of @att.  No connection is left.  Service thread; idempotent. */
void clt_mem_detach(struct clt_attempt *att);
/* Write into @why the reason why memory was not registered, and the remedy. */
void clt_mem_why(const struct clt_attempt *att, int err, char *why, size_t len);
/* Free the memory of the arena. */
void clt_mem_arena_fini(struct clt_arena *arena);

/* Make the windows of all slots, if the mode has any.  All connections are established.  @lessons
 * outlives the attempt.  Service thread.  0, or -errno with @why. */
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
	struct rtrs_msg_rsp msg;
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
	uint64_t sent_ms;		/* send lock: when the requests of this post are sent */
	/* send lock: requests of IO with data, by enum rtrs_dir; @failovers: requests that another
	 * path had and lost */
	struct counter sent[2], sent_bytes[2], failovers;
	/* poll side */
	_Alignas(64) struct clt_wait_con wait;
	struct counter answered;	/* poll role: requests of IO */
	atomic_uint unsent;		/* answered, and waiting for a send completion or
					 * invalidate */
	atomic_uint inflight;		/* slots between clt_tx_queue() and their owners */
	atomic_bool has_inv;		/* a handler queued an invalidate: flush behind the
					 * handler */
	struct fab_cqe recv_cqe;	/* of all empty receives */
	unsigned due;			/* poll role: empty receives to be posted */
	struct clt_recv *recvs;		/* with messages in answers: [nrecvs] */
	struct ibv_mr *recvs_mr;
	unsigned nrecvs;
	/* of the owner, service thread */
	struct loop_watch hangup;	/* of the peer, while others have the poll role */
	struct fab_service service;	/* while the service loop has the poll role */
	atomic_uint state;		/* enum clt_con_state */
};

/* Report the failure of @con to the owner, with @fmt as the reason.  Any thread, also from
 * handlers. */
void clt_tx_fail(struct clt_con *con, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Report the failure of @con with the reason of the fabric.  Any thread, also from handlers. */
void clt_tx_lost(struct clt_con *con);
/* Send the slots queued on @con, unless another thread does already.  Any thread. */
void clt_tx_flush(struct clt_con *con);
/* Are slots queued on @con while no thread sends? Then call clt_tx_flush().  The holder of the send
 * lock sends the queued slots.  No other thread has to stay awake, even if the holder is preempted
 * for long.  Any thread. */
static inline bool clt_tx_must_flush(struct clt_con *con)
{
	return atomic_load(&con->sendq) && !atomic_load(&con->send_lock);
}
/* Must @con be polled now?  A post since fab_arm() may have left an event that does not wake a
 * sleeping leader and cannot wait for the next answer.  Under the send lock or the poll role.
 * RACE: a send completion can wait for the answer, unless the answer was first.  The poller counts
 * @unsent before arming, so before the fabric asks for a re-arm. */
static inline bool clt_tx_must_poll(struct clt_con *con)
{
	int rearm = fab_need_rearm(con->fab);

	return (rearm & FAB_REARM_EVENTS) || (rearm && atomic_load(&con->unsent));
}
/* Stop posts on @con until clt_tx_unseal(), wait for the post that is going on, and give queued
 * slots back to the owners.  Service thread. */
void clt_tx_seal(struct clt_con *con);
/* Allow posts on @con.  Service thread. */
void clt_tx_unseal(struct clt_con *con);
/* Give all requests that were in flight back to the owners: as CLT_AGAIN, or with the answer if the
 * server has answered.  The requests of a connection come back in the order of sending.  All
 * connections are drained and sealed.  Returns how many ms the oldest of them was on its way; 0:
 * there was none.  Service thread. */
uint64_t clt_tx_fail_over(struct clt_attempt *att);

/* Post @n receives on @con, with room for a message each if answers may have any, else empty.
 * Service thread.  0 or -errno. */
int clt_rx_post(struct clt_con *con, unsigned n);
/* Free the receives of @con, which is drained and destroyed. */
void clt_rx_free(struct clt_con *con);
/* Dispatch up to @budget completions.  Returns the result of fab_dispatch(); after -ENOTCONN the
 * owner knows of the failure.  Poll role. */
int clt_rx_poll(struct clt_con *con, int budget);

/* ---- operations ---- */

enum clt_op_kind {
	CLT_OP_IO,
	/* User messages of RNBD: connection 0, one part. */
	CLT_OP_FREE,			/* on any path, as soon as a path is up */
	CLT_OP_BOUND,			/* for a single epoch: @ready says when the epoch is over,
					 * and nothing else ends the wait */
	CLT_OP_JOIN,			/* over @via while @via is OPENING, and other paths are
					 * up */
	CLT_OP_HANDSHAKE,		/* the same while no other path is up: without a permit */
};

enum clt_op_stage {
	CLT_OP_CUTS,			/* parts do not cover all of the operation yet */
	CLT_OP_CUT,			/* parts cover all of the operation */
	CLT_OP_RESTARTS,		/* a part was too large: begin again when none is in
					 * flight */
};

struct clt_op {
	/* set by the caller before clt_op_start() */
	struct clt_io *io;
	struct clt_account *account;	/* IO alone; of @io */
	enum rtrs_dir dir;
	enum clt_op_kind kind;
	/* JOIN, HANDSHAKE: the path that is OPENING; NULL: OPENING is over, and the operation ends
	 * with -ECONNABORTED */
	struct clt_attempt *via;
	void *buf;			/* READ target, WRITE source; NULL: no data */
	uint64_t len;			/* bytes covered */
	uint32_t part_max;		/* bytes a part may cover at most; for data also bounded by
					 * the session's max_io_size */
	uint64_t user;			/* a READ shows no byte of another user's requests; 0: of
					 * any user's */
	unsigned hint;			/* clt_io_hint(): spreads operations over the connections of
					 * the owner's loop */
	const void *of;			/* clt_io_each_age() tells it; lives as long as @op */
	uint64_t began_ns;		/* clock_measure_ns() when the user asked; 0:
					 * clt_io_each_age() leaves @op out */
	/* Write the user message for the part [off, off + len) to @usr[RTRS_USR_MAX]; returns the
	 * length.  Under the send lock, each time the part is sent; @tag grows. */
	size_t (*encode)(const struct clt_op *op, uint64_t off, uint32_t len, uint32_t tag,
			 uint8_t *usr);
	/* Say in words what the part asks for.  NULL: a message of the session. */
	void (*tell)(const struct clt_op *op, uint64_t off, uint32_t len, char *text, size_t size);
	/* May parts be sent now, apart from the path's state?  0: yes; CLT_AGAIN: not yet;
	 * negative: the operation fails.  NULL: yes.  Owner. */
	int (*ready)(const struct clt_op *op);
	/* The path was lost with the part in flight.  CLT_AGAIN, or NULL: the part is sent again,
	 * over any path that is up.  Any other status ends the operation. */
	int (*lost)(const struct clt_op *op);
	/* A part was sent, last in @epoch, and never answered, and the permit goes to others: the
	 * server may still carry the part out.  NULL: not called.  Owner. */
	void (*gave_up)(const struct clt_op *op, unsigned epoch);

	/* result, when clt_op_step() returned true */
	int status;			/* 0 or the first error */
	unsigned epoch;			/* oldest in which a part was answered */
	uint64_t waited_ns;		/* time with nothing in flight, waiting for a path, a
					 * permit, or @ready */

	/* private */
	struct clt_waiter waiter;
	struct clt_con *con;
	_Atomic(struct clt_slot *) finished;
	struct clt_slot *held;		/* owner: to be sent again */
	struct clt_slot *granted;	/* io->lock */
	struct list permit_link;	/* io->lock: in line for a permit, of @account or of user
					 * messages */
	struct list up_link;		/* io->lock: waits for the path */
	bool listed;			/* owner: may be on permit_link or up_link */
	uint64_t waits_since_ns;	/* owner; 0: @op does not wait */
	unsigned inflight;		/* owner: submitted, not yet taken from finished */
	uint64_t next_off;
	enum clt_op_stage stage;	/* owner */
};

/* Is @op a user message of RNBD, not IO? */
static inline bool clt_op_is_user(const struct clt_op *op)
{
	return op->kind != CLT_OP_IO;
}

/* True if @op is a user message that only goes over the path that is OPENING. */
static inline bool clt_op_is_handshake(const struct clt_op *op)
{
	return op->kind == CLT_OP_HANDSHAKE || op->kind == CLT_OP_JOIN;
}

/* Begin @op, whose waiter calls @fn (NULL: wakes the calling thread, clt-wait.h).  Call
 * clt_op_run() next, or clt_op_step() at first and after each call of @fn. */
void clt_op_start(struct clt_op *op, void (*fn)(struct clt_waiter *w));
/* Take finished parts, and send further parts if possible.  True when @op is done: nothing refers
 * to @op any more.  Owner. */
bool clt_op_step(struct clt_op *op);
/* Around the steps of several operations, one after the other, by one thread that blocks nowhere in
 * between.  Permits that they give back go to waiting operations at the end, all at once: requests
 * of one account then go together.  Passes do not nest. */
void clt_pass_begin(void);
void clt_pass_end(void);
/* Step @op until @op is done; blocks.  On the thread that has started @op. */
void clt_op_run(struct clt_op *op);

/* Call @fn with clt_op.of and clt_op.began_ns for each operation that has not ended: in flight, to
 * be sent again, or waiting for a path or a permit.  @fn runs under io->lock, several times for an
 * operation of several parts, and maybe not for one that moves from one place to the next.  An
 * operation writes nothing for this but its own slots.  Service thread: what an operation is of
 * must not end meanwhile. */
void clt_io_each_age(struct clt_io *io, void (*fn)(void *arg, const void *of, uint64_t began_ns),
		     void *arg);

#endif
