/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of each table of states, whatever its rows are.  A test of a table runs
 * fsm_rules(), and says with fsm_next() and fsm_reach() what holds of that table alone. */
#ifndef TESTS_FSM_RULES_H
#define TESTS_FSM_RULES_H

#include "unit.h"

#include "fsm.h"

/* The state that @event leads to from @state; -1: the event cannot come there. */
static inline int fsm_next(const struct fsm *fsm, unsigned state, unsigned event)
{
	const struct fsm_row *row = fsm_row(fsm, state, event);

	if (!row)
		return -1;
	return row->next == FSM_STAY ? (int)state : row->next;
}

/* The states that are reached from @from by events of @events, both as bits. */
static inline unsigned fsm_reach(const struct fsm *fsm, unsigned from, unsigned events)
{
	unsigned seen = 1u << from, before;

	do {
		before = seen;
		for (unsigned s = 0; s < fsm->nstates; s++) {
			for (unsigned e = 0; (seen & 1u << s) && e < fsm->nevents; e++) {
				int next = events & 1u << e ? fsm_next(fsm, s, e) : -1;

				if (next >= 0)
					seen |= 1u << next;
			}
		}
	} while (seen != before);
	return seen;
}

static inline void fsm_rule_one_row_for_a_pair(const struct fsm *fsm)
{
	for (unsigned s = 0; s < fsm->nstates; s++) {
		for (unsigned e = 0; e < fsm->nevents; e++) {
			unsigned n = 0;

			for (unsigned i = 0; i < fsm->nrows; i++)
				n += fsm->rows[i].event == e && (fsm->rows[i].states & 1u << s);
			cr_assert_leq(n, 1u, "%s: %s in %s", fsm->name, fsm->events[e],
				      fsm->states[s]);
		}
	}
}

/* Each state is reached, no row leads out of the table, an action has a name, and so has each state
 * and event. */
static inline void fsm_rules(const struct fsm *fsm)
{
	unsigned all = (1u << fsm->nstates) - 1;

	fsm_rule_one_row_for_a_pair(fsm);
	cr_assert_eq(fsm_reach(fsm, 0, ~0u), all, "%s: a state that is never reached", fsm->name);
	for (unsigned i = 0; i < fsm->nrows; i++) {
		const struct fsm_row *row = &fsm->rows[i];

		cr_assert(row->states && !(row->states & ~all), "%s: row %u", fsm->name, i);
		cr_assert_lt(row->event, fsm->nevents);
		cr_assert(row->next >= FSM_STAY && row->next < (int)fsm->nstates);
		cr_assert(!row->action || strlen(row->what));
		cr_assert(row->next != FSM_STAY || !row->action, "%s: no picture shows %s",
			  fsm->name, row->what);
	}
	for (unsigned s = 0; s < fsm->nstates; s++)
		cr_assert_str_not_empty(fsm->states[s]);
	for (unsigned e = 0; e < fsm->nevents; e++)
		cr_assert_str_not_empty(fsm->events[e]);
}

#endif
