/* SPDX-License-Identifier: BSD-3-Clause */
/* Where requests wait.  How they do is the caller's choice, a set of ops given when the client is
 * created (clt_sess_conf.wait):
 *   clt_wait_threads	(clt-wait-threads.c) the calling threads sleep; no other file blocks
 *   clt_loop_wait	(loop/clt-loop.c) all IO runs on the service loop; no thread waits for it
 * The simulation has its own: there is one thread, so notes are remembered, roles are always free,
 * and its loop calls clt_op_step() and clt_rx_poll() itself.
 *
 * WAITER.  One per struct clt_op.  The owner of the operation (a thread of nbdkit) steps it and
 * sleeps between steps; others tell it that a step is worth while:
 *   clt_wait_count()	"one finished slot was pushed to you".  Counted: the pusher touches the
 *			operation last here, so the owner may free it only after as many counts as
 *			slots it took (clt_wait_settle).
 *   clt_wait_look()	"look again" (permit granted, path up).  The caller holds a lock that the
 *			owner takes before it frees the operation.
 * A waiter with @fn has no thread: @fn is called instead, and must only schedule a step; it
 * and the pushes to it must then be on one thread (service loop, simulation).
 *
 * POLL ROLE.  One per IO connection: who may call clt_rx_poll() on it.  The first waiter with
 * something in flight takes it (leader), polls for all, sleeps in ppoll() on the descriptor, and
 * when it has its own answer hands the role to exactly one waiter that still sleeps (follower).
 * When many follow, handing over at each answer costs more than it saves: a thread of the
 * connection, the poller, takes the role until few are left.  While it is awake requests are only
 * queued, and it sends them together; its followers sleep without a lock.  4k at QD32: 5 context
 * switches per request became 2.5, and the CPU time of both ends went from 26 to 17 us.
 * With no waiter the role is free, or with a sleeping poller; the service loop learns of hang-ups
 * only.  After a failure it takes the role for good and drains.  Connection 0 belongs to it. */
#ifndef CLT_WAIT_H
#define CLT_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "counter.h"
#include "list.h"
#include "spin.h"

struct clt_con;
struct clt_waiter;

/* A session has one such table, which is constant.  The functions below and in clt-io.h, which have
 * the contracts, call its functions. */
struct clt_wait_ops {
	void (*count)(struct clt_waiter *w);
	void (*look)(struct clt_waiter *w);
	void (*settle)(struct clt_waiter *w, unsigned n);
	void (*more)(struct clt_waiter *w, struct clt_con *con);
	void (*event)(struct clt_waiter *w);
	unsigned (*hint)(void);
	void (*batch_begin)(void);
	void (*batch_end)(void);
	/* clt_wait_con_*() */
	int (*con_init)(struct clt_con *con);
	void (*con_fini)(struct clt_con *con);
	bool (*con_take)(struct clt_con *con);
	void (*con_release)(struct clt_con *con);
	void (*con_kick)(struct clt_con *con);
	/* A request was queued on @con, which is not awake: have its leader wake up and send it,
	 * with those that follow in the same pass.  False: the caller sends.  NULL: likewise. */
	bool (*con_gathers)(struct clt_con *con);
};

/* Threads wait, and lead each other. */
extern const struct clt_wait_ops clt_wait_threads;

struct clt_waiter {
	const struct clt_wait_ops *ops;
	atomic_uint word;		/* the futex: see clt-wait-threads.c */
	unsigned settled;		/* owner: counts that were matched with slots */
	atomic_int kick_fd;		/* leader: wakes it in ppoll() */
	void (*fn)(struct clt_waiter *w);
	struct list link;		/* wait_con.followers */
};

/* Whose the poll role is. */
enum clt_role {
	CLT_ROLE_WAITERS,		/* the leader's; free, when there is none */
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
	atomic_bool awake;		/* it will send what is queued before it sleeps */
	atomic_int asleep;		/* the leader is in, or about to enter, ppoll() */
	int kick_fd;			/* wakes it there */
	struct spin spin;		/* poll role: before it sleeps */
	struct counter handovers;	/* lock: of the role, from one thread to another */
	struct counter wakeups;		/* of threads that slept here, each for an answer or for the
					 * role */
	void *impl;			/* of an implementation without these threads */
};

/* ---- waiters ---- */

static inline void clt_wait_init(struct clt_waiter *w, const struct clt_wait_ops *ops,
				 void (*fn)(struct clt_waiter *w))
{
	w->ops = ops;
	atomic_init(&w->word, 0);
	w->settled = 0;
	atomic_init(&w->kick_fd, -1);
	w->fn = fn;
	list_init(&w->link);
}

/* Any thread; see above. */
static inline void clt_wait_count(struct clt_waiter *w)
{
	w->ops->count(w);
}

static inline void clt_wait_look(struct clt_waiter *w)
{
	w->ops->look(w);
}

/* Owner: @n more slots were taken from the operation; return when their counts have come. */
static inline void clt_wait_settle(struct clt_waiter *w, unsigned n)
{
	w->ops->settle(w, n);
}

/* Block until @w was told something that its owner has not seen; poll @con, on which it has
 * something in flight (NULL: on none), or follow who does.  May return without news.  Thread of
 * nbdkit. */
static inline void clt_wait_more(struct clt_waiter *w, struct clt_con *con)
{
	w->ops->more(w, con);
}

/* Block until @w was told to look or counted; for waits without an operation. */
static inline void clt_wait_event(struct clt_waiter *w)
{
	w->ops->event(w);
}

/* A number that spreads callers over connections and is the same each time for one thread. */
static inline unsigned clt_wait_hint(const struct clt_wait_ops *ops)
{
	return ops->hint();
}

/* Between these wake-ups are collected; end sends them.  For dispatching and failing many: a
 * thread is woken after the locks and handlers are left.  Nestable. */
static inline void clt_wait_batch_begin(const struct clt_wait_ops *ops)
{
	ops->batch_begin();
}

static inline void clt_wait_batch_end(const struct clt_wait_ops *ops)
{
	ops->batch_end();
}

/* The thread that polls @wc's connection is awake and will call clt_tx_flush() before it sleeps. */
static inline bool clt_wait_con_awake(struct clt_wait_con *wc)
{
	return atomic_load(&wc->awake);
}

#endif
