/* SPDX-License-Identifier: BSD-3-Clause */
/* The member that makes room for another: cases, and a model that counts all members. */
#include "unproven.h"

#include "clock.h"
#include "loop-impl.h"
#include "unit.h"

#define PLACES 256u
#define SHARE 64u

struct member {
	uint64_t net;
	struct unproven_place place;
	bool here;
};

static struct unproven unproven;
static struct member members[4 * PLACES];
static unsigned nmembers;

static struct loop loop;
static uint64_t now_ms = 1000;
static struct unproven_place *ended;	/* the last one */
static enum unproven_why ended_why;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

static void end(struct unproven_place *p, enum unproven_why why)
{
	ended = p;
	ended_why = why;
	unproven_leave(p);
}

static void begin(void)
{
	nmembers = 0;
	ended = NULL;
	unproven_init(&unproven, NULL, PLACES, SHARE, end);
}

TestSuite(unproven, .init = begin);

/* A newcomer of @net.  Returns whom the newcomer ended, or NULL. */
static struct member *comes(uint64_t net)
{
	struct member *m = &members[nmembers++], *left;
	unsigned before = unproven.n;

	cr_assert_leq(nmembers, ARRAY_SIZE(members));
	*m = (struct member){ .net = net, .here = true };
	ended = NULL;
	unproven_enter(&unproven, &m->place, net, 0);
	cr_assert(unproven_is_in(&m->place));
	cr_assert_eq(unproven.n, before + !ended);
	if (!ended)
		return NULL;
	left = container_of(ended, struct member, place);
	cr_assert(left != m && left->here && !unproven_is_in(&left->place));
	cr_assert_eq(ended_why, UNPROVEN_ONE_TOO_MANY);
	left->here = false;
	return left;
}

/* Somebody of @net comes in, and nobody has to leave. */
static struct member *enter(uint64_t net)
{
	cr_assert_null(comes(net));
	return &members[nmembers - 1];
}

static void leave(struct member *m)
{
	m->here = false;
	unproven_leave(&m->place);
}

static void enter_many(uint64_t net, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		enter(net);
}

/* A newcomer of @net takes the place of a member of @gives, which gets its place back. */
static void takes_from(uint64_t net, uint64_t gives)
{
	struct member *left = comes(net);

	cr_assert_not_null(left);
	cr_assert_eq(left->net, gives);
	leave(&members[--nmembers]);
	left->here = true;
	unproven_enter(&unproven, &left->place, gives, 0);
}

/* A net with its share makes room itself, also when there is room, and when another one has been
 * here longer. */
Test(unproven, own_share)
{
	struct member *honest = enter(1), *first = enter(2);

	enter_many(2, SHARE - 1);
	takes_from(2, 2);
	leave(enter(3));
	leave(enter(1));
	leave(first);
	enter(2);
	takes_from(2, 2);
	cr_assert(honest->here);
}

/* All places are taken: neither the oldest of all nor the newcomer's net makes room, but the net
 * that has the most. */
Test(unproven, the_most)
{
	struct member *honest = enter(1), *fourth;

	for (unsigned net = 2; net < 6; net++)
		enter_many(net, SHARE - 2);
	enter_many(6, 6);
	fourth = enter(4);
	cr_assert_eq(unproven.n, PLACES);
	takes_from(7, 4);
	takes_from(1, 4);
	takes_from(2, 4);
	leave(fourth);
	enter(7);
	/* Now four have as many: the one whose oldest came first. */
	cr_assert_eq(comes(8)->net, 2);
	cr_assert(honest->here);
}

/* Nobody has more than one: the oldest of all. */
Test(unproven, all_alone)
{
	for (unsigned i = 0; i < PLACES; i++)
		enter(i);
	for (unsigned i = 0; i < PLACES; i++)
		cr_assert_eq(comes(PLACES + i), &members[i]);
}

/* The net without a share fills all places, and then it is the one that has the most. */
Test(unproven, unbound)
{
	struct member *own;

	enter(1);
	enter_many(UNPROVEN_NET_UNBOUND, PLACES - 1);
	takes_from(UNPROVEN_NET_UNBOUND, UNPROVEN_NET_UNBOUND);
	takes_from(1, UNPROVEN_NET_UNBOUND);
	own = comes(1);
	leave(own == &members[1] ? &members[2] : &members[1]);
	enter(UNPROVEN_NET_UNBOUND);
}

/* Each member of a net is picked, the oldest as rarely as the others.  If the oldest were always
 * picked, peers that need longer than newcomers to fill the places would never finish. */
Test(unproven, by_chance)
{
	enum { TRIES = 40 * SHARE };	/* one that is never picked: once in 1e16 */
	unsigned picked[SHARE] = { 0 };

	for (unsigned i = 0; i < TRIES; i++) {
		begin();
		enter_many(1, SHARE);
		picked[comes(1) - members]++;
	}
	for (unsigned i = 0; i < SHARE; i++)
		cr_assert(picked[i] > 0 && picked[i] < 100, "%u: %u", i, picked[i]);
}

/* A place leaves once, and one of zeroes is nowhere in. */
Test(unproven, left)
{
	struct unproven_place none = { 0 };
	struct member *m = enter(1);

	unproven_leave(&none);
	leave(m);
	leave(m);
	cr_assert_eq(unproven.n, 0);
	enter(1);
	cr_assert_eq(unproven.n, 1);
}

static void pass_time(uint64_t ms)
{
	now_ms += ms;
	ended = NULL;
	loop_run_timers(&loop, now_ms);
}

/* Each has its time, which stands still while the member is out. */
Test(unproven, time)
{
	struct unproven_place a = { 0 }, b = { 0 };

	cr_assert_eq(loop_init(&loop), 0);
	unproven_init(&unproven, &loop, PLACES, SHARE, end);
	unproven_enter(&unproven, &a, 1, 100);
	unproven_enter(&unproven, &b, 1, 300);
	pass_time(60);
	cr_assert_eq(unproven_leave(&a), 40);
	cr_assert_eq(unproven_leave(&a), 0);
	pass_time(100);
	cr_assert_null(ended);
	unproven_enter(&unproven, &a, 1, 40);
	pass_time(39);
	cr_assert_null(ended);
	pass_time(1);
	cr_assert_eq(ended, &a);
	cr_assert_eq(ended_why, UNPROVEN_LATE);
	unproven_give_time(&b, 500);
	pass_time(499);
	cr_assert_null(ended);
	pass_time(1);
	cr_assert_eq(ended, &b);
	cr_assert_eq(unproven.n, 0);
}

/* ---- the model ---- */

static unsigned net_count(uint64_t net)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nmembers; i++)
		n += members[i].here && members[i].net == net;
	return n;
}

/* A member of the net that makes room.  Members are in the order of arrival. */
static struct member *model_full(uint64_t net)
{
	bool share = net != UNPROVEN_NET_UNBOUND && net_count(net) >= SHARE;
	struct member *who = NULL;
	unsigned n = 0, most = 0;

	for (unsigned i = 0; i < nmembers; i++) {
		struct member *m = &members[i];

		n += m->here;
		if (!m->here || (share && m->net != net) || net_count(m->net) <= most)
			continue;
		most = net_count(m->net);
		who = m;
	}
	return share || n >= PLACES ? who : NULL;
}

static void as_the_model(uint64_t seed)
{
	while (nmembers < ARRAY_SIZE(members)) {
		uint64_t dice = random_next(&seed);
		/* Half of the arrivals are of one of three nets. */
		uint64_t net = dice % 2 ? dice / 2 % 3 : dice / 2 % 40;
		const struct member *want;
		struct member *who;

		if (net == 1)
			net = UNPROVEN_NET_UNBOUND;
		want = model_full(net);
		who = comes(net);
		cr_assert_eq(!who, !want, "at %u", nmembers);
		if (who)
			cr_assert_eq(who->net, want->net, "at %u", nmembers);
		who = &members[random_next(&seed) % nmembers];
		if (who->here && dice / 256 % 8 == 0)
			leave(who);
	}
	for (unsigned i = 0; i < nmembers; i++)
		leave(&members[i]);
	cr_assert_eq(unproven.n, 0);
	cr_assert(list_empty(&unproven.nets));
}

Test(unproven, as_the_model)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		begin();
		as_the_model(seed);
	}
}
