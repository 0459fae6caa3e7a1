/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of a device and of a handshake: what must hold of them, whatever their rows are. */
#include "fsm-rules.h"

#include "dev-fsm.h"

#define STATE(s) (1u << DEV_##s)
#define EVENT(e) (1u << DEV_EV_##e)

/* The events that @state of @fsm takes, as bits. */
static unsigned takes(const struct fsm *fsm, unsigned state)
{
	unsigned events = 0;

	for (unsigned e = 0; e < fsm->nevents; e++)
		events |= (unsigned)(fsm_next(fsm, state, e) >= 0) << e;
	return events;
}

Test(dev_fsm, rules)
{
	fsm_rules(&dev_fsm);
	fsm_rules(&dev_handshake_fsm);
}

/* ---- a device ---- */

/* What may come in a state has a row there, and what cannot come has none. */
Test(dev_fsm, events_of_each_state)
{
	const unsigned open = EVENT(OPENED) | EVENT(UNSETTLED) | EVENT(REFUSED) | EVENT(ABORTED);
	const unsigned answers = open | EVENT(SETTLED) | EVENT(STUCK);
	const unsigned want[DEV_NSTATES] = {
		[DEV_NEW] = EVENT(WANTED),
		[DEV_OPENING] = answers | EVENT(WANTED) | EVENT(LATER),
		[DEV_AWAITED] = EVENT(WANTED) | EVENT(EXPIRED),
		/* A device that is settled is not OPEN. */
		[DEV_OPEN] = open | EVENT(WANTED) | EVENT(DROPPED) | EVENT(RENAMED),
		[DEV_LOST] = answers | EVENT(WANTED) | EVENT(DROPPED) | EVENT(EXPIRED),
		[DEV_FAILED] = answers | EVENT(WANTED) | EVENT(DROPPED),
		[DEV_REPLACED] = EVENT(EPOCH) | EVENT(DROPPED),
		[DEV_STALE] = EVENT(DROPPED),
		[DEV_CLOSING] = answers | EVENT(WANTED) | EVENT(CLOSED) | EVENT(REBORN),
		[DEV_GONE] = 0,
	};

	for (unsigned s = 0; s < DEV_NSTATES; s++)
		cr_assert_eq(takes(&dev_fsm, s), want[s], "%s: %#x instead of %#x",
			     dev_fsm.states[s], takes(&dev_fsm, s), want[s]);
}

Test(dev_fsm, every_device_can_end)
{
	for (unsigned s = 0; s < DEV_NSTATES; s++)
		cr_assert(fsm_reach(&dev_fsm, s, ~0u) & STATE(GONE), "no end from %s",
			  dev_fsm.states[s]);
}

/* Requests flow to a device whose OPEN was answered, and for which no given-up write is waited. */
Test(dev_fsm, open_by_its_answer_alone)
{
	for (unsigned s = 0; s < DEV_NSTATES; s++) {
		if (s == DEV_OPEN)
			continue;
		cr_assert_not(fsm_reach(&dev_fsm, s, ~EVENT(OPENED)) & STATE(OPEN), "from %s",
			      dev_fsm.states[s]);
	}
	for (unsigned s = 0; s < DEV_NSTATES; s++)
		cr_assert_neq(fsm_next(&dev_fsm, s, DEV_EV_UNSETTLED), DEV_OPEN, "in %s",
			      dev_fsm.states[s]);
}

/* No answer makes a device that nobody uses look open. */
Test(dev_fsm, closing_is_for_good)
{
	cr_assert_eq(fsm_reach(&dev_fsm, DEV_CLOSING, ~EVENT(REBORN)),
		     STATE(CLOSING) | STATE(GONE));
	cr_assert_eq(fsm_next(&dev_fsm, DEV_CLOSING, DEV_EV_REBORN), DEV_OPENING);
}

/* Requests wait for a device that is LOST, and fail when the device is FAILED.  Time alone leads to
 * FAILED, and both come back. */
Test(dev_fsm, failed_by_time_alone)
{
	cr_assert_not(fsm_reach(&dev_fsm, DEV_NEW, ~EVENT(EXPIRED)) & STATE(FAILED));
	cr_assert_eq(fsm_next(&dev_fsm, DEV_LOST, DEV_EV_OPENED), DEV_OPEN);
	cr_assert_eq(fsm_next(&dev_fsm, DEV_FAILED, DEV_EV_OPENED), DEV_OPEN);
}

/* A device whose name leads elsewhere is nobody's who comes: it ends with its users. */
Test(dev_fsm, replaced_is_for_good)
{
	cr_assert_eq(fsm_reach(&dev_fsm, DEV_REPLACED, ~EVENT(REBORN)),
		     STATE(REPLACED) | STATE(STALE) | STATE(CLOSING) | STATE(GONE));
}

/* ---- a handshake ---- */

#define HS_STATE(s) (1u << DEV_HANDSHAKE_##s)
#define HS_EVENT(e) (1u << DEV_HANDSHAKE_EV_##e)

/* A state waits for the answer to a message, which its path may take along, or it decides. */
Test(dev_fsm, a_message_is_answered_or_lost)
{
	for (unsigned s = 0; s < DEV_HANDSHAKE_NSTATES; s++) {
		unsigned events = takes(&dev_handshake_fsm, s);
		bool waits = events & (HS_EVENT(ANSWER) | HS_EVENT(LOST));

		if (waits)
			cr_assert_eq(events, HS_EVENT(ANSWER) | HS_EVENT(LOST), "%s",
				     dev_handshake_fsm.states[s]);
		if (waits)
			cr_assert_eq(fsm_next(&dev_handshake_fsm, s, DEV_HANDSHAKE_EV_LOST),
				     DEV_HANDSHAKE_IDLE);
		cr_assert(fsm_reach(&dev_handshake_fsm, s, ~0u) & HS_STATE(IDLE), "no end from %s",
			  dev_handshake_fsm.states[s]);
	}
	cr_assert_eq(takes(&dev_handshake_fsm, DEV_HANDSHAKE_IDLE), HS_EVENT(START));
}

/* Rounds end in ADMITTED, and nothing leads past it: no server is greeted, no device opened and no
 * epoch joined before. */
Test(dev_fsm, one_way_in)
{
	const struct fsm *f = &dev_handshake_fsm;
	const unsigned in = HS_EVENT(BEGIN) | HS_EVENT(JOIN);
	const unsigned inside = HS_STATE(GREETS) | HS_STATE(OPENS) | HS_STATE(ASKS) |
		HS_STATE(JOINS) | HS_STATE(MET);

	cr_assert_eq(takes(f, DEV_HANDSHAKE_ADMITTED) & in, in);
	for (unsigned s = 0; s < DEV_HANDSHAKE_NSTATES; s++)
		cr_assert(s == DEV_HANDSHAKE_ADMITTED || !(takes(f, s) & in), "%s", f->states[s]);
	cr_assert_not(fsm_reach(f, DEV_HANDSHAKE_IDLE, ~in) & inside);
}

/* A path comes up, and devices are opened, only behind an answer of the server. */
Test(dev_fsm, nothing_without_an_answer)
{
	const struct fsm *f = &dev_handshake_fsm;
	const unsigned up = HS_EVENT(READY) | HS_EVENT(SAME) | HS_EVENT(OTHER) |
		HS_EVENT(DEVICE);

	cr_assert_not(fsm_reach(f, DEV_HANDSHAKE_IDLE, ~HS_EVENT(ANSWER)) &
		      (HS_STATE(MET) | HS_STATE(OPENS) | HS_STATE(ASKS)));
	for (unsigned s = 0; s < DEV_HANDSHAKE_NSTATES; s++)
		cr_assert(s == DEV_HANDSHAKE_MET || !(takes(f, s) & up), "%s", f->states[s]);
}

/* However a handshake ends, the next path may start its own. */
Test(dev_fsm, a_decision_ends_the_handshake)
{
	cr_assert_eq(fsm_next(&dev_handshake_fsm, DEV_HANDSHAKE_MET, DEV_HANDSHAKE_EV_REFUSED),
		     DEV_HANDSHAKE_IDLE);
	cr_assert_eq(fsm_next(&dev_handshake_fsm, DEV_HANDSHAKE_MET, DEV_HANDSHAKE_EV_READY),
		     DEV_HANDSHAKE_IDLE);
	cr_assert_eq(fsm_next(&dev_handshake_fsm, DEV_HANDSHAKE_MET, DEV_HANDSHAKE_EV_SAME),
		     DEV_HANDSHAKE_IDLE);
	cr_assert_eq(fsm_next(&dev_handshake_fsm, DEV_HANDSHAKE_MET, DEV_HANDSHAKE_EV_OTHER),
		     DEV_HANDSHAKE_IDLE);
}
