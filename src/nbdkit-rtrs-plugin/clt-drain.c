/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of connections: how the service loop sees that the peer hung up on an idle one, and how all
 * of a path are emptied when it has failed or is closed.
 *
 * Service thread.  A connection has drained when the service loop has its poll role and fab_poll() says so. */
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
		return;			/* clt_con_ops.role_free() comes */
	con->hung_up = false;
	do {
		fab_arm(con->fab, &events);
	} while (clt_rx_poll(con, CLT_POLL_BUDGET) > 0);
	clt_tx_fail(con, -ECONNRESET, "connection %u: peer closed", con->cid);
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
		loop_post(clt_path_of(con)->loop, &clt_path_of(con)->drain_msg);
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
		return false;		/* clt_con_ops.role_free() comes */
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
	clt_path_watch(clt_path_of(con), &con->watch, fab_conn_fd(con->fab), events, drain_ready);
	return false;
}

void clt_drain_look(struct clt_path *path)
{
	for (unsigned i = 1; i < path->att.ncons; i++) {
		if (path->att.cons[i].hung_up)
			hangup_look(&path->att.cons[i]);
	}
}

bool clt_drain_step(struct clt_path *path)
{
	bool all = true;

	for (unsigned i = 0; i < path->att.ncons; i++)
		all = con_drain(&path->att.cons[i]) && all;
	return all;
}

void clt_drain_watch_hangup(struct clt_con *con)
{
	con->hung_up = false;
	clt_path_watch(clt_path_of(con), &con->watch, fab_conn_fd(con->fab), POLLRDHUP, io_hangup);
}

void clt_drain_start(struct clt_path *path)
{
	for (unsigned i = 0; i < path->att.ncons; i++) {
		struct clt_con *con = &path->att.cons[i];

		loop_unwatch(&con->watch);
		if (con->established)
			fab_disconnect(con->fab);
		if (i)
			clt_wait_con_kick(con);
	}
	loop_post(path->loop, &path->drain_msg);
}
