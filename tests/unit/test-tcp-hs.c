/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the tcp provider's handshake. */
#include "fsm-rules.h"

#include "tcp-cm.h"

#define STATE(s) (1u << TCP_##s)
#define PASSIVE \
	(STATE(TAKEN) | STATE(TAKES_TLS) | STATE(REFUSES_HELLO) | STATE(SKIPS_HELLO) | \
	 STATE(WAIT_PLAIN) | STATE(REFUSES_PLAIN) | STATE(WAIT_CONNECT) | STATE(REQUESTED))
#define ACTIVE \
	(STATE(CONNECTING) | STATE(SECURING) | STATE(ANSWERED_PLAIN) | STATE(WAIT_REPLY))

Test(tcp_hs, rules) { fsm_rules(&tcp_hs_fsm); }

/* Whose begin was refused never comes up but by another begin, and nobody changes sides. */
Test(tcp_hs, ways)
{
	for (unsigned s = 0; s < TCP_NSTATES; s++) {
		unsigned to = fsm_reach(&tcp_hs_fsm, s, ~0u);

		if (STATE(UP) & 1u << s || STATE(DEAD) & 1u << s)
			cr_assert_eq(to, 1u << s, "%s is an end", tcp_hs_fsm.states[s]);
		if (PASSIVE & 1u << s)
			cr_assert_not(to & ~(PASSIVE | STATE(UP)));
		if (ACTIVE & 1u << s)
			cr_assert(!(to & PASSIVE) && (to & STATE(DEAD)));
		if (s != TCP_REFUSES_PLAIN && s != TCP_DEAD)
			cr_assert(to & STATE(UP), "no way from %s", tcp_hs_fsm.states[s]);
	}
	cr_assert_eq(fsm_reach(&tcp_hs_fsm, TCP_REFUSES_PLAIN, ~0u), STATE(REFUSES_PLAIN));
	cr_assert_not(fsm_reach(&tcp_hs_fsm, TCP_SKIPS_HELLO, ~0u) & STATE(WAIT_CONNECT));
	cr_assert_eq(fsm_next(&tcp_hs_fsm, TCP_SECURING, TCP_EV_PLAIN), -1);
}

/* The socket is ready only where something is to be read, or connect() is under way. */
Test(tcp_hs, ready)
{
	for (unsigned s = 0; s < TCP_NSTATES; s++)
		cr_assert_eq(fsm_next(&tcp_hs_fsm, s, TCP_EV_READY) >= 0,
			     !!((ACTIVE | (PASSIVE & ~STATE(REQUESTED))) & 1u << s), "%s",
			     tcp_hs_fsm.states[s]);
}
