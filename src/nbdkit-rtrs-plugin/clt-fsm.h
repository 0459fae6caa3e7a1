/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a client path: a pure table (doc/protocol.md 6.1, ours has one more for RNBD).  The shell
 * is clt-path.c. */
#ifndef CLT_FSM_H
#define CLT_FSM_H

enum clt_state {
	CLT_IDLE,			/* not started */
	CLT_CONNECTING,			/* connections are made one after another */
	CLT_INFO,			/* INFO_REQ was sent */
	CLT_OPENING,			/* RNBD: session info, devices opened again */
	CLT_UP,				/* requests flow */
	CLT_DRAINING,			/* failed: waiting until nothing is in flight */
	CLT_BACKOFF,			/* waiting for the next try */
	CLT_CLOSING,			/* draining, and not coming back */
	CLT_CLOSED,			/* can only be freed */
	CLT_NSTATES,
};

enum clt_event {
	CLT_EV_START,
	CLT_EV_CON_UP,			/* one connection established, more to come */
	CLT_EV_ALL_UP,			/* the last one */
	CLT_EV_INFO_RSP,
	CLT_EV_OPENED,
	CLT_EV_FAIL,			/* at most once between START or RETRY and DRAINED */
	CLT_EV_DRAINED,			/* nothing of this path is in flight */
	CLT_EV_RETRY,
	CLT_EV_CLOSE,
	CLT_NEVENTS,
};

#define CLT_ACT_CONNECT 0x001u		/* new attempt: connection 0 */
#define CLT_ACT_NEXT_CON 0x002u
#define CLT_ACT_SEND_INFO 0x004u
#define CLT_ACT_OPEN 0x008u		/* the session's upper layer introduces itself */
#define CLT_ACT_UP 0x010u		/* heartbeats; let requests through */
#define CLT_ACT_DOWN 0x020u		/* stop heartbeats; requests wait */
#define CLT_ACT_DRAIN 0x040u		/* disconnect, take over polling */
#define CLT_ACT_RELEASE 0x080u		/* destroy connections, send requests back to their owners */
#define CLT_ACT_BACKOFF 0x100u		/* arm the timer of the next try */
#define CLT_ACT_CLOSED 0x200u

/* Returns the actions of @event in *@state and advances it.  A pair that is not in the table is a
 * bug of ours: aborts. */
unsigned clt_fsm_step(enum clt_state *state, enum clt_event event);
/* "connecting"; "up"; ... */
const char *clt_fsm_state_name(enum clt_state state);

#endif
