/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a shared store's lead: what must hold of it, whatever its rows are. */
#include "fsm-rules.h"

#include "store-lead.h"

#define STATE(s) (1u << STORE_LEAD_##s)
#define EVENT(e) (1u << STORE_LEAD_EV_##e)

static const struct fsm *const f = &store_lead_fsm;

/* States in which the worker has a job, and the events that end the job. */
static const unsigned works = STATE(TAKING) | STATE(YIELDING) | STATE(RENEWING) |
	STATE(LOOKING);
static const unsigned ends = EVENT(TAKEN) | EVENT(REFUSED) | EVENT(YIELDED) | EVENT(KEPT) |
	EVENT(LOST_UNSEEN) | EVENT(RENEWED) | EVENT(FAILED) | EVENT(OURS);

Test(lead_fsm, rules) { fsm_rules(f); }

/* The worker's job is used again only when it has ended. */
Test(lead_fsm, nothing_but_its_end_leaves_a_job)
{
	for (unsigned s = 0; s < f->nstates; s++) {
		for (unsigned e = 0; e < f->nevents; e++) {
			int next = fsm_next(f, s, e);

			if (!(works & 1u << s))
				cr_assert(!(ends & 1u << e) || next < 0, "%s: %s", f->states[s],
					  f->events[e]);
			else if (!(ends & 1u << e))
				cr_assert(next < 0 || next == (int)s, "%s: %s", f->states[s],
					  f->events[e]);
		}
	}
}

/* A server that writes has taken the lock, and takes a lock again that may be lost. */
Test(lead_fsm, an_owner_has_taken_the_lock)
{
	for (unsigned s = 0; s < f->nstates; s++) {
		for (unsigned e = 0; e < f->nevents; e++) {
			if (fsm_next(f, s, e) == STORE_LEAD_OWNER && s != STORE_LEAD_OWNER)
				cr_assert((s == STORE_LEAD_TAKING && e == STORE_LEAD_EV_TAKEN) ||
					  (s == STORE_LEAD_LOOKING && e == STORE_LEAD_EV_OURS));
		}
	}
}

/* Only a server that has the lock and no writer keeps it, and looks again. */
Test(lead_fsm, a_kept_lock_is_given_back_later)
{
	cr_assert_eq(fsm_next(f, STORE_LEAD_YIELDING, STORE_LEAD_EV_KEPT), STORE_LEAD_KEEPING);
	cr_assert_eq(fsm_next(f, STORE_LEAD_KEEPING, STORE_LEAD_EV_TIMER), STORE_LEAD_YIELDING);
	for (unsigned s = 0; s < f->nstates; s++) {
		if (s != STORE_LEAD_STANDBY)
			cr_assert_lt(fsm_next(f, s, STORE_LEAD_EV_FOUND), 0, "%s", f->states[s]);
	}
}

/* A server that was fenced opens the store again before it tries to write again: by itself, or
 * because an administrator gives the store another name. */
Test(lead_fsm, no_way_from_fenced_but_anew)
{
	unsigned without = fsm_reach(f, STORE_LEAD_FENCED, ~(EVENT(RENEWED) | EVENT(JOINED)));

	cr_assert_not(without & (STATE(STANDBY) | STATE(TAKING) | STATE(OWNER)));
	cr_assert(fsm_reach(f, STORE_LEAD_FENCED, ~0u) & STATE(OWNER));
	for (unsigned s = 0; s < f->nstates; s++)
		cr_assert(fsm_reach(f, s, ~0u) & STATE(STANDBY), "%s", f->states[s]);
}

/* Any request may fail late: that never stops the program. */
Test(lead_fsm, a_late_failure_is_taken_in_each_state)
{
	for (unsigned s = 0; s < f->nstates; s++)
		cr_assert(fsm_row(f, s, STORE_LEAD_EV_LOST), "%s", f->states[s]);
	cr_assert_eq(fsm_next(f, STORE_LEAD_OWNER, STORE_LEAD_EV_LOST), STORE_LEAD_FENCED);
	cr_assert_eq(fsm_next(f, STORE_LEAD_OWNER, STORE_LEAD_EV_TIMER), STORE_LEAD_LOOKING);
	cr_assert_eq(fsm_next(f, STORE_LEAD_LOOKING, STORE_LEAD_EV_LOST_UNSEEN),
		     STORE_LEAD_FENCED);
}
