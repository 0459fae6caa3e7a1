/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests wait (clt-wait.h) in a program with all IO on the loop of the session.  The loop is
 * the leader of every connection for ever, and so no thread has to be woken for an answer.
 *
 * A pass of the loop dispatches all completions at once.  Requests sent because of these
 * completions are queued, and go out together right before the thread would sleep.  Operations have
 * a function to schedule a step (clt_op_start()), never a thread; other threads wait for events of
 * the session alone.  Loop's thread, but for clt_loop_event(). */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "cleanup.h"
#include "clt-loop.h"

#define WORD_LOOK 0x80000000u		/* struct clt_waiter.word; the rest counts */
#define POLL_BUDGET 64
#define SPIN_INFLIGHT 2

/* The leader of a connection. */
struct leader {
	struct clt_con *con;
	struct loop_watch watch;
	struct loop_task settle;	/* waits while the connection is awake */
	struct loop_task again;		/* settles once more, behind the work that answers made */
};

/* ---- waiters ---- */

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_told = PTHREAD_COND_INITIALIZER;

/* Add @count and @flags, and wake.  Nothing of a waiter with a thread is valid afterwards. */
static void waiter_tell(struct clt_waiter *w, unsigned count, unsigned flags)
{
	if (w->fn) {
		atomic_store(&w->word, (atomic_load(&w->word) + count) | flags);
		w->fn(w);
		return;
	}
	LOCK_SCOPE(&event_lock);
	atomic_store(&w->word, (atomic_load(&w->word) + count) | flags);
	pthread_cond_broadcast(&event_told);
}

static void clt_loop_count(struct clt_waiter *w)
{
	waiter_tell(w, 1, 0);
}

static void clt_loop_look(struct clt_waiter *w)
{
	waiter_tell(w, 0, WORD_LOOK);
}

/* All runs on one thread: when a slot has come, the count has, too. */
static void clt_loop_settle(struct clt_waiter *w, unsigned n)
{
	w->settled += n;
}

static void clt_loop_event(struct clt_waiter *w)
{
	LOCK_SCOPE(&event_lock);
	while (atomic_load(&w->word) == w->settled)
		pthread_cond_wait(&event_told, &event_lock);
	w->settled = atomic_load(&w->word) & ~WORD_LOOK;
	atomic_store(&w->word, w->settled);
}

/* No operation here has a thread. */
static void clt_loop_more(struct clt_waiter *w, struct clt_con *con)
{
	abort();
}

/* Operations take connections in turns. */
static unsigned clt_loop_hint(void)
{
	static atomic_uint next;

	return atomic_fetch_add(&next, 1) & INT32_MAX;
}

static void clt_loop_batch_begin(void)
{
}

static void clt_loop_batch_end(void)
{
}

/* ---- the poll role ---- */

static struct loop *leader_loop(const struct leader *l)
{
	return l->con->att->io->loop;
}

static void leader_wake(struct leader *l)
{
	atomic_store(&l->con->wait.awake, true);
	loop_before_sleep(leader_loop(l), &l->settle);
}

static void leader_rest(struct leader *l)
{
	loop_undefer(&l->settle);
	loop_undefer(&l->again);
	atomic_store(&l->con->wait.awake, false);
}

/* Dispatch completions; returns how many.  Negative: the connection has failed, and the service
 * side will take the role. */
static int leader_poll(struct leader *l)
{
	int n = clt_rx_poll(l->con, POLL_BUDGET);

	if (n > 0)
		spin_end(&l->con->wait.spin);
	if (n < 0) {
		leader_rest(l);
		loop_unwatch(&l->watch);
	}
	return n;
}

static bool leader_ready(struct loop_watch *watch)
{
	struct leader *l = container_of(watch, struct leader, watch);

	if (leader_poll(l) >= 0)
		leader_wake(l);
	return false;
}

static bool few_in_flight(const struct clt_con *con)
{
	unsigned n = atomic_load_explicit(&con->inflight, memory_order_relaxed);

	return n && n <= SPIN_INFLIGHT;
}

/* Busy-poll instead of a sleep.  Returns the result of leader_poll(), or 0. */
static int leader_spin(struct leader *l)
{
	struct clt_con *con = l->con;
	short events;
	int n = 0;

	if (!few_in_flight(con) || !spin_begin(&con->wait.spin))
		return 0;
	do {
		fab_arm(con->fab, &events);	/* without this a provider may not look for new
						 * completions */
		n = leader_poll(l);
	} while (n == 0 && spin_more(&con->wait.spin));
	return n;
}

/* Nothing else is left to do: send, and sleep unless answers have come. */
static void leader_settle(struct loop_task *task)
{
	struct leader *l = container_of(task, struct leader, settle);
	struct clt_con *con = l->con;
	short events = POLLIN;
	int n;

	clt_tx_flush(con);
	n = leader_spin(l);
	if (n == 0 && fab_arm(con->fab, &events) > 0)
		n = leader_poll(l) < 0 ? -1 : 1;
	if (n > 0)
		loop_defer(leader_loop(l), &l->again);
	if (n)
		return;
	leader_rest(l);
	loop_watch_events(&l->watch, events);
}

static void leader_again(struct loop_task *task)
{
	struct leader *l = container_of(task, struct leader, again);

	loop_before_sleep(leader_loop(l), &l->settle);
}

static int clt_loop_con_init(struct clt_con *con)
{
	struct leader *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->con = con;
	loop_task_init(&l->settle, leader_settle);
	loop_task_init(&l->again, leader_again);
	con->wait.impl = l;
	con->wait.role = CLT_ROLE_SERVICE;
	atomic_init(&con->wait.awake, false);
	spin_init(&con->wait.spin, con->att->io->poll_us);
	return 0;
}

static bool clt_loop_con_take(struct clt_con *con)
{
	struct leader *l = con->wait.impl;

	con->wait.role = CLT_ROLE_SERVICE;
	leader_rest(l);
	loop_unwatch(&l->watch);
	return true;
}

static void clt_loop_con_fini(struct clt_con *con)
{
	clt_loop_con_take(con);
	free(con->wait.impl);
}

static void clt_loop_con_release(struct clt_con *con)
{
	struct leader *l = con->wait.impl;
	int r;

	l->watch.fd = fab_conn_fd(con->fab);
	l->watch.events = POLLIN;
	l->watch.ready = leader_ready;
	r = l->watch.loop ? 0 : loop_watch(leader_loop(l), &l->watch);
	if (r < 0) {
		clt_tx_fail(con, r, "no memory to watch connection %u", con->cid);
		return;
	}
	con->wait.role = CLT_ROLE_WAITERS;
	leader_wake(l);
}

static void clt_loop_con_kick(struct clt_con *con)
{
	if (con->wait.role == CLT_ROLE_WAITERS)
		leader_wake(con->wait.impl);
}

/* Whatever is sent in a pass goes out together, also where the pass began for another reason than
 * an answer. */
static bool clt_loop_con_gathers(struct clt_con *con)
{
	clt_loop_con_kick(con);
	return con->wait.role == CLT_ROLE_WAITERS;
}

const struct clt_wait_ops clt_loop_wait = {
	.count = clt_loop_count,
	.look = clt_loop_look,
	.settle = clt_loop_settle,
	.more = clt_loop_more,
	.event = clt_loop_event,
	.hint = clt_loop_hint,
	.batch_begin = clt_loop_batch_begin,
	.batch_end = clt_loop_batch_end,
	.con_init = clt_loop_con_init,
	.con_fini = clt_loop_con_fini,
	.con_take = clt_loop_con_take,
	.con_release = clt_loop_con_release,
	.con_kick = clt_loop_con_kick,
	.con_gathers = clt_loop_con_gathers,
};
