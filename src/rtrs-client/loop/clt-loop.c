/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests wait (clt-wait.h) in a program with all IO on loops.  The loop of a connection is
 * the leader of the connection for ever, and so no thread has to be woken for an answer.
 *
 * A pass of the loop dispatches all completions at once.  Requests sent because of these
 * completions are queued, and go out together right before the thread would sleep.  Operations have
 * a function to schedule a step (clt_op_start()), never a thread; other threads wait for events of
 * the session alone.
 *
 * Owns the leaders.  The thread of the connection's loop, except where another thread is named. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clt-loop.h"

#define WORD_LOOK 0x80000000u		/* struct clt_waiter.word; the rest counts */
#define POLL_BUDGET 64
#define SPIN_INFLIGHT 8			/* with more the loop sleeps, and answers come together */

/* The leader of a connection.  The service thread takes and releases the poll role, under
 * con->wait.lock, and tells the loop by messages.  These run in the order of posting: when the role
 * is the service loop's, none is on its way. */
struct leader {
	struct clt_con *con;
	struct loop *loop;
	struct loop_msg lead, take, kick;
	struct fab_service service;	/* while the loop leads */
	enum { LEADER_SLEEPS, LEADER_LOOKS } wait;	/* for the next answer */
};

/* ---- waiters ---- */

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_told = PTHREAD_COND_INITIALIZER;

static void waiter_news(struct loop_msg *msg)
{
	struct clt_waiter *w = container_of(msg, struct clt_waiter, msg);

	w->fn(w);
}

static void clt_loop_init(struct clt_waiter *w)
{
	w->home = loop_running();
	loop_msg_init(&w->msg, waiter_news);
}

static void clt_loop_fini(struct clt_waiter *w)
{
	if (atomic_load(&w->msg.posted))
		loop_unpost(w->home, &w->msg);
}

/* Tell a thread, which waits for an event.  Nothing of @w is valid afterwards. */
static void thread_tell(struct clt_waiter *w, unsigned count, unsigned flags)
{
	LOCK_SCOPE(&event_lock);
	atomic_store(&w->word, (atomic_load(&w->word) + count) | flags);
	pthread_cond_broadcast(&event_told);
}

static bool at_home(const struct clt_waiter *w)
{
	return loop_running() == w->home;
}

static void clt_loop_count(struct clt_waiter *w)
{
	bool home = at_home(w);

	if (!w->fn) {
		thread_tell(w, 1, 0);
		return;
	}
	if (!home)
		loop_post(w->home, &w->msg);
	/* ORDER: last, on another thread than the owner's.  From the count on the owner may end the
	 * operation, with @w->msg, and then the loop. */
	atomic_fetch_add(&w->word, 1);
	if (home)
		w->fn(w);
}

static void clt_loop_look(struct clt_waiter *w)
{
	if (!w->fn)
		thread_tell(w, 0, WORD_LOOK);
	else if (at_home(w))
		w->fn(w);
	else
		loop_post(w->home, &w->msg);
}

/* The pusher is between the push and the count.  It may also have counted the next slot, which the
 * owner has not taken yet. */
static void clt_loop_settle(struct clt_waiter *w, unsigned n)
{
	w->settled += n;
	while (!clt_wait_reached(atomic_load(&w->word), w->settled, ~WORD_LOOK))
		sched_yield();
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

static unsigned loop_index(const struct clt_io *io)
{
	const struct loop *loop = loop_running();
	unsigned i = 0;

	if (io->nloops == 1)
		return 0;
	while (io->loops[i] != loop) {
		i++;
		assert(i < io->nloops);
	}
	return i;
}

/* The operations of a loop take the connections of the loop in turns. */
static unsigned clt_loop_hint(const struct clt_io *io)
{
	static _Thread_local unsigned turn;

	turn = (turn + 1) % (INT32_MAX / io->nloops);
	return turn * io->nloops + loop_index(io);
}

static void clt_loop_batch_begin(void)
{
}

static void clt_loop_batch_end(void)
{
}

/* ---- the poll role ---- */

static void leader_wake(struct leader *l)
{
	atomic_store(&l->con->wait.awake, true);
	fab_service_wake(&l->service);
}

static void leader_rest(struct leader *l)
{
	l->wait = LEADER_SLEEPS;
	atomic_store(&l->con->wait.awake, false);
}

static int leader_poll(struct fab_service *service, int budget)
{
	struct leader *l = container_of(service, struct leader, service);
	int n = clt_rx_poll(l->con, budget);

	if (n > 0) {
		spin_end(&l->con->wait.spin);
		l->wait = LEADER_SLEEPS;
	}
	atomic_store(&l->con->wait.awake, true);
	return n;
}

/* The connection has failed, and the service side will take the role. */
static void leader_ended(struct fab_service *service)
{
	leader_rest(container_of(service, struct leader, service));
}

static bool few_in_flight(const struct clt_con *con)
{
	unsigned n = atomic_load_explicit(&con->inflight, memory_order_relaxed);

	return n && n <= SPIN_INFLIGHT;
}

/* Look for the answer, instead of a sleep?  Once in a pass, so that the other sockets of the loop
 * are looked at in between, and replies to NBD clients leave. */
static bool leader_looks(struct leader *l)
{
	struct spin *spin = &l->con->wait.spin;
	bool looks;

	if (l->wait == LEADER_LOOKS)
		looks = spin_more(spin) && few_in_flight(l->con);
	else
		looks = few_in_flight(l->con) && spin_begin(spin);
	l->wait = looks ? LEADER_LOOKS : LEADER_SLEEPS;
	return looks;
}

/* Nothing else is left to do: send, and sleep unless answers have come. */
static bool leader_settle(struct fab_service *service)
{
	struct leader *l = container_of(service, struct leader, service);
	bool more;

	clt_tx_flush(l->con);
	more = leader_looks(l);
	/* Without this a provider may not look for new completions. */
	more |= fab_service_arm(service);
	if (!more)
		leader_rest(l);
	return more;
}

static const struct fab_service_ops leader_service = {
	.poll = leader_poll,
	.budget = POLL_BUDGET,
	.before_sleep = leader_settle,
	.ended = leader_ended,
};

/* ---- the role changes hands ---- */

static void leader_begin(struct leader *l)
{
	struct clt_con *con = l->con;
	int r = fab_service_begin(&l->service, l->loop, con->fab);

	if (r < 0)
		clt_tx_fail(con, r, "cannot watch connection %u: %s", con->cid, strerror(-r));
	else
		leader_wake(l);
}

static void leader_end(struct leader *l)
{
	leader_rest(l);
	fab_service_stop(&l->service);
}

static void lead_msg(struct loop_msg *msg)
{
	leader_begin(container_of(msg, struct leader, lead));
}

static void take_msg(struct loop_msg *msg)
{
	struct leader *l = container_of(msg, struct leader, take);
	struct clt_con *con = l->con;

	leader_end(l);
	LOCK_SCOPE(&con->wait.lock);
	con->wait.role = CLT_ROLE_SERVICE;
	/* ORDER: before the unlock, from which on the service loop may end the connection. */
	con->att->ops->role_free(con);
}

static void kick_msg(struct loop_msg *msg)
{
	struct leader *l = container_of(msg, struct leader, kick);

	if (fab_service_runs(&l->service))
		leader_wake(l);
}

static int clt_loop_con_init(struct clt_con *con)
{
	const struct clt_io *io = con->att->io;
	struct leader *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->con = con;
	l->loop = io->loops[(con->cid - 1) % io->nloops];
	loop_msg_init(&l->lead, lead_msg);
	loop_msg_init(&l->take, take_msg);
	loop_msg_init(&l->kick, kick_msg);
	fab_service_init(&l->service, &leader_service);
	pthread_mutex_init(&con->wait.lock, NULL);
	con->wait.impl = l;
	con->wait.role = CLT_ROLE_SERVICE;
	atomic_init(&con->wait.awake, false);
	spin_init(&con->wait.spin, io->poll_us);
	return 0;
}

static bool clt_loop_con_take(struct clt_con *con)
{
	struct leader *l = con->wait.impl;

	LOCK_SCOPE(&con->wait.lock);
	if (con->wait.role == CLT_ROLE_WAITERS && l->loop == con->att->io->loop) {
		leader_end(l);
		con->wait.role = CLT_ROLE_SERVICE;
	} else if (con->wait.role == CLT_ROLE_WAITERS) {
		con->wait.role = CLT_ROLE_WANTED;
		loop_post(l->loop, &l->take);
	}
	return con->wait.role == CLT_ROLE_SERVICE;
}

static void clt_loop_con_fini(struct clt_con *con)
{
	assert(con->wait.role == CLT_ROLE_SERVICE);
	pthread_mutex_destroy(&con->wait.lock);
	free(con->wait.impl);
}

static void clt_loop_con_release(struct clt_con *con)
{
	struct leader *l = con->wait.impl;

	LOCK_SCOPE(&con->wait.lock);
	con->wait.role = CLT_ROLE_WAITERS;
	if (l->loop == con->att->io->loop)
		leader_begin(l);
	else
		loop_post(l->loop, &l->lead);
}

/* Any thread. */
static void clt_loop_con_kick(struct clt_con *con)
{
	struct leader *l = con->wait.impl;

	if (loop_running() == l->loop) {
		kick_msg(&l->kick);
		return;
	}
	LOCK_SCOPE(&con->wait.lock);
	if (con->wait.role == CLT_ROLE_WAITERS)
		loop_post(l->loop, &l->kick);
}

/* Whatever is sent in a pass goes out together, also where the pass began for another reason than
 * an answer. */
static bool clt_loop_con_gathers(struct clt_con *con)
{
	struct leader *l = con->wait.impl;

	if (!fab_service_runs(&l->service))
		return false;
	leader_wake(l);
	return true;
}

const struct clt_wait_ops clt_loop_wait = {
	.init = clt_loop_init,
	.fini = clt_loop_fini,
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
