/* SPDX-License-Identifier: BSD-3-Clause */
/* The tries to take a lock: the time of an owner, and another server that is faster. */
#include <errno.h>

#include "clock.h"
#include "store-lead.h"
#include "store-taking.h"
#include "unit.h"

static char why[128];

static struct store_taking begin(uint64_t may_break_ms)
{
	return (struct store_taking){ .may_break_ms = may_break_ms, .why = why,
				      .len = sizeof(why) };
}

/* The time of @t's owner has passed. */
static void pass(struct store_taking *t)
{
	t->since_ms = clock_now_ms() - STORE_LEAD_POLITE_MS;
}

/* Each owner has a time of its own, as long as this server has broken no lock. */
Test(taking, owners)
{
	struct store_taking t = begin(0);

	cr_assert_eq(store_taking_patience(&t, "a"), -EAGAIN);
	pass(&t);
	cr_assert_eq(store_taking_patience(&t, "a"), 0);
	cr_assert_eq(store_taking_patience(&t, "b"), -EAGAIN);
	pass(&t);
	cr_assert_eq(store_taking_patience(&t, "b"), 0);
}

Test(taking, faster)
{
	struct store_taking t = begin(0);

	store_taking_patience(&t, "a");
	pass(&t);
	cr_assert_eq(store_taking_may_break(&t), 0);
	t.broke = true;
	/* The service may name the owner from before for a while. */
	cr_assert_eq(store_taking_patience(&t, "a"), 0);
	cr_assert_eq(store_taking_patience(&t, "b"), -ESTALE);
	cr_assert_str_eq(why, "b was faster to take the lock that this server has broken");
}

/* A server that may not break the lock, and one that may and has not, wait for the next owner. */
Test(taking, not_broken)
{
	const uint64_t when[] = { CLOCK_NEVER, clock_now_ms() + 60000, 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(when); i++) {
		struct store_taking t = begin(when[i]);

		store_taking_patience(&t, "a");
		pass(&t);
		cr_assert_eq(store_taking_patience(&t, "a"), 0);
		cr_assert_eq(store_taking_may_break(&t), when[i] ? -EBUSY : 0);
		cr_assert_eq(store_taking_patience(&t, "b"), -EAGAIN);
	}
}
