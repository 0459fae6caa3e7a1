/* SPDX-License-Identifier: BSD-3-Clause */
/* Who makes room in a crowd: cases, and a model that counts everybody anew. */
#include <netinet/in.h>
#include <sys/un.h>

#include "fab-crowd.h"
#include "random.h"
#include "unit.h"

#define PLACES 256u
#define SHARE 64u

struct member {
	struct fab_addr addr;
	struct fab_crowd_place place;
	bool here;
};

static struct fab_crowd crowd;
static struct member members[4 * PLACES];
static unsigned nmembers;

static void begin(void)
{
	nmembers = 0;
	fab_crowd_init(&crowd, PLACES, SHARE);
}

TestSuite(crowd, .init = begin);

static struct fab_addr v4(unsigned host)
{
	struct fab_addr a = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in *in = (struct sockaddr_in *)&a.ss;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0xc0000200u + host);
	in->sin_port = htons((uint16_t)(1024 + nmembers));
	return a;
}

static struct fab_addr v6(uint8_t net, uint8_t host)
{
	struct fab_addr a = { .len = sizeof(struct sockaddr_in6) };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a.ss;

	in6->sin6_family = AF_INET6;
	in6->sin6_addr.s6_addr[0] = 0x20;
	in6->sin6_addr.s6_addr[7] = net;
	in6->sin6_addr.s6_addr[15] = host;
	return a;
}

static struct fab_addr user(uid_t uid)
{
	return (struct fab_addr){ .ss.ss_family = AF_UNIX, .len = sizeof(sa_family_t), .uid = uid,
				  .pid = (pid_t)(100 + nmembers) };
}

/* @addr comes in; nobody may have to leave. */
static struct member *enter(struct fab_addr addr)
{
	struct member *m = &members[nmembers++];

	cr_assert_leq(nmembers, ARRAY_SIZE(members));
	cr_assert_null(fab_crowd_full(&crowd, &addr));
	m->addr = addr;
	m->here = true;
	fab_crowd_enter(&crowd, &m->place, &m->addr);
	return m;
}

static void leave(struct member *m)
{
	m->here = false;
	fab_crowd_leave(&crowd, &m->place);
}

static struct member *full(struct fab_addr addr)
{
	struct fab_crowd_place *p = fab_crowd_full(&crowd, &addr);

	return p ? container_of(p, struct member, place) : NULL;
}

static void enter_many(struct fab_addr addr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		enter(addr);
}

/* A host with its share pushes out its own oldest, also when there is room, and when another one
 * has been here longer. */
Test(crowd, own_oldest)
{
	struct member *honest = enter(v4(1)), *first = enter(v4(2));

	enter_many(v4(2), SHARE - 1);
	cr_assert_eq(full(v4(2)), first);
	cr_assert_null(full(v4(3)));
	cr_assert_null(full(v4(1)));
	leave(first);
	cr_assert_null(full(v4(2)));
	enter(v4(2));
	cr_assert_eq(full(v4(2)), first + 1);
	cr_assert(honest->here);
}

/* All places are taken: neither the oldest of all nor the newcomer's net makes room, but the net
 * that has the most. */
Test(crowd, the_most)
{
	struct member *honest = enter(v4(1)), *first;

	for (unsigned net = 2; net < 6; net++)
		enter_many(v4(net), SHARE - 2);
	first = enter(v4(6));
	cr_assert_eq(first - members, 1 + 4 * (SHARE - 2));
	enter_many(v4(6), 5);
	enter(v4(4));
	cr_assert_eq(crowd.n, PLACES);
	first = &members[1 + 2 * (SHARE - 2)];		/* of 4 */
	cr_assert_eq(full(v4(7)), first);
	cr_assert_eq(full(v4(1)), first);
	cr_assert_eq(full(v4(2)), first);
	leave(first);
	enter(v4(7));
	/* Now four have as many: the oldest of these. */
	cr_assert_eq(full(v4(8)), &members[1]);
	cr_assert(honest->here);
}

/* Nobody has more than one: the oldest of all. */
Test(crowd, all_alone)
{
	for (unsigned i = 0; i < PLACES; i++)
		enter(v4(i));
	for (unsigned i = 0; i < PLACES; i++) {
		cr_assert_eq(full(v4(PLACES + i)), &members[i]);
		leave(&members[i]);
		enter(v4(PLACES + i));
	}
}

Test(crowd, nets)
{
	enter_many(v6(1, 1), SHARE / 2);
	enter_many(v6(1, 2), SHARE / 2);
	cr_assert_eq(full(v6(1, 3)), &members[0], "64 bits of IPv6 are a net");
	cr_assert_null(full(v6(2, 1)));
	enter_many(user(1000), SHARE);
	cr_assert_eq(full(user(1000)), &members[SHARE], "a user is a net, not a process");
	cr_assert_null(full(user(1001)));
}

/* ---- the model ---- */

static unsigned net_count(const struct fab_addr *addr)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nmembers; i++)
		n += members[i].here && fab_addr_same_net(&members[i].addr, addr);
	return n;
}

/* Members are in the order of arrival. */
static struct member *model_full(struct fab_addr addr)
{
	bool share = net_count(&addr) >= SHARE;
	struct member *who = NULL;
	unsigned n = 0, most = 0;

	for (unsigned i = 0; i < nmembers; i++) {
		struct member *m = &members[i];

		n += m->here;
		if (!m->here || (share && !fab_addr_same_net(&m->addr, &addr)) ||
		    net_count(&m->addr) <= most)
			continue;
		most = net_count(&m->addr);
		who = m;
	}
	return share || n >= PLACES ? who : NULL;
}

Test(crowd, as_the_model)
{
	uint64_t seed = 1;

	while (nmembers < ARRAY_SIZE(members)) {
		uint64_t dice = random_next(&seed);
		/* Half of the arrivals are of one of three nets. */
		struct fab_addr addr = v4((unsigned)(dice % 2 ? dice / 2 % 3 : dice / 2 % 40));
		struct member *who = full(addr);

		cr_assert_eq(who, model_full(addr), "at %u", nmembers);
		if (who)
			leave(who);
		enter(addr);
		who = &members[random_next(&seed) % nmembers];
		if (who->here && dice / 256 % 8 == 0)
			leave(who);
	}
	for (unsigned i = 0; i < nmembers; i++) {
		if (members[i].here)
			leave(&members[i]);
	}
	cr_assert_eq(crowd.n, 0);
	cr_assert(list_empty(&crowd.nets));
}
