/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges that are being written: who waits for whom, and who is told when one leaves. */
#include "unit.h"

#include "rnbd-clt-rmw.h"

static struct clt_waiter *told[8];
static unsigned ntold;

/* clt-wait.h, as far as the lock needs it. */
void clt_waiter_init(struct clt_waiter *w, void (*fn)(struct clt_waiter *w))
{
	w->fn = fn;
}

void clt_wait_look(struct clt_waiter *w)
{
	told[ntold++] = w;
}

void clt_wait_batch_begin(void)
{
}

void clt_wait_batch_end(void)
{
}

static struct rmw_lock l;
static struct rmw_range a, b, c, d;

static void setup(void)
{
	rmw_lock_init(&l);
	ntold = 0;
}

TestSuite(rnbd_rmw, .init = setup);

#define shared(r, start, end) rmw_enter(&l, r, start, end, false, NULL)
#define exclusive(r, start, end) rmw_enter(&l, r, start, end, true, NULL)

Test(rnbd_rmw, writers_share)
{
	cr_assert(shared(&a, 0, 8192));
	cr_assert(shared(&b, 4096, 12288));
	rmw_leave(&l, &a);
	rmw_leave(&l, &b);
	cr_assert_eq(ntold, 0u);
}

Test(rnbd_rmw, a_change_excludes_writers_of_its_block_only)
{
	cr_assert(exclusive(&a, 4096, 8192));
	cr_assert(shared(&b, 0, 4096));
	cr_assert(shared(&c, 8192, 12288));
	cr_assert_not(shared(&d, 0, 4097));
	cr_assert_not(rmw_granted(&l, &d));
	rmw_leave(&l, &b);
	cr_assert_eq(ntold, 0u);
	rmw_leave(&l, &a);
	cr_assert(rmw_granted(&l, &d));
	cr_assert_eq(ntold, 1u);
	cr_assert_eq(told[0], &d.waiter);
	rmw_leave(&l, &c);
	rmw_leave(&l, &d);
}

Test(rnbd_rmw, a_change_waits_for_writers_and_goes_before_later_ones)
{
	cr_assert(shared(&a, 0, 4096));
	cr_assert_not(exclusive(&b, 0, 512));
	cr_assert_not(shared(&c, 0, 512));	/* b came first */
	cr_assert(shared(&d, 512, 1024));
	rmw_leave(&l, &a);
	cr_assert(rmw_granted(&l, &b));
	cr_assert_not(rmw_granted(&l, &c));
	rmw_leave(&l, &b);
	cr_assert(rmw_granted(&l, &c));
	cr_assert_eq(ntold, 2u);
	rmw_leave(&l, &c);
	rmw_leave(&l, &d);
}

Test(rnbd_rmw, two_changes_of_one_block_take_turns)
{
	cr_assert(exclusive(&a, 0, 512));
	cr_assert_not(exclusive(&b, 0, 512));
	rmw_leave(&l, &a);
	cr_assert(rmw_granted(&l, &b));
	rmw_leave(&l, &b);
	cr_assert(shared(&c, 0, 512));		/* nothing is left behind */
	rmw_leave(&l, &c);
}
