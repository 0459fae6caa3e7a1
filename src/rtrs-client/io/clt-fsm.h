/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a client's session, path (doc/protocol.md 6.1, ours has more) and connection, and
 * the events that move a state.  The tables stand in clt-sess.c, clt-path-life.c and clt-con.c;
 * make doc draws the tables. */
#ifndef CLT_FSM_H
#define CLT_FSM_H

#include "fsm.h"

enum clt_path_state {
	CLT_PATH_IDLE,			/* not started */
	CLT_PATH_RESOLVING,		/* the resolver is asked for the addresses of a name */
	CLT_PATH_CONNECTING,		/* connections are made one after another */
	CLT_PATH_PROVING,		/* connection 0 carries the proof of who the client is */
	CLT_PATH_PROVEN,		/* connection 0 drains; it and the others are made again,
					 * with the proof */
	CLT_PATH_INFO,			/* INFO_REQ was sent */
	CLT_PATH_OPENING,		/* RNBD: session info, devices opened again */
	CLT_PATH_STANDBY,		/* leads to another server than the paths that are up, which
					 * can take over the exports; no request flows */
	CLT_PATH_UP,			/* requests flow */
	CLT_PATH_SILENT,		/* requests flow, and a heartbeat has had no answer for an
					 * interval */
	CLT_PATH_FAILING,		/* some thread has seen a failure; the service loop will
					 * hear of the failure */
	CLT_PATH_DRAINING,		/* waiting until nothing is in flight */
	CLT_PATH_BACKOFF,		/* waiting for the next try */
	CLT_PATH_CLOSING,		/* draining, and not coming back */
	CLT_PATH_CLOSED,		/* can only be freed */
	CLT_PATH_NSTATES,
};

/* All but FAIL happen on the service thread. */
enum clt_path_event {
	CLT_PATH_EV_START,
	CLT_PATH_EV_LOOK_UP,		/* of a name, no address is left that was not tried */
	CLT_PATH_EV_FOUND,
	CLT_PATH_EV_ASKED,		/* connection 0 is established, and the server asks for a
					 * proof on it */
	CLT_PATH_EV_PROVEN,		/* both ends have proven who they are */
	CLT_PATH_EV_CON_UP,		/* a connection is established, more are to come */
	CLT_PATH_EV_ALL_UP,		/* the last connection is established */
	CLT_PATH_EV_INFO_RSP,
	CLT_PATH_EV_OPENED,
	CLT_PATH_EV_STANDS_BY,		/* the other paths lead to another server */
	CLT_PATH_EV_WANTED,		/* an epoch has begun, or no path is up */
	CLT_PATH_EV_SILENCE,		/* when a heartbeat is due: the previous heartbeat has no
					 * answer yet */
	CLT_PATH_EV_ANSWER,		/* when a heartbeat is due: the previous heartbeat was
					 * answered */
	CLT_PATH_EV_FAIL,
	CLT_PATH_EV_LOST,		/* the service loop has heard of FAIL */
	CLT_PATH_EV_DRAINED,		/* nothing of this path is in flight */
	CLT_PATH_EV_RETRY,
	CLT_PATH_EV_CLOSE,
	CLT_PATH_NEVENTS,
};

enum clt_sess_state {
	CLT_SESS_NEW,			/* the first attempt has not ended */
	CLT_SESS_UP,
	CLT_SESS_DOWN,			/* requests wait for a path */
	CLT_SESS_EXPIRED,		/* requests waited for too long: all fail */
	CLT_SESS_CLOSING,		/* all requests fail */
	CLT_SESS_CLOSED,
	CLT_SESS_NSTATES,
};

enum clt_sess_event {
	CLT_SESS_EV_UP,			/* a path is up */
	CLT_SESS_EV_DOWN,		/* no path is up */
	CLT_SESS_EV_TIMEOUT,		/* io_timeout has passed */
	CLT_SESS_EV_NO_WAIT,		/* io_timeout is 0 */
	CLT_SESS_EV_CLOSE,
	CLT_SESS_EV_CLOSED,		/* all paths are closed */
	CLT_SESS_NEVENTS,
};

enum clt_con_state {
	CLT_CON_NONE,
	CLT_CON_MADE,			/* connecting */
	CLT_CON_OPEN,			/* established; from here on the connection has to drain */
	CLT_CON_LEFT,			/* the peer hung up; the service loop waits for the poll
					 * role, to look */
	CLT_CON_DRAINED,		/* nothing is in flight */
	CLT_CON_NSTATES,
};

enum clt_con_event {
	CLT_CON_EV_MAKE,
	CLT_CON_EV_ESTABLISHED,
	CLT_CON_EV_HANGUP,
	CLT_CON_EV_ROLE,		/* the poll role is the service loop's */
	CLT_CON_EV_DRAINED,
	CLT_CON_EV_RELEASE,
	CLT_CON_NEVENTS,
};

extern const struct fsm clt_path_fsm, clt_sess_fsm, clt_con_fsm;

#endif
