/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which requests enter the storage: what a flow gets alone and beside others, in
 * requests and passes.  No time is measured. */
#include "loop-impl.h"
#include "srv-drr.h"
#include "unit.h"

#define DEPTH 512u
#define FLOWS 65u
#define SMALL 4096u
#define LARGE (1u << 20)
#define DEEP (FLOWS - 1)		/* the flow with many requests, if there is one */

struct request {
	struct srv_drr_item item;
	unsigned flow;
	uint64_t arrived;		/* nentered of all at the arrival */
	uint64_t arrived_own;		/* of the flow */
};

static struct loop loop;
static struct srv_drr drr;
static struct srv_drr_flow flows[FLOWS];
static enum srv_drr_class classes[FLOWS];
static struct request requests[FLOWS][DEPTH];
static unsigned nadded[FLOWS], nwaiting[FLOWS];
static uint64_t nentered, entered[FLOWS];
static uint64_t before[FLOWS];		/* what had entered at the end of the last pass */
/* Of other flows, between the arrival and the entry of a request of the flow: the most. */
static uint64_t ahead[FLOWS];
static unsigned last_flows[2];		/* of the last two that entered, the last one first */

static void request_enters(struct srv_drr_item *item)
{
	struct request *r = container_of(item, struct request, item);

	ahead[r->flow] = MAX(ahead[r->flow], nentered - r->arrived -
					     (entered[r->flow] - r->arrived_own));
	nentered++;
	entered[r->flow]++;
	nwaiting[r->flow]--;
	last_flows[1] = last_flows[0];
	last_flows[0] = r->flow;
}

/* @n requests of @flow arrive; at most DEPTH wait. */
static void arrive(unsigned flow, unsigned n, uint32_t bytes)
{
	while (n--) {
		struct request *r = &requests[flow][nadded[flow]++ % DEPTH];

		cr_assert_lt(nwaiting[flow]++, DEPTH);
		r->item.fn = request_enters;
		r->flow = flow;
		r->arrived = nentered;
		r->arrived_own = entered[flow];
		if (srv_drr_at_once(&drr, &flows[flow], bytes))
			request_enters(&r->item);
		else
			srv_drr_add(&drr, &flows[flow], classes[flow], &r->item, bytes);
	}
}

static void pass(void)
{
	loop_run_tasks(&loop);
}

/* The end of a pass.  Returns how many requests of @flow have entered since the last pass_of(). */
static uint64_t pass_of(unsigned flow)
{
	uint64_t n;

	pass();
	n = entered[flow] - before[flow];
	memcpy(before, entered, sizeof(before));
	return n;
}

/* True if the thread goes on without a sleep. */
static bool goes_on(void)
{
	return !list_empty(&loop.tasks);
}

static void setup(void)
{
	cr_assert_eq(loop_init(&loop), 0);
	srv_drr_init(&drr, &loop);
	for (unsigned i = 0; i < FLOWS; i++) {
		srv_drr_flow_init(&flows[i]);
		classes[i] = SRV_DRR_BEST_EFFORT;
	}
}

static void teardown(void)
{
	while (goes_on())
		pass_of(0);
	for (unsigned i = 0; i < FLOWS; i++)
		cr_assert(nwaiting[i] == 0 && flows[i].credit == 0 && list_empty(&flows[i].link));
	loop_fini(&loop);
}

TestSuite(srv_drr, .init = setup, .fini = teardown);

/* So many rounds that DEEP has no neighbour any more. */
static void be_alone(void)
{
	for (unsigned i = 0; i <= SRV_DRR_REMEMBERED; i++) {
		arrive(DEEP, 1, SMALL);
		cr_assert_eq(pass_of(DEEP), 1);
	}
}

Test(srv_drr, nothing_enters_inside_the_call)
{
	arrive(0, 1, SMALL);
	cr_assert_eq(nentered, 0);
	cr_assert_eq(pass_of(0), 1);
	cr_assert(!goes_on());
}

static const struct {
	unsigned depth;
	uint32_t bytes;
	unsigned passes[5];		/* what enters in each */
} alone[] = {
	{ 1, SMALL, { 1 } },
	{ 127, SMALL, { 127 } },
	{ 128, SMALL, { 128 } },
	{ 129, SMALL, { 128, 1 } },
	{ 512, SMALL, { 128, 128, 128, 128 } },
	{ 512, 0, { 256, 256 } },
	{ 16, 128 << 10, { 8, 8 } },
	{ 3, LARGE, { 1, 1, 1 } },
};

/* A flow without neighbours has what a poll brings in one pass, and no sleep in between. */
Test(srv_drr, alone_a_pass_takes_all_of_a_poll)
{
	for_each_case(c, alone) {
		uint64_t at_once;

		be_alone();
		at_once = nentered + c->passes[0];
		arrive(DEEP, c->depth, c->bytes);
		cr_assert_eq(nentered, at_once);
		for (unsigned i = 0; c->passes[i]; i++) {
			cr_assert_eq(pass_of(DEEP), c->passes[i], "%u of %u bytes, pass %u",
				     c->depth, c->bytes, i);
			cr_assert_eq(goes_on(), nwaiting[DEEP] > 0);
		}
		cr_assert_eq(nwaiting[DEEP], 0);
	}
}

static const struct {
	unsigned depth;
	uint32_t bytes;
	unsigned quantum;		/* requests of a round */
	unsigned alone;			/* requests of a pass before a neighbour comes */
} beside[] = {
	{ 128, SMALL, 16, 128 }, { 129, SMALL, 16, 128 }, { 512, SMALL, 16, 128 },
	{ 128, LARGE, 1, 1 }, { 129, LARGE, 1, 1 }, { 512, LARGE, 1, 1 },
	{ 512, 0, 32, 256 },
};

/* Some requests beside @c->depth of another flow, which arrive before or after them in the same
 * pass, or have waited for some passes.  DEEP was alone when they arrive. */
static void a_few_beside_a_deep_flow(unsigned n, uint32_t bytes, bool first, unsigned passes,
				     const __typeof__(beside[0]) *c)
{
	be_alone();
	if (first)
		arrive(0, n, bytes);
	arrive(DEEP, c->depth, c->bytes);
	for (unsigned i = 0; i < passes; i++)
		pass_of(DEEP);
	if (!first)
		arrive(0, n, bytes);
	cr_assert_eq(pass_of(0), first && passes ? 0 : n, "%u of %u bytes", c->depth, c->bytes);
	while (goes_on())
		pass_of(DEEP);
}

Test(srv_drr, one_request_beside_a_deep_flow)
{
	for_each_case(c, beside) {
		for (unsigned passes = 0; passes < 4; passes++) {
			a_few_beside_a_deep_flow(1, SMALL, false, passes, c);
			a_few_beside_a_deep_flow(1, SMALL, true, passes, c);
			cr_assert_eq(ahead[0], 0);
		}
	}
}

/* The same of two requests, and of a large one: what DEEP had at once entered before them. */
Test(srv_drr, two_requests_beside_a_deep_flow)
{
	for_each_case(c, beside) {
		unsigned most = MIN(c->quantum, c->depth - c->alone);

		a_few_beside_a_deep_flow(2, SMALL, false, 0, c);
		cr_assert_eq(ahead[0], most);
		a_few_beside_a_deep_flow(1, LARGE, false, 0, c);
		cr_assert_eq(ahead[0], most);
		ahead[0] = 0;
	}
}

/* The most that a first request meets, and the counter that says so. */
Test(srv_drr, the_bound_is_a_quantum_of_each_neighbour)
{
	for_each_case(c, beside) {
		srv_drr_flow_init(&flows[0]);
		entered[0] = before[0] = ahead[0] = 0;
		for (unsigned i = 1; i < FLOWS; i++)
			arrive(i, c->depth, c->bytes);
		arrive(0, 2, SMALL);
		cr_assert_eq(pass_of(0), 2);
		cr_assert_eq(ahead[0], (FLOWS - 1) * c->quantum);
		cr_assert_eq(flows[0].ahead_max, ahead[0]);
		while (goes_on())
			pass_of(0);
	}
}

/* A flow that never ends, and one that asks now and then: each request enters in the pass of its
 * arrival, and the deep flow has its quantum in each. */
Test(srv_drr, nobody_starves_beside_a_flow_without_end)
{
	for_each_case(c, beside) {
		for (unsigned i = 0; i < 1000; i++) {
			arrive(DEEP, c->depth - nwaiting[DEEP], c->bytes);
			if (i % 7 == 0) {
				arrive(0, 1, SMALL);
				cr_assert_eq(pass_of(0), 1);
			} else {
				pass_of(0);
			}
		}
		cr_assert_eq(ahead[0], 0);
		cr_assert_geq(entered[DEEP], 1000 / 8);
		while (goes_on())
			pass_of(0);
	}
}

/* What two flows without end have had after many rounds costs the same: bytes and requests. */
Test(srv_drr, large_requests_cost_what_they_move)
{
	uint64_t costs[2];

	for (unsigned i = 0; i < 10000; i++) {
		arrive(0, 64 - nwaiting[0], SMALL);
		arrive(1, 64 - nwaiting[1], LARGE);
		pass_of(0);
	}
	costs[0] = entered[0] * (SMALL + SRV_DRR_REQUEST);
	costs[1] = entered[1] * ((uint64_t)LARGE + SRV_DRR_REQUEST);
	cr_assert_leq(costs[1], costs[0] + SRV_DRR_QUANTUM + LARGE);
	cr_assert_leq(costs[0], costs[1] + SRV_DRR_QUANTUM + LARGE);
}

Test(srv_drr, equals_have_equal_shares)
{
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned flow = 0; flow < 8; flow++)
			arrive(flow, 64 - nwaiting[flow], SMALL);
		pass_of(0);
	}
	for (unsigned flow = 0; flow < 8; flow++)
		cr_assert_eq(entered[flow], 16 * 1000);
}

/* What a flow owes ends with its last request. */
Test(srv_drr, an_empty_flow_owes_nothing)
{
	for (unsigned i = 0; i < 10; i++) {
		arrive(DEEP, DEPTH - nwaiting[DEEP], SMALL);
		arrive(0, 1, LARGE);
		cr_assert_eq(pass_of(0), 1);
	}
}

/* A better class enters first in each pass, and no class waits for the end of another. */
Test(srv_drr, classes_are_above_turns)
{
	classes[0] = SRV_DRR_IDLE;
	classes[2] = SRV_DRR_REALTIME;
	for (unsigned i = 0; i < 100; i++) {
		uint64_t idle = entered[0], realtime = entered[2];

		for (unsigned flow = 0; flow < 3; flow++)
			arrive(flow, 64 - nwaiting[flow], SMALL);
		cr_assert_eq(pass_of(1), 16);
		cr_assert(entered[0] == idle + 16 && entered[2] == realtime + 16);
		cr_assert_eq(last_flows[0], 0);
	}
	/* Whoever comes first enters after a better class. */
	while (goes_on())
		pass_of(0);
	arrive(0, 1, SMALL);
	arrive(2, 1, SMALL);
	pass_of(0);
	cr_assert(last_flows[1] == 2 && last_flows[0] == 0);
}

/* The neighbour is remembered for SRV_DRR_REMEMBERED rounds, and no longer. */
Test(srv_drr, neighbours_are_forgotten)
{
	be_alone();
	arrive(0, 1, SMALL);
	pass_of(0);
	for (unsigned i = 0; i < SRV_DRR_REMEMBERED; i++) {
		arrive(DEEP, 128 - nwaiting[DEEP], SMALL);
		cr_assert_eq(pass_of(DEEP), 16, "round %u", i);
	}
	arrive(DEEP, 128 - nwaiting[DEEP], SMALL);
	cr_assert_eq(pass_of(DEEP), 128);
}

static struct srv_drr_flow *short_lived;

static void last_enters(struct srv_drr_item *item)
{
	memset(short_lived, 0xee, sizeof(*short_lived));
	free(short_lived);
}

/* A device may be closed with its last request. */
Test(srv_drr, a_flow_ends_with_its_last_request)
{
	struct srv_drr_item item = { .fn = last_enters };

	short_lived = malloc(sizeof(*short_lived));
	cr_assert_not_null(short_lived);
	srv_drr_flow_init(short_lived);
	srv_drr_add(&drr, short_lived, SRV_DRR_IDLE, &item, SMALL);
	arrive(0, 1, SMALL);
	cr_assert_eq(pass_of(0), 1);
	cr_assert(!goes_on());
	arrive(0, 1, SMALL);
	cr_assert_eq(pass_of(0), 1);
}
