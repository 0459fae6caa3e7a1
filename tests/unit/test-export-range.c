/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for whom among overlapping writes of a direct export. */
#include "export-range.h"
#include "unit.h"

static struct export_ranges ranges;
static struct inbox inbox;
static struct export_range r[4];
static char trace[16];

static void granted(struct inbox_msg *msg)
{
	struct export_range *range = container_of(msg, struct export_range, granted);
	size_t n = strlen(trace);

	trace[n] = (char)('0' + (range - r));
	trace[n + 1] = '\0';
}

static void setup(void)
{
	export_ranges_init(&ranges);
	cr_assert_eq(inbox_init(&inbox), 0);
	trace[0] = '\0';
}

static void teardown(void)
{
	inbox_fini(&inbox);
}

TestSuite(export_range, .init = setup, .fini = teardown);

static bool enter(unsigned i, uint64_t start, uint64_t end, bool partial)
{
	r[i] = (struct export_range){ .start = start, .end = end, .partial = partial,
				      .inbox = &inbox, .granted.fn = granted };
	return export_range_enter(&ranges, &r[i]);
}

static void leave(unsigned i, const char *woken)
{
	trace[0] = '\0';
	export_range_leave(&ranges, &r[i]);
	inbox_run(&inbox);
	cr_assert_str_eq(trace, woken, "leaving %u woke '%s', expected '%s'", i, trace, woken);
}

Test(export_range, whole_blocks_never_wait)
{
	cr_assert(enter(0, 0, 8192, false));
	cr_assert(enter(1, 0, 8192, false));
	cr_assert(enter(2, 4096, 12288, false));
	leave(1, "");
	leave(0, "");
	leave(2, "");
}

Test(export_range, partial_waits_for_the_whole_and_the_other_way_round)
{
	cr_assert(enter(0, 0, 4096, false));
	cr_assert_not(enter(1, 0, 4096, true));
	cr_assert_not(enter(2, 0, 4096, false));
	leave(0, "1");
	leave(1, "2");
	leave(2, "");
}

Test(export_range, neighbours_do_not_wait)
{
	cr_assert(enter(0, 4096, 8192, true));
	cr_assert(enter(1, 0, 4096, true));
	cr_assert(enter(2, 8192, 12288, true));
	leave(0, "");
	leave(1, "");
	leave(2, "");
}

/* 2 overlaps 1, which waits: it keeps its place behind it, though what 0 holds is elsewhere. */
Test(export_range, order_of_arrival)
{
	cr_assert(enter(0, 0, 4096, true));
	cr_assert_not(enter(1, 0, 8192, true));
	cr_assert_not(enter(2, 4096, 8192, true));
	cr_assert(enter(3, 8192, 12288, true));
	leave(3, "");
	leave(0, "1");
	leave(1, "2");
	leave(2, "");
}

Test(export_range, several_wake_at_once)
{
	cr_assert(enter(0, 0, 16384, true));
	cr_assert_not(enter(1, 0, 4096, true));
	cr_assert_not(enter(2, 4096, 8192, true));
	cr_assert_not(enter(3, 8192, 16384, false));
	leave(0, "123");
	leave(2, "");
	leave(1, "");
	leave(3, "");
}
