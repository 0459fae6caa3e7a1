/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges that are being written: who waits for whom, and who is told when one leaves. */
#include "range.h"
#include "unit.h"

static struct range_lock lock;
static struct range r[4];
static char trace[16];

static void granted(struct range *range)
{
	size_t n = strlen(trace);

	trace[n] = (char)('0' + (range - r));
	trace[n + 1] = '\0';
}

static void setup(void)
{
	range_lock_init(&lock);
}

/* Nothing is left behind. */
static void teardown(void)
{
	cr_assert(list_empty(&lock.ranges));
	cr_assert_eq(lock.nexclusive, 0u);
	range_lock_fini(&lock);
}

TestSuite(range, .init = setup, .fini = teardown);

static bool enter(unsigned i, uint64_t start, uint64_t end, bool exclusive)
{
	r[i] = (struct range){ .start = start, .end = end, .exclusive = exclusive,
			       .granted = granted };
	return range_enter(&lock, &r[i]);
}

#define shared(i, start, end) enter(i, start, end, false)
#define exclusive(i, start, end) enter(i, start, end, true)

static void leave(unsigned i, const char *woken)
{
	trace[0] = '\0';
	range_leave(&lock, &r[i]);
	cr_assert_str_eq(trace, woken, "leaving %u woke '%s', expected '%s'", i, trace, woken);
}

Test(range, whole_blocks_never_wait)
{
	cr_assert(shared(0, 0, 8192));
	cr_assert(shared(1, 0, 8192));
	cr_assert(shared(2, 4096, 12288));
	leave(1, "");
	leave(0, "");
	leave(2, "");
}

/* Who waits for two goes on when both have left, whichever is the first. */
Test(range, waits_for_all_in_front)
{
	cr_assert(exclusive(0, 0, 4096));
	cr_assert(exclusive(1, 4096, 8192));
	cr_assert_not(exclusive(2, 0, 8192));
	leave(0, "");
	leave(1, "2");
	leave(2, "");

	cr_assert(exclusive(0, 0, 4096));
	cr_assert_not(exclusive(1, 0, 4096));
	cr_assert_not(exclusive(2, 0, 4096));
	leave(0, "1");
	leave(1, "2");
	leave(2, "");
}

Test(range, a_change_excludes_writers_of_its_block_only)
{
	cr_assert(exclusive(0, 4096, 8192));
	cr_assert(shared(1, 0, 4096));
	cr_assert(shared(2, 8192, 12288));
	cr_assert_not(shared(3, 0, 4097));
	cr_assert_not(range_is_granted(&lock, &r[3]));
	leave(1, "");
	leave(0, "3");
	cr_assert(range_is_granted(&lock, &r[3]));
	leave(2, "");
	leave(3, "");
}

Test(range, a_change_waits_for_writers_and_goes_before_later_ones)
{
	cr_assert(shared(0, 0, 4096));
	cr_assert_not(exclusive(1, 0, 512));
	cr_assert_not(shared(2, 0, 512));	/* 1 came first */
	cr_assert(shared(3, 512, 1024));
	leave(0, "1");
	cr_assert_not(range_is_granted(&lock, &r[2]));
	leave(1, "2");
	leave(2, "");
	leave(3, "");
}

Test(range, neighbours_do_not_wait)
{
	cr_assert(exclusive(0, 4096, 8192));
	cr_assert(exclusive(1, 0, 4096));
	cr_assert(exclusive(2, 8192, 12288));
	leave(0, "");
	leave(1, "");
	leave(2, "");
}

/* 2 overlaps 1, which waits: it keeps its place behind it, though what 0 holds is elsewhere. */
Test(range, order_of_arrival)
{
	cr_assert(exclusive(0, 0, 4096));
	cr_assert_not(exclusive(1, 0, 8192));
	cr_assert_not(exclusive(2, 4096, 8192));
	cr_assert(exclusive(3, 8192, 12288));
	leave(3, "");
	leave(0, "1");
	leave(1, "2");
	leave(2, "");
}

Test(range, several_wake_at_once)
{
	cr_assert(exclusive(0, 0, 16384));
	cr_assert_not(exclusive(1, 0, 4096));
	cr_assert_not(exclusive(2, 4096, 8192));
	cr_assert_not(shared(3, 8192, 16384));
	leave(0, "123");
	leave(2, "");
	leave(1, "");
	leave(3, "");
}

/* One that gives up its place lets those behind it go. */
Test(range, leaves_while_it_waits)
{
	cr_assert(shared(0, 0, 4096));
	cr_assert_not(exclusive(1, 0, 4096));
	cr_assert_not(shared(2, 0, 4096));
	leave(1, "2");
	leave(0, "");
	leave(2, "");
}
