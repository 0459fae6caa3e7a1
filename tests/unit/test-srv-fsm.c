/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of paths, connections and handshakes: what must hold of them, whatever their rows
 * are. */
#include "fsm-rules.h"

#include "srv-con.h"
#include "srv-path.h"

static const struct fsm *const fsms[] = { &srv_path_fsm, &srv_con_fsm, &srv_info_fsm };
/* A handshake ends well or not. */
static const struct fsm *const lives[] = { &srv_path_fsm, &srv_con_fsm };

static bool is_last(const struct fsm *fsm, unsigned state)
{
	for (unsigned e = 0; e < fsm->nevents; e++) {
		int next = fsm_next(fsm, state, e);

		if (next >= 0 && next != (int)state)
			return false;
	}
	return true;
}

Test(srv_fsm, rules)
{
	for_each_case(f, fsms)
		fsm_rules(*f);
}

Test(srv_fsm, one_end_and_no_way_back)
{
	for_each_case(f, lives) {
		unsigned last = (*f)->nstates - 1;

		for (unsigned s = 0; s <= last; s++) {
			cr_assert_eq(is_last(*f, s), s == last, "%s: %s", (*f)->name,
				     (*f)->states[s]);
			cr_assert(fsm_reach(*f, s, ~0u) & 1u << last, "%s: no end from %s",
				  (*f)->name, (*f)->states[s]);
			for (unsigned e = 0; e < (*f)->nevents; e++)
				cr_assert(fsm_next(*f, s, e) < 0 || fsm_next(*f, s, e) >= (int)s,
					  "%s: %s back from %s", (*f)->name,
					  (*f)->events[e], (*f)->states[s]);
		}
	}
}

/* A path can fail at any time, and what its connections tell then ends it. */
Test(srv_fsm, failure_ends_every_path)
{
	for (unsigned s = 0; s < SRV_PATH_NSTATES; s++) {
		int next = fsm_next(&srv_path_fsm, s, SRV_PATH_EV_FAIL);

		cr_assert_geq(next, SRV_PATH_DRAINING);
		if (next == SRV_PATH_DRAINING)
			next = fsm_next(&srv_path_fsm, (unsigned)next, SRV_PATH_EV_DRAINED);
		if (next == SRV_PATH_LINGERING)
			next = fsm_next(&srv_path_fsm, (unsigned)next, SRV_PATH_EV_QUIET);
		cr_assert_eq(next, SRV_PATH_GONE);
	}
}

/* A path can fail at any time in its handshake.  The path joins its session only with an INFO_REQ
 * and a name that is free, and never after a refusal. */
Test(srv_fsm, no_other_way_into_a_session)
{
	const unsigned needed[] = { SRV_INFO_EV_REQ, SRV_INFO_EV_FREE };

	for (unsigned s = 0; s < SRV_INFO_NSTATES; s++)
		cr_assert_geq(fsm_next(&srv_info_fsm, s, SRV_INFO_EV_FAIL), SRV_INFO_NAMED);
	for_each_case(n, needed)
		cr_assert_not(fsm_reach(&srv_info_fsm, SRV_INFO_AWAITED,
				    ~(1u << *n)) & 1u << SRV_INFO_NAMED, "without %s",
			      srv_info_fsm.events[*n]);
	cr_assert_eq(fsm_reach(&srv_info_fsm, SRV_INFO_OVER, ~0u), 1u << SRV_INFO_OVER);
	cr_assert_eq(fsm_reach(&srv_info_fsm, SRV_INFO_NAMED, ~0u), 1u << SRV_INFO_NAMED);
}

/* What may come at any time is answered in every state, what comes once where it can come. */
Test(srv_fsm, a_connection_answers_every_event)
{
	for (unsigned s = 0; s < SRV_CON_NSTATES; s++) {
		bool cut = s == SRV_CON_CUT || s >= SRV_CON_LINGERING;
		/* The path finishes its connections once, and before it cuts them. */
		bool finishing = s > SRV_CON_SERVING && s < SRV_CON_DEAD;
		const char *name = srv_con_fsm.states[s];

		cr_assert_geq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_IDLE), 0, "%s", name);
		cr_assert_geq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_LEFT), 0, "%s", name);
		cr_assert_geq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_FAIL), SRV_CON_DEAD, "%s", name);
		cr_assert_geq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_FLUSHED), SRV_CON_DEAD, "%s",
			      name);
		cr_assert_eq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_CUT) >= 0, !cut, "%s", name);
		cr_assert_eq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_DRAINED) >= 0,
			     s == SRV_CON_DEAD || s == SRV_CON_CUT, "%s", name);
		cr_assert_eq(fsm_next(&srv_con_fsm, s, SRV_CON_EV_FINISH) >= 0, !finishing && !cut,
			     "%s", name);
	}
}

/* The state of a connection in @state after @events; only the last leads to LINGERING. */
static unsigned con_after(unsigned state, const unsigned *events, unsigned n)
{
	int at = (int)state;

	for (unsigned i = 0; i < n; i++) {
		cr_assert_lt(at, SRV_CON_LINGERING);
		at = fsm_next(&srv_con_fsm, (unsigned)at, events[i]);
		cr_assert_geq(at, 0);
	}
	return (unsigned)at;
}

/* Quiet only when it has been cut, has drained, and is idle after that, in whatever order the first
 * two came. */
Test(srv_fsm, a_connection_is_quiet_last)
{
	const unsigned needed[] = { SRV_CON_EV_CUT, SRV_CON_EV_DRAINED, SRV_CON_EV_IDLE };
	static const unsigned cut_first[] = { SRV_CON_EV_CUT, SRV_CON_EV_DRAINED };
	static const unsigned cut_last[] = { SRV_CON_EV_FLUSHED, SRV_CON_EV_DRAINED,
					     SRV_CON_EV_CUT };

	for_each_case(n, needed)
		cr_assert_not(fsm_reach(&srv_con_fsm, SRV_CON_SERVING,
				    ~(1u << *n)) & 1u << SRV_CON_QUIET, "without %s",
			      srv_con_fsm.events[*n]);
	for (unsigned s = SRV_CON_SERVING; s <= SRV_CON_DEAD; s++) {
		cr_assert_eq(con_after(s, cut_first, ARRAY_SIZE(cut_first)), SRV_CON_LINGERING);
		cr_assert_eq(con_after(s, cut_last, ARRAY_SIZE(cut_last)), SRV_CON_LINGERING);
	}
	cr_assert_eq(fsm_next(&srv_con_fsm, SRV_CON_LINGERING, SRV_CON_EV_IDLE), SRV_CON_QUIET);
}

/* From shutdown to the last answer's leaving nothing else is needed. */
Test(srv_fsm, a_connection_finishes)
{
	const unsigned events = 1u << SRV_CON_EV_FINISH | 1u << SRV_CON_EV_IDLE |
		1u << SRV_CON_EV_LEFT;

	cr_assert_eq(fsm_reach(&srv_con_fsm, SRV_CON_SERVING, events),
		     1u << SRV_CON_SERVING | 1u << SRV_CON_FINISHING | 1u << SRV_CON_MARKED |
		     1u << SRV_CON_FINISHED);
	cr_assert_eq(fsm_next(&srv_con_fsm, SRV_CON_FINISHING, SRV_CON_EV_LEFT), SRV_CON_FINISHING,
		     "a stray completion");
}
