/* SPDX-License-Identifier: BSD-3-Clause */
/* Where requests wait.  The way to wait is the caller's choice, a set of ops given when the client
 * is created (clt_sess_conf.wait):
 *   clt_wait_threads	(clt-wait-threads.c) the calling threads sleep; no other file blocks
 *   clt_loop_wait	(loop/clt-loop.c) all IO runs on loops; no thread waits
 * The simulation has another set: with a single thread notes are remembered, roles are always free,
 * and the loop of the simulation calls clt_op_step() and clt_rx_poll() itself.
 *
 * WAITER.  Each struct clt_op has a waiter.  The owner of the operation (a thread of nbdkit) steps
 * the operation and sleeps between steps.  Others tell the waiter that a step is worth while:
 *   clt_wait_count()	"a finished slot was pushed to you".  Here the pusher touches the
 *			operation for the last time, so clt_wait_settle() awaits as many counts as
 *			the owner took slots, before the owner frees the operation.
 *   clt_wait_look()	"look again" (permit granted, path up).  The caller holds a lock that the
 *			owner takes before freeing the operation.
 * A waiter with @fn has no thread: @fn is called instead, and must only schedule a step.  @fn runs
 * on the thread that has initialised the waiter, a loop's; other threads may tell the waiter, too.
 *
 * POLL ROLE.  Each IO connection has a poll role: the right to call clt_rx_poll() on the
 * connection.  The first waiter with something in flight takes the role (leader), polls for all,
 * and sleeps in ppoll() on the descriptor.  A leader that has its own answer hands the role to
 * exactly one waiter that still sleeps (follower).  When many follow, a hand-over at each answer
 * costs more than it saves.  Then a thread of the connection, the poller, takes the role until few
 * are left.  While the poller is awake, requests are only queued, and the poller sends the whole
 * queue together; followers of the poller sleep without a lock.  4k at QD32: 5 context switches per
 * request became 2.5, and the CPU time of both ends went from 26 to 17 us.  With no waiter the role
 * is free, or a sleeping poller has the role; the service loop learns of hang-ups only.  After a
 * failure the service loop takes the role for good and drains.  Connection 0 belongs to the service
 * loop. */
#ifndef CLT_WAIT_H
#define CLT_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "counter.h"
#include "list.h"
#include "loop.h"
#include "spin.h"

struct clt_con;
struct clt_io;
struct clt_waiter;

/* A way to wait.  A session has a single table, which is constant.  The contracts are here, or at
 * the functions below that call those of the table. */
struct clt_wait_ops {
	void (*init)(struct clt_waiter *w);	/* NULL: nothing more is to be done */
	void (*fini)(struct clt_waiter *w);	/* likewise */
	void (*count)(struct clt_waiter *w);
	void (*look)(struct clt_waiter *w);
	void (*settle)(struct clt_waiter *w, unsigned n);
	void (*more)(struct clt_waiter *w, struct clt_con *con);
	void (*event)(struct clt_waiter *w);
	unsigned (*hint)(const struct clt_io *io);
	void (*batch_begin)(void);
	void (*batch_end)(void);
	/* Make the poll role of @con, which the service loop has at first.  0 or -errno. */
	int (*con_init)(struct clt_con *con);
	/* Free the poll role of @con.  The service loop has the role, and no waiter is left. */
	void (*con_fini)(struct clt_con *con);
	/* Ask for the poll role for the service loop.  True if the service loop has the role now;
	 * else clt_con_ops.role_free() is called as soon as the leader releases the role. */
	bool (*con_take)(struct clt_con *con);
	/* Give the poll role of the service loop back: waiters may lead again. */
	void (*con_release)(struct clt_con *con);
	/* Make a leader that sleeps in ppoll() look at @con again (fab_need_rearm, failure).  Any
	 * thread; does nothing when no leader sleeps. */
	void (*con_kick)(struct clt_con *con);
	/* A request was queued on @con, which is not awake: have its leader wake up and send it,
	 * with those that follow in the same pass.  False: the caller sends.  NULL: likewise. */
	bool (*con_gathers)(struct clt_con *con);
};

/* Threads wait, and lead each other. */
extern const struct clt_wait_ops clt_wait_threads;

struct clt_waiter {
	const struct clt_wait_ops *ops;
	atomic_uint word;		/* the futex (clt-wait-threads.c); counts and flags
					 * (clt-loop.c) */
	unsigned settled;		/* owner: counts that were matched with slots */
	atomic_int kick_fd;		/* wakes the leader in ppoll() */
	void (*fn)(struct clt_waiter *w);
	struct list link;		/* wait_con.followers */
	/* clt-loop.c: for news from a thread that is not the owner's */
	struct loop *home;
	struct loop_msg msg;
};

/* The holder of the poll role. */
enum clt_role {
	CLT_ROLE_WAITERS,		/* the leader's; free without a leader */
	CLT_ROLE_WANTED,		/* the leader's, and the service loop's next */
	CLT_ROLE_SERVICE,		/* the service loop's */
};

struct clt_wait_con {
	pthread_mutex_t lock;		/* leader, followers, role; innermost lock */
	struct clt_waiter *leader;
	struct list followers;
	unsigned nfollowers;
	enum clt_role role;
	struct clt_waiter poller;	/* a follower by trade */
	pthread_t thread;
	atomic_bool polled;		/* the poller has the role until nothing is in flight */
	atomic_bool awake;		/* the poller will send all queued requests before
					 * sleeping */
	atomic_int asleep;		/* the leader is in, or about to enter, ppoll() */
	int kick_fd;			/* wakes the leader in ppoll() */
	struct spin spin;		/* poll role: how long to busy-poll before sleeping */
	struct counter handovers;	/* lock: of the role, from one thread to another */
	struct counter wakeups;		/* of threads that slept here, each for an answer or for the
					 * role */
	void *impl;			/* of another implementation (clt-loop.c) */
};

/* ---- waiters ---- */

/* Initialize @w without news.  @fn NULL: the owner is a thread.  Owner. */
static inline void clt_wait_init(struct clt_waiter *w, const struct clt_wait_ops *ops,
				 void (*fn)(struct clt_waiter *w))
{
	w->ops = ops;
	atomic_init(&w->word, 0);
	w->settled = 0;
	atomic_init(&w->kick_fd, -1);
	w->fn = fn;
	list_init(&w->link);
	if (ops->init)
		ops->init(w);
}

/* @w is told of no more: no count and no lock of a caller of clt_wait_look() is outstanding.  @fn
 * does not run any more.  Owner. */
static inline void clt_wait_fini(struct clt_waiter *w)
{
	if (w->ops->fini)
		w->ops->fini(w);
}

/* Count a finished slot of the operation.  Any thread; the operation is not valid afterwards. */
static inline void clt_wait_count(struct clt_waiter *w)
{
	w->ops->count(w);
}

/* Tell the owner to look again.  Any thread, under a lock as described above. */
static inline void clt_wait_look(struct clt_waiter *w)
{
	w->ops->look(w);
}

/* Have the counts @count reached @settled?  Both wrap behind @mask.  Others count meanwhile, also
 * slots that the owner took none of yet: whoever waits compares by order. */
static inline bool clt_wait_reached(unsigned count, unsigned settled, unsigned mask)
{
	return ((count - settled) & mask) <= mask / 2;
}

/* The owner took @n more slots from the operation: return when at least the counts of all of these
 * have come.  Owner. */
static inline void clt_wait_settle(struct clt_waiter *w, unsigned n)
{
	w->ops->settle(w, n);
}

/* Block until @w has news for the owner.  Meanwhile poll @con, on which the operation has something
 * in flight (NULL: on none), or follow the leader of @con.  May return without news.  Owner, a
 * thread of nbdkit. */
static inline void clt_wait_more(struct clt_waiter *w, struct clt_con *con)
{
	w->ops->more(w, con);
}

/* Block until @w was told to look or counted; for waits without an operation. */
static inline void clt_wait_event(struct clt_waiter *w)
{
	w->ops->event(w);
}


/* From here on collect wake-ups, until clt_wait_batch_end().  For the dispatch or failure of many
 * requests: threads are woken after the locks and handlers are left.  Nestable. */
static inline void clt_wait_batch_begin(const struct clt_wait_ops *ops)
{
	ops->batch_begin();
}

/* Send the wake-ups that were collected. */
static inline void clt_wait_batch_end(const struct clt_wait_ops *ops)
{
	ops->batch_end();
}

/* Is the polling thread of @wc's connection awake? Then that thread calls clt_tx_flush() before
 * sleeping. */
static inline bool clt_wait_con_awake(struct clt_wait_con *wc)
{
	return atomic_load(&wc->awake);
}

#endif
