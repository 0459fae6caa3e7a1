/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a path on the server.  Pure: the table says what happens, srv-path.c performs it.
 *
 * There is one way down for every failure (doc/decisions.md D9), and a dead path keeps nobody waiting: from
 * LINGERING on it holds no name, no uuid and no address pair, so its client is back while slow
 * storage still works on what the dead path had started (doc/decisions.md D14). */
#ifndef SRV_FSM_H
#define SRV_FSM_H

enum srv_path_state {
	SRV_PATH_CONNECTING,	/* from the first CONN_REQ to a valid INFO_REQ; bounded by a timeout */
	SRV_PATH_CONNECTED,	/* in service */
	SRV_PATH_DRAINING,	/* every connection was told to end; their flushes are outstanding */
	SRV_PATH_LINGERING,	/* no connection left; unlinked; requests may still be in storage */
	SRV_PATH_GONE,		/* nothing refers to it but the memory being given back */
	SRV_PATH_NSTATES
};

enum srv_path_event {
	SRV_PATH_EV_INFO,	/* INFO_REQ accepted, chunk memory ready on every thread */
	SRV_PATH_EV_FAIL,	/* any failure, time-out, come-back or shutdown */
	SRV_PATH_EV_DRAINED,	/* the last connection has drained */
	SRV_PATH_EV_QUIET,	/* drained, and the last request has left the storage */
	SRV_PATH_NEVENTS
};

enum srv_path_action {
	SRV_PATH_ACT_NONE,
	SRV_PATH_ACT_UP,	/* post receives, start heartbeats, tell the session, send INFO_RSP */
	SRV_PATH_ACT_CUT,	/* stop timers, disconnect every connection */
	SRV_PATH_ACT_UNLINK,	/* free names, tell the session and those who wait for them */
	SRV_PATH_ACT_FREE,	/* give memory back, free the path and perhaps its session */
};

struct srv_path_edge {
	enum srv_path_state state;
	enum srv_path_event event;
	enum srv_path_state next;
	enum srv_path_action action;
};

/* The edge for @event in @state, or NULL when that cannot happen: a bug of ours, never the peer's. */
const struct srv_path_edge *srv_path_fsm_step(enum srv_path_state state, enum srv_path_event event);

const char *srv_path_state_name(enum srv_path_state state);
const char *srv_path_event_name(enum srv_path_event event);

#endif
