/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of a session, a path and a connection: what must hold of them, whatever their rows
 * are. */
#include "fsm-rules.h"

#include "clt-fsm.h"
#include "log.h"

static const struct fsm *const fsms[] = { &clt_sess_fsm, &clt_path_fsm, &clt_con_fsm };

Test(clt_fsm, rules)
{
	for_each_case(f, fsms)
		fsm_rules(*f);
}

/* A connection that is served drains once (fab-service.h), and nobody releases it before: its
 * memory may be written until then. */
static bool cannot_come(const struct fsm *f, unsigned s, unsigned e)
{
	bool served = s == CLT_CON_OPEN || s == CLT_CON_LEFT;

	return f == &clt_con_fsm &&
	       ((e == CLT_CON_EV_DRAINED && !served) || (e == CLT_CON_EV_RELEASE && served));
}

/* Any thread may be late with any event. */
Test(clt_fsm, every_event_is_answered_in_every_state)
{
	for_each_case(f, fsms) {
		for (unsigned s = 0; s < (*f)->nstates; s++) {
			for (unsigned e = 0; e < (*f)->nevents; e++)
				cr_assert_eq(fsm_next(*f, s, e) < 0, cannot_come(*f, s, e),
					     "%s: %s in %s", (*f)->name, (*f)->events[e],
					     (*f)->states[s]);
		}
	}
}

/* A session and a path end in their last state, from wherever they are, and stay there; but that a
 * path may be started again. */
Test(clt_fsm, every_state_reaches_closed)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct fsm *f = fsms[i];
		unsigned last = f->nstates - 1;

		cr_assert_str_eq(f->states[last], "closed");
		for (unsigned s = 0; s <= last; s++)
			cr_assert(fsm_reach(f, s, ~0u) & 1u << last, "%s: no end from %s", f->name,
				  f->states[s]);
		for (unsigned e = 0; e < f->nevents; e++)
			cr_assert(fsm_next(f, last, e) == (int)last ||
				  (f == &clt_path_fsm && e == CLT_PATH_EV_START));
	}
}

/* Once it is closed a path comes back only to its end: no event but DRAINED matters. */
Test(clt_fsm, close_is_for_good)
{
	for (unsigned s = 0; s < CLT_PATH_NSTATES; s++) {
		int next = fsm_next(&clt_path_fsm, s, CLT_PATH_EV_CLOSE);

		cr_assert(next == CLT_PATH_CLOSING || next == CLT_PATH_CLOSED);
		for (unsigned e = 0; e < CLT_PATH_NEVENTS; e++) {
			int then = fsm_next(&clt_path_fsm, CLT_PATH_CLOSING, e);

			cr_assert_eq(then,
				     e == CLT_PATH_EV_DRAINED ? CLT_PATH_CLOSED : CLT_PATH_CLOSING);
		}
	}
}

/* Any thread may see a failure at any time: it counts once in an attempt, and the service loop then
 * drains. */
Test(clt_fsm, a_failure_counts_once)
{
	for (unsigned s = 0; s < CLT_PATH_NSTATES; s++) {
		int next = fsm_next(&clt_path_fsm, s, CLT_PATH_EV_FAIL);

		cr_assert(next == (int)s || next == CLT_PATH_FAILING);
		cr_assert_eq(fsm_next(&clt_path_fsm, (unsigned)next, CLT_PATH_EV_FAIL), next);
		if (next == CLT_PATH_FAILING)
			cr_assert_eq(fsm_next(&clt_path_fsm, (unsigned)next, CLT_PATH_EV_LOST),
				     CLT_PATH_DRAINING);
	}
}

/* Whatever comes too late leaves it failing: requests never see a path come up that nobody takes
 * down. */
Test(clt_fsm, a_failure_wins)
{
	for (unsigned e = 0; e < CLT_PATH_NEVENTS; e++) {
		int next = fsm_next(&clt_path_fsm, CLT_PATH_FAILING, e);

		cr_assert(next == CLT_PATH_FAILING || next == CLT_PATH_DRAINING ||
			  next == CLT_PATH_CLOSING);
	}
}

/* Destroyed from wherever nothing of it is in flight. */
Test(clt_fsm, a_connection_is_released)
{
	for (unsigned s = 0; s < CLT_CON_NSTATES; s++) {
		if (!cannot_come(&clt_con_fsm, s, CLT_CON_EV_RELEASE))
			cr_assert_eq(fsm_next(&clt_con_fsm, s, CLT_CON_EV_RELEASE), CLT_CON_NONE);
	}
}

/* Two threads move a state at once: the later one starts where the other one left it. */
Test(clt_fsm, step)
{
	atomic_uint state = CLT_PATH_OPENING;
	unsigned old;

	fsm_step(&clt_path_fsm, "path", &state, CLT_PATH_EV_FAIL, &old);
	cr_assert_eq(old, CLT_PATH_OPENING);
	fsm_step(&clt_path_fsm, "path", &state, CLT_PATH_EV_OPENED, &old);
	cr_assert_eq(old, CLT_PATH_FAILING);
	cr_assert_eq(atomic_load(&state), CLT_PATH_FAILING);
}

static char said[100];

static void keep_line(enum log_level level, const char *line)
{
	snprintf(said, sizeof(said), "%s", line);
}

/* Each change, once, of an object with a name. */
Test(clt_fsm, changes_are_logged)
{
	atomic_uint state = CLT_PATH_CONNECTING;
	char name[20];

	log_init(keep_line, LOG_LEVEL_DEBUG);
	fsm_step(&clt_path_fsm, fsm_name(name, sizeof(name), "p", 7), &state, CLT_PATH_EV_FAIL,
		 NULL);
	cr_assert_str_eq(said, "p#7: path: fail: connecting -> failing");
	said[0] = '\0';
	fsm_step(&clt_path_fsm, "p", &state, CLT_PATH_EV_FAIL, NULL);
	cr_assert_str_eq(said, "", "nothing has changed");
	state = CLT_PATH_CONNECTING;
	fsm_step(&clt_path_fsm, NULL, &state, CLT_PATH_EV_FAIL, NULL);
	cr_assert_str_eq(said, "", "nobody's");
	log_set_level(LOG_LEVEL_INFO);
	cr_assert_null(fsm_name(name, sizeof(name), "p", 7));
}

/* A path that stands by has no requests: it comes up by the handshake alone. */
Test(clt_fsm, no_way_from_standby_but_the_handshake)
{
	const unsigned up = 1u << CLT_PATH_UP | 1u << CLT_PATH_SILENT;

	cr_assert_not(fsm_reach(&clt_path_fsm, CLT_PATH_STANDBY, ~(1u << CLT_PATH_EV_OPENED)) & up);
	for (unsigned e = 0; e < CLT_PATH_NEVENTS; e++) {
		int next = fsm_next(&clt_path_fsm, CLT_PATH_STANDBY, e);

		cr_assert(next < 0 || !(up & 1u << next));
	}
}
