/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of path states.  Pure: no IO, no thread, no time. */
#include <assert.h>
#include <stdlib.h>

#include "clt-fsm.h"
#include "util.h"

struct clt_edge {
	enum clt_state from;
	enum clt_event event;
	enum clt_state to;
	unsigned actions;
};

/* FAIL may cross a CLOSE on its way to the service loop, hence its rows in CLOSING and CLOSED. */
static const struct clt_edge edges[] = {
	{ CLT_IDLE, CLT_EV_START, CLT_CONNECTING, CLT_ACT_CONNECT },
	{ CLT_IDLE, CLT_EV_CLOSE, CLT_CLOSED, CLT_ACT_CLOSED },

	{ CLT_CONNECTING, CLT_EV_CON_UP, CLT_CONNECTING, CLT_ACT_NEXT_CON },
	{ CLT_CONNECTING, CLT_EV_ALL_UP, CLT_INFO, CLT_ACT_SEND_INFO },
	{ CLT_CONNECTING, CLT_EV_FAIL, CLT_DRAINING, CLT_ACT_DRAIN },
	{ CLT_CONNECTING, CLT_EV_CLOSE, CLT_CLOSING, CLT_ACT_DRAIN },

	{ CLT_INFO, CLT_EV_INFO_RSP, CLT_OPENING, CLT_ACT_OPEN },
	{ CLT_INFO, CLT_EV_FAIL, CLT_DRAINING, CLT_ACT_DRAIN },
	{ CLT_INFO, CLT_EV_CLOSE, CLT_CLOSING, CLT_ACT_DRAIN },

	{ CLT_OPENING, CLT_EV_OPENED, CLT_UP, CLT_ACT_UP },
	{ CLT_OPENING, CLT_EV_FAIL, CLT_DRAINING, CLT_ACT_DRAIN },
	{ CLT_OPENING, CLT_EV_CLOSE, CLT_CLOSING, CLT_ACT_DRAIN },

	{ CLT_UP, CLT_EV_FAIL, CLT_DRAINING, CLT_ACT_DOWN | CLT_ACT_DRAIN },
	{ CLT_UP, CLT_EV_CLOSE, CLT_CLOSING, CLT_ACT_DOWN | CLT_ACT_DRAIN },

	{ CLT_DRAINING, CLT_EV_DRAINED, CLT_BACKOFF, CLT_ACT_RELEASE | CLT_ACT_BACKOFF },
	{ CLT_DRAINING, CLT_EV_CLOSE, CLT_CLOSING, 0 },

	{ CLT_BACKOFF, CLT_EV_RETRY, CLT_CONNECTING, CLT_ACT_CONNECT },
	{ CLT_BACKOFF, CLT_EV_CLOSE, CLT_CLOSED, CLT_ACT_CLOSED },

	{ CLT_CLOSING, CLT_EV_FAIL, CLT_CLOSING, 0 },
	{ CLT_CLOSING, CLT_EV_DRAINED, CLT_CLOSED, CLT_ACT_RELEASE | CLT_ACT_CLOSED },
	{ CLT_CLOSED, CLT_EV_FAIL, CLT_CLOSED, 0 },
};

static const char *const names[CLT_NSTATES] = {
	[CLT_IDLE] = "idle",	     [CLT_CONNECTING] = "connecting", [CLT_INFO] = "info",
	[CLT_OPENING] = "opening",   [CLT_UP] = "up",		      [CLT_DRAINING] = "draining",
	[CLT_BACKOFF] = "back-off",  [CLT_CLOSING] = "closing",	      [CLT_CLOSED] = "closed",
};

unsigned clt_fsm_step(enum clt_state *state, enum clt_event event)
{
	for (unsigned i = 0; i < ARRAY_SIZE(edges); i++) {
		if (edges[i].from == *state && edges[i].event == event) {
			*state = edges[i].to;
			return edges[i].actions;
		}
	}
	assert(!"path event that its state does not know");
	abort();
}

const char *clt_fsm_state_name(enum clt_state state)
{
	assert(state < CLT_NSTATES);
	return names[state];
}
