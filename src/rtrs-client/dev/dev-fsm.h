/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a device and of the handshake of a path, and the events that change the states.  The
 * tables stand in dev-life.c and dev-handshake.c; make doc draws them.  All events come on the
 * service thread. */
#ifndef DEV_FSM_H
#define DEV_FSM_H

#include "fsm.h"

enum dev_state {
	DEV_NEW,			/* no message was sent yet */
	DEV_OPENING,			/* the first OPEN is under way, or CLOSE to settle */
	DEV_AWAITED,			/* the server has no storage for it yet: the first OPEN
					 * is sent again */
	DEV_OPEN,			/* requests flow while a path is up */
	DEV_LOST,			/* the session came back and the device did not: IO waits */
	DEV_FAILED,			/* LOST for longer than io_timeout: IO fails */
	/* The server has another export under the name: whoever opens the name gets another
	 * device, and the users of this one keep what they have open until the epoch ends. */
	DEV_REPLACED,			/* requests flow */
	DEV_STALE,			/* the epoch has ended: IO fails */
	DEV_CLOSING,			/* no reference is left */
	DEV_GONE,			/* freed */
	DEV_NSTATES
};

enum dev_event {
	DEV_EV_WANTED,			/* an open request has come, or waits */
	/* the answer to an OPEN, and to the SESS_INFO behind it */
	DEV_EV_OPENED,			/* the device is the same as before, and settled */
	DEV_EV_UNSETTLED,		/* the device is the same as before, but a write that
					 * was given up may still be in its storage */
	DEV_EV_REFUSED,			/* the server has no such device, or another device
					 * of this name: dev->error */
	DEV_EV_LATER,			/* the first OPEN: the server wants to be asked again */
	DEV_EV_ABORTED,			/* no answer to a message: its path was lost */
	/* the answer to CLOSE */
	DEV_EV_SETTLED,			/* the storage is done with all earlier requests */
	DEV_EV_STUCK,			/* CLOSE failed: dev->error */

	DEV_EV_RENAMED,			/* the name leads to another handle on the server */
	DEV_EV_EPOCH,			/* another epoch begins */
	DEV_EV_EXPIRED,			/* io_timeout is over */
	DEV_EV_DROPPED,			/* the last reference */
	/* the server does not know the device any more */
	DEV_EV_CLOSED,			/* no open request waits */
	DEV_EV_REBORN,			/* an open request waits */
	DEV_NEVENTS
};

/* The handshake of a path that is OPENING (clt-fsm.h), one path at a time.
 *
 * HOW TO ADD A ROUND.  A round is a message that the server must have answered before the path may
 * begin or join an epoch.  The proof of the client's identity is no round: it comes earlier, before
 * the path is made (clt-path.h).  Rounds stand between
 * IDLE and ADMITTED, the only way in: the client sends no SESS_INFO and no OPEN before ADMITTED.
 *
 *	1. a state here, DEV_HANDSHAKE_PROVES, in which the message is under way;
 *	2. in the table, START in IDLE leads to PROVES; ANSWER in PROVES leads to ADMITTED, or to
 *	   the state of the next round; LOST in PROVES leads to IDLE, as in each state with
 *	   a message under way;
 *	3. the action of the first row sends the message with CLT_OP_HANDSHAKE, the action of the
 *	   second row judges the answer: refuse(), or the next event. */
enum dev_handshake_state {
	DEV_HANDSHAKE_IDLE,		/* no path is in its handshake */
	DEV_HANDSHAKE_ADMITTED,		/* all rounds are over; the path begins an epoch or joins */
	DEV_HANDSHAKE_GREETS,		/* the epoch begins: SESS_INFO is under way */
	DEV_HANDSHAKE_OPENS,		/* the OPEN of one device is under way */
	DEV_HANDSHAKE_ASKS,		/* SESS_INFO is under way again, behind the OPENs */
	DEV_HANDSHAKE_JOINS,		/* the path joins: SESS_INFO is under way */
	/* A PROBE is under way: the server has its bit. */
	DEV_HANDSHAKE_PROBES,		/* with data to the server */
	DEV_HANDSHAKE_PROBED,		/* with data from the server */
	DEV_HANDSHAKE_MET,		/* the server has answered; the action of the row judges the
					 * answer, which is the next event */
	DEV_HANDSHAKE_NSTATES
};

enum dev_handshake_event {
	DEV_HANDSHAKE_EV_START,		/* a path is OPENING */
	DEV_HANDSHAKE_EV_BEGIN,		/* the path begins an epoch */
	DEV_HANDSHAKE_EV_JOIN,		/* the path joins the epoch of other paths */
	DEV_HANDSHAKE_EV_ANSWER,	/* the message under way has ended, well or not */
	DEV_HANDSHAKE_EV_LOST,		/* the message has ended with its path or session */
	/* the judgement of an answer */
	DEV_HANDSHAKE_EV_PROBE,		/* the path is to be probed, to the server first */
	DEV_HANDSHAKE_EV_PROBE_BACK,	/* then from there */
	DEV_HANDSHAKE_EV_DEVICE,	/* a device is to be opened next */
	DEV_HANDSHAKE_EV_UNSURE,	/* all devices are asked for; an OPEN may have hidden a
					 * loss */
	DEV_HANDSHAKE_EV_READY,		/* the epoch may begin */
	DEV_HANDSHAKE_EV_SAME,		/* the epoch's server has answered: the path may join */
	DEV_HANDSHAKE_EV_OTHER,		/* the path leads to another server, which can take over the
					 * exports */
	DEV_HANDSHAKE_EV_REFUSED,	/* the path may not come up */
	DEV_HANDSHAKE_NEVENTS
};

extern const struct fsm dev_fsm, dev_handshake_fsm;

#endif
