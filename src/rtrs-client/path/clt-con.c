/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the life of a connection: made, established, drained after a failure of the connection or
 * the path, destroyed.  Also lets the service loop see a hang-up of the peer on an idle connection.
 *
 * Service thread.  A connection has drained when fab_poll() says so while the service loop has the
 * poll role. */
#define FSM_PREFIX CLT_CON_

#include <config.h>

#include <errno.h>
#include <poll.h>

#include "clt-path-priv.h"

static void con_event(struct clt_con *con, enum clt_con_event event)
{
	fsm_run(&clt_con_fsm, &con->state, event, con);
}

/* ---- actions ---- */

/* A polling thread sees the end of the connection by itself, unless a leader left with the answer
 * in front of the end.  So the service loop looks, too, after getting the role. */
static void con_ask(void *object)
{
	struct clt_con *con = object;

	if (clt_wait_con_take(con))
		con_event(con, CLT_CON_EV_ROLE);	/* else clt_con_ops.role_free() comes */
}

static void con_look(void *object)
{
	struct clt_con *con = object;
	short events;

	do {
		fab_arm(con->fab, &events);
	} while (clt_rx_poll(con, CLT_POLL_BUDGET) > 0);
	clt_tx_fail(con, -ECONNRESET, "connection %u: peer closed", con->cid);
	clt_wait_con_release(con);
}

static void con_unwatch(void *object)
{
	struct clt_con *con = object;

	loop_unwatch(&con->watch);
}

static void con_destroy(void *object)
{
	struct clt_con *con = object;

	loop_unwatch(&con->watch);
	fab_conn_destroy(con->fab);
	con->fab = NULL;
	clt_rx_free(con);
}

/* ---- the table ---- */

static const struct fsm_row rows[] = {
	ROW(IN(NONE), MAKE, MADE, NULL),
	ROW(IN(MADE), ESTABLISHED, OPEN, NULL),
	ROW(IN(OPEN), HANGUP, LEFT, con_ask),
	ROW(IN(LEFT), ROLE, OPEN, con_look),
	ROW(IN(OPEN) | IN(LEFT), DRAINED, DRAINED, con_unwatch),
	ROW(IN(MADE) | IN(OPEN) | IN(LEFT) | IN(DRAINED), RELEASE, NONE, con_destroy),

	STAY(ALL & ~IN(NONE), MAKE),
	STAY(ALL & ~IN(MADE), ESTABLISHED),
	STAY(ALL & ~IN(OPEN), HANGUP),
	STAY(ALL & ~IN(LEFT), ROLE),
	STAY(ALL & ~(IN(OPEN) | IN(LEFT)), DRAINED),
	STAY(IN(NONE), RELEASE),
};

static const char *const con_states[CLT_CON_NSTATES] = { "none", "made", "open", "left",
							 "drained" };

static const char *const con_events[CLT_CON_NEVENTS] = {
	"make", "established", "hang-up", "role", "drained", "release",
};

const struct fsm clt_con_fsm = FSM("connection", rows, con_states, con_events);

/* ---- up ---- */

int clt_con_make(struct clt_con *con, struct fab_cm *cm)
{
	int r = fab_conn_create(cm, con, &con->fab);

	if (r < 0)
		con->fab = NULL;
	else
		con_event(con, CLT_CON_EV_MAKE);
	return r;
}

void clt_con_established(struct clt_con *con)
{
	con_event(con, CLT_CON_EV_ESTABLISHED);
}

static bool con_hangup(struct loop_watch *watch)
{
	struct clt_con *con = container_of(watch, struct clt_con, watch);

	loop_unwatch(watch);
	con_event(con, CLT_CON_EV_HANGUP);
	return false;
}

void clt_con_watch_hangup(struct clt_con *con)
{
	clt_path_watch(clt_path_of(con), &con->watch, fab_conn_fd(con->fab), POLLRDHUP, con_hangup);
}

void clt_con_role_free(struct clt_con *con)
{
	if (atomic_load(&con->state) == CLT_CON_LEFT)
		con_ask(con);
}

/* ---- down ---- */

static bool drain_ready(struct loop_watch *watch)
{
	struct clt_con *con = container_of(watch, struct clt_con, watch);

	if (clt_con_drain(con))
		loop_post(clt_path_of(con)->loop, &clt_path_of(con)->drain_msg);
	return false;
}

void clt_con_shut(struct clt_con *con)
{
	loop_unwatch(&con->watch);
	if (clt_con_is_open(con))
		fab_disconnect(con->fab);
	if (con->cid)
		clt_wait_con_kick(con);
}

bool clt_con_drain(struct clt_con *con)
{
	short events = 0;
	int n;

	if (!clt_con_is_open(con))
		return true;
	if (con->cid && !clt_wait_con_take(con))
		return false;		/* clt_con_ops.role_free() comes */
	n = clt_rx_poll(con, CLT_POLL_BUDGET);
	if (n == 0)
		n = fab_arm(con->fab, &events);
	if (n == -ENOTCONN) {
		con_event(con, CLT_CON_EV_DRAINED);
		return true;
	}
	if (n > 0) {
		/* The other work of the loop has its turn, whatever the device still says. */
		loop_post(clt_path_of(con)->loop, &clt_path_of(con)->drain_msg);
		return false;
	}
	clt_path_watch(clt_path_of(con), &con->watch, fab_conn_fd(con->fab), events, drain_ready);
	return false;
}

void clt_con_release(struct clt_con *con)
{
	con_event(con, CLT_CON_EV_RELEASE);
}
