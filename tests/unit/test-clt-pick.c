/* SPDX-License-Identifier: BSD-3-Clause */
/* Which path a request takes: properties of the three policies. */
#include "unit.h"

#include "clt-io.h"

#define N 4

static struct clt_io io;
static struct clt_attempt atts[N];
static struct clt_con cons[N][2];

static void setup(void)
{
	memset(&io, 0, sizeof(io));
	memset(atts, 0, sizeof(atts));
	memset(cons, 0, sizeof(cons));
	for (unsigned i = 0; i < N; i++) {
		atts[i].index = i;
		atts[i].cons = cons[i];
		atts[i].ncons = 2;
		atomic_store(&atts[i].state, CLT_PATH_UP);
		io.atts[i] = &atts[i];
	}
	atomic_store(&io.natts, N);
}

TestSuite(clt_pick, .init = setup);

static struct clt_attempt *pick(enum clt_policy policy)
{
	atomic_store(&io.policy, policy);
	return clt_pick(&io, 7);
}

Test(clt_pick, nothing_is_up)
{
	for (unsigned s = 0; s < CLT_PATH_NSTATES; s++) {
		bool up = s == CLT_PATH_UP || s == CLT_PATH_SILENT;

		for (unsigned i = 0; i < N; i++)
			atomic_store(&atts[i].state, s);
		for (unsigned p = 0; p < CLT_NPOLICIES; p++) {
			cr_assert_eq(!!pick((enum clt_policy)p), up, "policy %u, state %u", p, s);
			atomic_store(&io.natts, 1);
			cr_assert_eq(!!pick((enum clt_policy)p), up, "policy %u, state %u, alone",
				     p, s);
			atomic_store(&io.natts, N);
		}
	}
}

/* What is up is taken, whichever it is, and one that is silent only when there is no other. */
Test(clt_pick, the_one_that_is_up)
{
	for (unsigned p = 0; p < CLT_NPOLICIES; p++) {
		for (unsigned up = 0; up < N; up++) {
			for (unsigned i = 0; i < N; i++)
				atomic_store(&atts[i].state,
					     i == up ? CLT_PATH_UP : CLT_PATH_SILENT);
			for (unsigned i = 0; i < N; i++)	/* whose turn it would be */
				cr_assert_eq(pick((enum clt_policy)p), &atts[up]);
			for (unsigned i = 0; i < N; i++)
				atomic_store(&atts[i].state,
					     i == up ? CLT_PATH_SILENT : CLT_PATH_BACKOFF);
			for (unsigned i = 0; i < N; i++)
				cr_assert_eq(pick((enum clt_policy)p), &atts[up]);
		}
	}
}

Test(clt_pick, in_turn_means_each_as_often)
{
	unsigned taken[N] = { 0 };

	for (unsigned i = 0; i < 100 * N; i++)
		taken[pick(CLT_POLICY_ROUND_ROBIN)->index]++;
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(taken[i], 100u);
}

Test(clt_pick, fewest_in_flight)
{
	for (unsigned i = 0; i < N; i++)
		atomic_store(&cons[i][i % 2].inflight, 10 - i);
	cr_assert_eq(pick(CLT_POLICY_MIN_INFLIGHT), &atts[N - 1]);
	atomic_store(&cons[0][1].inflight, 0);
	atomic_store(&cons[0][0].inflight, 0);
	cr_assert_eq(pick(CLT_POLICY_MIN_INFLIGHT), &atts[0]);
	for (unsigned i = 0; i < N; i++) {
		atomic_store(&cons[i][0].inflight, 1);
		atomic_store(&cons[i][1].inflight, 1);
	}
	cr_assert_eq(pick(CLT_POLICY_MIN_INFLIGHT), &atts[0], "a tie goes to the first");
}

/* One that has not been measured yet is not the fastest. */
Test(clt_pick, shortest_latency)
{
	atomic_store(&atts[1].hb.latency_ns, 5000);
	atomic_store(&atts[2].hb.latency_ns, 4000);
	cr_assert_eq(pick(CLT_POLICY_MIN_LATENCY), &atts[2]);
	atomic_store(&atts[3].hb.latency_ns, 3999);
	cr_assert_eq(pick(CLT_POLICY_MIN_LATENCY), &atts[3]);
	for (unsigned i = 0; i < N; i++)
		atomic_store(&atts[i].hb.latency_ns, 0);
	cr_assert_eq(pick(CLT_POLICY_MIN_LATENCY), &atts[0], "nothing is known: the first");
}
