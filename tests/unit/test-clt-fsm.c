/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the client's path states: what each event does, and that no other is taken. */
#include <signal.h>

#include "unit.h"

#include "clt-fsm.h"

static const struct {
	enum clt_state from;
	enum clt_event event;
	enum clt_state to;
	unsigned actions;
} edges[] = {
	{ CLT_IDLE, CLT_EV_START, CLT_CONNECTING, CLT_ACT_CONNECT },
	{ CLT_IDLE, CLT_EV_CLOSE, CLT_CLOSED, CLT_ACT_CLOSED },
	{ CLT_CONNECTING, CLT_EV_CON_UP, CLT_CONNECTING, CLT_ACT_NEXT_CON },
	{ CLT_CONNECTING, CLT_EV_ALL_UP, CLT_INFO, CLT_ACT_SEND_INFO },
	{ CLT_INFO, CLT_EV_INFO_RSP, CLT_OPENING, CLT_ACT_OPEN },
	{ CLT_OPENING, CLT_EV_OPENED, CLT_UP, CLT_ACT_UP },
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

Test(clt_fsm, edges)
{
	for_each_case(e, edges) {
		enum clt_state state = e->from;

		cr_assert_eq(clt_fsm_step(&state, e->event), e->actions, "event %d in %s", e->event,
			     clt_fsm_state_name(e->from));
		cr_assert_eq(state, e->to, "event %d in %s", e->event, clt_fsm_state_name(e->from));
	}
}

/* Set-up fails the same way in each of its states, and closing then does not come back. */
Test(clt_fsm, setup_fails_and_closes)
{
	for (enum clt_state s = CLT_CONNECTING; s <= CLT_OPENING; s++) {
		enum clt_state state = s;

		cr_assert_eq(clt_fsm_step(&state, CLT_EV_FAIL), CLT_ACT_DRAIN);
		cr_assert_eq(state, CLT_DRAINING);
		cr_assert_eq(clt_fsm_step(&state, CLT_EV_CLOSE), 0u);
		cr_assert_eq(clt_fsm_step(&state, CLT_EV_DRAINED),
			     CLT_ACT_RELEASE | CLT_ACT_CLOSED);
		cr_assert_eq(state, CLT_CLOSED);
		state = s;
		cr_assert_eq(clt_fsm_step(&state, CLT_EV_CLOSE), CLT_ACT_DRAIN);
		cr_assert_eq(state, CLT_CLOSING);
	}
}

Test(clt_fsm, a_pair_not_in_the_table_is_a_bug, .signal = SIGABRT)
{
	enum clt_state state = CLT_CLOSED;

	clt_fsm_step(&state, CLT_EV_RETRY);
}
