/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests wait (clt-wait.h): the threads of nbdkit are fibers, and whoever would be the
 * leader of a connection is an actor that polls while any fiber of its host waits for an answer.
 * One thread, so notes are plain counters.  The service loop gets the role as it does from a real
 * leader: later, when that one has let go. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "clt-io.h"
#include "sim-core.h"
#include "sim-fiber.h"
#include "sim-wait.h"

#define LOOK 0x80000000u		/* struct clt_waiter.word; the rest counts */
#define POLL_BUDGET 16

/* Stands for the leader of one connection. */
struct poller {
	struct sim_actor actor;
	struct list link;
	struct clt_con *con;
	struct fab_conn *fab;		/* what was armed last */
	bool kicked, again;
};

static struct list pollers = LIST_INIT(pollers);

/* Fibers that wait in sim_wait_more(), with something in flight on @con. */
struct waiting {
	struct list link;
	const struct clt_con *con;
};

static struct list waiting = LIST_INIT(waiting);

/* Does anybody wait for an answer on @con?  One of them would be its leader. */
static bool con_is_led(const struct clt_con *con)
{
	struct waiting *w;

	list_for_each(w, &waiting, link) {
		if (w->con == con)
			return con->cid != 0;
	}
	return false;
}

/* ---- waiters ---- */

static void sim_wait_count(struct clt_waiter *w)
{
	atomic_fetch_add(&w->word, 1);
	if (w->fn)
		w->fn(w);
}

static void sim_wait_look(struct clt_waiter *w)
{
	atomic_fetch_or(&w->word, LOOK);
	if (w->fn)
		w->fn(w);
}

/* On one thread a count has come when its slot has. */
static void sim_wait_settle(struct clt_waiter *w, unsigned n)
{
	w->settled += n;
	assert((atomic_load(&w->word) & ~LOOK) >= w->settled);
}

static bool was_told(void *arg)
{
	struct clt_waiter *w = arg;
	unsigned word = atomic_load(&w->word);

	return (word & LOOK) || (word & ~LOOK) != w->settled;
}

void sim_wait_event(struct clt_waiter *w)
{
	sim_fiber_wait(was_told, w);
	w->settled = atomic_fetch_and(&w->word, ~LOOK) & ~LOOK;
}

static void sim_wait_more(struct clt_waiter *w, struct clt_con *con)
{
	struct waiting me = { .con = con };

	list_add_tail(&waiting, &me.link);
	sim_fiber_wait(was_told, w);
	list_del(&me.link);
	atomic_fetch_and(&w->word, ~LOOK);
}

static unsigned sim_wait_hint(const struct clt_io *io)
{
	return sim_fiber_id(sim_fiber_self());
}

static void sim_wait_batch_begin(void)
{
}

static void sim_wait_batch_end(void)
{
}

/* ---- the poll role ---- */

static bool poller_ready(struct sim_actor *a)
{
	struct poller *p = container_of(a, struct poller, actor);
	struct clt_con *con = p->con;

	if (con->wait.role == CLT_ROLE_WANTED)
		return true;
	if (con->wait.role == CLT_ROLE_SERVICE || !clt_attempt_is_up(con->att) || !con_is_led(con))
		return false;
	return p->kicked || p->again || p->fab != con->fab ||
	       (sim_fd_ready(fab_conn_fd(con->fab)) & POLLIN);
}

static void poller_run(struct sim_actor *a)
{
	struct poller *p = container_of(a, struct poller, actor);
	struct clt_con *con = p->con;
	short events;
	int n;

	if (con->wait.role == CLT_ROLE_WANTED) {
		con->wait.role = CLT_ROLE_SERVICE;
		con->att->ops->role_free(con);
		return;
	}
	p->kicked = p->again = false;
	p->fab = con->fab;
	atomic_store(&con->wait.awake, false);
	n = clt_rx_poll(con, POLL_BUDGET);
	if (n < 0)
		return;
	clt_tx_flush(con);
	p->again = n > 0 || fab_arm(con->fab, &events) == 1;
	atomic_store(&con->wait.awake, p->again);
}

static struct poller *poller_of(struct clt_con *con)
{
	struct poller *p;

	list_for_each(p, &pollers, link) {
		if (p->con == con)
			return p;
	}
	return NULL;
}

static int sim_wait_con_init(struct clt_con *con)
{
	struct poller *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->con = con;
	p->actor.ready = poller_ready;
	p->actor.run = poller_run;
	list_add_tail(&pollers, &p->link);
	sim_actor_add(&p->actor);
	con->wait.role = CLT_ROLE_SERVICE;
	atomic_init(&con->wait.awake, false);
	return 0;
}

static void sim_wait_con_fini(struct clt_con *con)
{
	struct poller *p = poller_of(con);

	sim_actor_del(&p->actor);
	list_del(&p->link);
	free(p);
}

static bool sim_wait_con_take(struct clt_con *con)
{
	if (con->wait.role != CLT_ROLE_SERVICE)
		con->wait.role = con_is_led(con) ? CLT_ROLE_WANTED : CLT_ROLE_SERVICE;
	return con->wait.role == CLT_ROLE_SERVICE;
}

static void sim_wait_con_release(struct clt_con *con)
{
	struct poller *p = poller_of(con);

	con->wait.role = CLT_ROLE_WAITERS;
	p->kicked = true;
}

static void sim_wait_con_kick(struct clt_con *con)
{
	poller_of(con)->kicked = true;
}

const struct clt_wait_ops sim_wait_fibers = {
	.count = sim_wait_count,
	.look = sim_wait_look,
	.settle = sim_wait_settle,
	.more = sim_wait_more,
	.event = sim_wait_event,
	.hint = sim_wait_hint,
	.batch_begin = sim_wait_batch_begin,
	.batch_end = sim_wait_batch_end,
	.con_init = sim_wait_con_init,
	.con_fini = sim_wait_con_fini,
	.con_take = sim_wait_con_take,
	.con_release = sim_wait_con_release,
	.con_kick = sim_wait_con_kick,
};
