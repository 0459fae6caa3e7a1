/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of connections: how the service loop sees that the peer hung up on an idle one, and how all
 * of a path are emptied when it has failed or is closed.
 *
 * Service thread, except clt_drain_role_free().  A connection has drained when the service loop has its
 * poll role and fab_poll() says so; with the last one the path gets CLT_EV_DRAINED. */
#include <config.h>

#include <errno.h>
#include <poll.h>

#include "clt-path-priv.h"

/* ---- hang-up of an IO connection ---- */

/* Who polls sees the end by itself, unless it stands behind an answer with which a leader left.
 * So the service loop looks, too, when it gets the role. */
static void hangup_look(struct clt_con *con)
{
	short events;

	if (!clt_wait_con_take(con))
		return;			/* clt_drain_role_free() comes */
	con->hung_up = false;
	do {
		fab_arm(con->fab, &events);
	} while (clt_rx_poll(con, CLT_POLL_BUDGET) > 0);
	clt_path_fail(con->path, -ECONNRESET, "connection %u: peer closed", con->cid);
	clt_wait_con_release(con);
}

static bool io_hangup(struct loop_watch *watch)
{
	struct clt_con *con = container_of(watch, struct clt_con, watch);

	loop_unwatch(watch);
	con->hung_up = true;
	hangup_look(con);
	return false;
}

/* ---- draining ---- */

static bool con_drain(struct clt_con *con);

static bool drain_ready(struct loop_watch *watch)
{
	struct clt_con *con = container_of(watch, struct clt_con, watch);

	if (con_drain(con))
		loop_post(con->path->sess->loop, &con->path->drain_msg);
	return false;
}

/* True when nothing of @con is in flight any more. */
static bool con_drain(struct clt_con *con)
{
	short events = 0;
	int n;

	if (!con->established)
		return true;
	if (con->cid && !clt_wait_con_take(con))
		return false;		/* clt_drain_role_free() comes */
	do {
		n = con->drained ? -ENOTCONN : clt_rx_poll(con, CLT_POLL_BUDGET);
		if (n == 0)
			n = fab_arm(con->fab, &events);
	} while (n > 0);
	if (n == -ENOTCONN) {
		con->drained = true;
		loop_unwatch(&con->watch);
		return true;
	}
	clt_path_watch(con->path, &con->watch, fab_conn_fd(con->fab), events, drain_ready);
	return false;
}

/* After clt_drain_role_free(), too. */
static void path_drain_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, drain_msg);
	bool all = true;

	for (unsigned i = 1; i < path->ncons && path->state == CLT_UP; i++) {
		if (path->cons[i].hung_up)
			hangup_look(&path->cons[i]);
	}
	if (path->state != CLT_DRAINING && path->state != CLT_CLOSING)
		return;
	for (unsigned i = 0; i < path->ncons; i++)
		all = con_drain(&path->cons[i]) && all;
	if (all)
		clt_path_event(path, CLT_EV_DRAINED);
}

void clt_drain_role_free(struct clt_con *con)
{
	loop_post(con->path->sess->loop, &con->path->drain_msg);
}

void clt_drain_init(struct clt_path *path)
{
	loop_msg_init(&path->drain_msg, path_drain_msg);
}

void clt_drain_watch_hangup(struct clt_con *con)
{
	con->hung_up = false;
	clt_path_watch(con->path, &con->watch, fab_conn_fd(con->fab), POLLRDHUP, io_hangup);
}

void clt_drain_start(struct clt_path *path)
{
	for (unsigned i = 0; i < path->ncons; i++) {
		struct clt_con *con = &path->cons[i];

		loop_unwatch(&con->watch);
		if (con->established)
			fab_disconnect(con->fab);
		if (i)
			clt_wait_con_kick(con);
	}
	loop_post(path->sess->loop, &path->drain_msg);
}
