/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of path states: complete, and only one way down. */
#include "unit.h"

#include "srv-fsm.h"

/* Every pair of state and event with what is expected; next < 0: the pair cannot happen. */
static const struct {
	enum srv_path_state state;
	enum srv_path_event event;
	int next;
	enum srv_path_action action;
} pairs[] = {
	{ SRV_PATH_CONNECTING, SRV_PATH_EV_INFO, SRV_PATH_CONNECTED, SRV_PATH_ACT_UP },
	{ SRV_PATH_CONNECTING, SRV_PATH_EV_FAIL, SRV_PATH_DRAINING, SRV_PATH_ACT_CUT },
	{ SRV_PATH_CONNECTING, SRV_PATH_EV_DRAINED, -1, 0 },
	{ SRV_PATH_CONNECTING, SRV_PATH_EV_QUIET, -1, 0 },
	{ SRV_PATH_CONNECTED, SRV_PATH_EV_INFO, -1, 0 },
	{ SRV_PATH_CONNECTED, SRV_PATH_EV_FAIL, SRV_PATH_DRAINING, SRV_PATH_ACT_CUT },
	{ SRV_PATH_CONNECTED, SRV_PATH_EV_DRAINED, -1, 0 },
	{ SRV_PATH_CONNECTED, SRV_PATH_EV_QUIET, -1, 0 },
	{ SRV_PATH_DRAINING, SRV_PATH_EV_INFO, SRV_PATH_DRAINING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_DRAINING, SRV_PATH_EV_FAIL, SRV_PATH_DRAINING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_DRAINING, SRV_PATH_EV_DRAINED, SRV_PATH_LINGERING, SRV_PATH_ACT_UNLINK },
	{ SRV_PATH_DRAINING, SRV_PATH_EV_QUIET, -1, 0 },
	{ SRV_PATH_LINGERING, SRV_PATH_EV_INFO, SRV_PATH_LINGERING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_LINGERING, SRV_PATH_EV_FAIL, SRV_PATH_LINGERING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_LINGERING, SRV_PATH_EV_DRAINED, -1, 0 },
	{ SRV_PATH_LINGERING, SRV_PATH_EV_QUIET, SRV_PATH_GONE, SRV_PATH_ACT_FREE },
	{ SRV_PATH_GONE, SRV_PATH_EV_INFO, SRV_PATH_GONE, SRV_PATH_ACT_NONE },
	{ SRV_PATH_GONE, SRV_PATH_EV_FAIL, SRV_PATH_GONE, SRV_PATH_ACT_NONE },
	{ SRV_PATH_GONE, SRV_PATH_EV_DRAINED, -1, 0 },
	{ SRV_PATH_GONE, SRV_PATH_EV_QUIET, -1, 0 },
};

Test(srv_fsm, every_pair)
{
	cr_assert_eq(ARRAY_SIZE(pairs), SRV_PATH_NSTATES * SRV_PATH_NEVENTS);
	for_each_case(p, pairs) {
		const struct srv_path_edge *e = srv_path_fsm_step(p->state, p->event);
		const char *s = srv_path_state_name(p->state), *ev = srv_path_event_name(p->event);

		if (p->next < 0) {
			cr_assert_null(e, "%s in %s", ev, s);
			continue;
		}
		cr_assert_not_null(e, "%s in %s", ev, s);
		cr_assert_eq(e->state, p->state);
		cr_assert_eq(e->event, p->event);
		cr_assert_eq((int)e->next, p->next, "%s in %s", ev, s);
		cr_assert_eq(e->action, p->action, "%s in %s", ev, s);
	}
}

/* From every state a FAIL is taken, and DRAINED and QUIET then lead to the end. */
Test(srv_fsm, failure_ends_every_path)
{
	for (int s = 0; s < SRV_PATH_NSTATES; s++) {
		const struct srv_path_edge *e = srv_path_fsm_step((enum srv_path_state)s,
								  SRV_PATH_EV_FAIL);

		cr_assert_not_null(e, "%s", srv_path_state_name((enum srv_path_state)s));
		if (e->next == SRV_PATH_DRAINING)
			e = srv_path_fsm_step(e->next, SRV_PATH_EV_DRAINED);
		if (e->next == SRV_PATH_LINGERING)
			e = srv_path_fsm_step(e->next, SRV_PATH_EV_QUIET);
		cr_assert_eq(e->next, SRV_PATH_GONE);
	}
}

Test(srv_fsm, names)
{
	for (int s = 0; s < SRV_PATH_NSTATES; s++)
		cr_assert_gt(strlen(srv_path_state_name((enum srv_path_state)s)), 0);
	for (int e = 0; e < SRV_PATH_NEVENTS; e++)
		cr_assert_gt(strlen(srv_path_event_name((enum srv_path_event)e)), 0);
}
