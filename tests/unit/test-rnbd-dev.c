/* SPDX-License-Identifier: BSD-3-Clause */
/* The device table of a session: ids, references, closing and coming back. */
#include "unit.h"

#include "export.h"
#include "rnbd-dev.h"

#define N 3

static struct rnbd_devs devs;
static struct export ex[N];

static void quiet(struct loop_msg *msg)
{
}

static void setup(void)
{
	cr_assert_eq(rnbd_devs_init(&devs, N, NULL, quiet), 0);
}

static void teardown(void)
{
	rnbd_devs_fini(&devs);	/* asserts that all are free */
}

TestSuite(rnbd_dev, .init = setup, .fini = teardown);

static void close_now(struct rnbd_dev *dev)
{
	cr_assert(rnbd_dev_begin_close(dev, RNBD_DEV_CLOSED));
	rnbd_dev_free(dev);
}

Test(rnbd_dev, lowest_free_id_from_0)
{
	struct rnbd_dev *d[N];

	for (unsigned i = 0; i < N; i++) {
		d[i] = rnbd_dev_open(&devs, &ex[i], RNBD_ACCESS_RW);
		cr_assert_eq(d[i]->id, i);
	}
	close_now(d[1]);
	close_now(d[0]);
	cr_assert_null(rnbd_dev_find(&devs, &ex[1]));
	cr_assert_eq(rnbd_dev_open(&devs, &ex[1], RNBD_ACCESS_RO)->id, 0);
	cr_assert_eq(rnbd_dev_find(&devs, &ex[1])->id, 0);
	cr_assert_eq(rnbd_dev_find(&devs, &ex[2])->id, 2);
	close_now(d[0]);
	close_now(d[2]);
}

Test(rnbd_dev, unknown_ids)
{
	struct rnbd_dev *dev;

	cr_assert_null(rnbd_dev_get(&devs, 0));
	cr_assert_null(rnbd_dev_get(&devs, N));
	cr_assert_null(rnbd_dev_get(&devs, UINT32_MAX));
	dev = rnbd_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);
	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_null(rnbd_dev_get(&devs, 1));
	cr_assert_not(rnbd_dev_put(dev));
	close_now(dev);
	cr_assert_null(rnbd_dev_get(&devs, 0));
}

Test(rnbd_dev, the_last_reference_is_told_once)
{
	struct rnbd_dev *dev = rnbd_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_not(rnbd_dev_begin_close(dev, RNBD_DEV_CLOSED));
	cr_assert_null(rnbd_dev_get(&devs, 0), "closing: no new references");
	cr_assert_not(rnbd_dev_put(dev));
	cr_assert(rnbd_dev_put(dev));
	cr_assert_not(rnbd_dev_begin_close(dev, RNBD_DEV_CLOSED), "quiet_msg is on its way");
	rnbd_dev_free(dev);
}

Test(rnbd_dev, revived_by_its_session)
{
	struct rnbd_dev *dev = rnbd_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_not(rnbd_dev_begin_close(dev, RNBD_DEV_LOST));
	cr_assert(rnbd_dev_revive(dev));
	cr_assert_eq(dev->state, RNBD_DEV_OPEN);
	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_not(rnbd_dev_put(dev));
	cr_assert_not(rnbd_dev_put(dev), "open again: nobody waits for quiet");
	close_now(dev);
}

Test(rnbd_dev, too_late_to_revive)
{
	struct rnbd_dev *dev = rnbd_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_not(rnbd_dev_begin_close(dev, RNBD_DEV_LOST));
	cr_assert(rnbd_dev_put(dev));
	cr_assert_not(rnbd_dev_revive(dev));
	cr_assert_null(rnbd_dev_get(&devs, 0));
	rnbd_dev_free(dev);
}

Test(rnbd_dev, a_lost_device_can_be_closed)
{
	struct rnbd_dev *dev = rnbd_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(rnbd_dev_get(&devs, 0), dev);
	cr_assert_not(rnbd_dev_begin_close(dev, RNBD_DEV_LOST));
	cr_assert_not(rnbd_dev_begin_close(dev, RNBD_DEV_CLOSED));
	cr_assert_eq(dev->state, RNBD_DEV_CLOSED);
	cr_assert(rnbd_dev_put(dev));
	rnbd_dev_free(dev);
}
