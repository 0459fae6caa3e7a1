/* SPDX-License-Identifier: BSD-3-Clause */
/* The tries to take a lock: the time of an owner, and another server that is faster. */
#include <errno.h>

#include "clock.h"
#include "exports.h"
#include "store-lead.h"
#include "store-wait.h"
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

	cr_assert_eq(store_wait_patience(&t, "a"), -EAGAIN);
	pass(&t);
	cr_assert_eq(store_wait_patience(&t, "a"), 0);
	cr_assert_eq(store_wait_patience(&t, "b"), -EAGAIN);
	pass(&t);
	cr_assert_eq(store_wait_patience(&t, "b"), 0);
}

Test(taking, faster)
{
	struct store_taking t = begin(0);

	store_wait_patience(&t, "a");
	pass(&t);
	cr_assert_eq(store_wait_may_break(&t), 0);
	t.broke = true;
	/* The service may name the owner from before for a while. */
	cr_assert_eq(store_wait_patience(&t, "a"), 0);
	cr_assert_eq(store_wait_patience(&t, "b"), -ESTALE);
	cr_assert_str_eq(why, "b took the lock that this server had broken");
}

/* A server that may not break the lock, and one that may and has not, wait for the next owner. */
Test(taking, not_broken)
{
	const uint64_t when[] = { CLOCK_NEVER, clock_now_ms() + 60000, 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(when); i++) {
		struct store_taking t = begin(when[i]);

		store_wait_patience(&t, "a");
		pass(&t);
		cr_assert_eq(store_wait_patience(&t, "a"), 0);
		cr_assert_eq(store_wait_may_break(&t), when[i] ? -EBUSY : 0);
		cr_assert_eq(store_wait_patience(&t, "b"), -EAGAIN);
	}
}

/* ---- waiting between the tries ---- */

static struct exports all;
static unsigned ntold, ntries;

static void count_told(const struct store_wait *w, uint64_t waited_ms)
{
	cr_assert(w->late);
	cr_assert_geq(waited_ms, w->tell_ms);
	ntold++;
}

static struct store_wait wait_of(unsigned tell_ms, uint64_t patience_ms)
{
	exports_init(&all, 0);
	ntold = 0;
	return (struct store_wait){ .exports = &all, .retry_ms = 1, .tell_ms = tell_ms,
				    .patience_ms = patience_ms, .tell = count_told,
				    .since_ms = clock_now_ms() };
}

/* Whatever the patience is: a try follows that knows that the wait is late. */
Test(waiting, late_first)
{
	struct store_wait w = wait_of(5, 0);
	int rc;

	while (!(rc = store_wait(&w)))
		cr_assert_eq(ntold, 0);
	cr_assert_eq(rc, -ETIMEDOUT);
	cr_assert(w.late && w.told_ms);
	cr_assert_eq(ntold, 1);
}

Test(waiting, told_at_once)
{
	struct store_wait w = wait_of(0, 0);

	cr_assert_eq(store_wait(&w), -ETIMEDOUT);
	cr_assert_eq(ntold, 1);
}

Test(waiting, told_once_a_minute)
{
	struct store_wait w = wait_of(0, CLOCK_NEVER);

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(store_wait(&w), 0);
	cr_assert_eq(ntold, 1);
	w.told_ms -= 60000;
	cr_assert_eq(store_wait(&w), 0);
	cr_assert_eq(ntold, 2);
}

static int try_in_vain(struct store_taking *t)
{
	if (++ntries == 3)
		atomic_store(&all.stopping, true);
	return -EAGAIN;
}

Test(waiting, ends_with_the_server)
{
	struct store_wait w = wait_of(0, CLOCK_NEVER);
	struct store_taking t = begin(0);

	t.exports = &all;
	ntries = 0;
	cr_assert_eq(store_wait_take(&t, try_in_vain), -ECANCELED);
	cr_assert_eq(ntries, 3);
	cr_assert_eq(store_wait(&w), -ECANCELED);
}
