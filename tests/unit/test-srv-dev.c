/* SPDX-License-Identifier: BSD-3-Clause */
/* The device table of a session: ids, references, closing and coming back. */
#include "unit.h"

#include "export.h"
#include "srv-dev.h"

#define N 3

static struct srv_dev_table devs;
static struct export ex[N];

static void quiet(struct loop_msg *msg)
{
}

static void setup(void)
{
	srv_dev_table_init(&devs, NULL, 1, quiet);
}

static void teardown(void)
{
	srv_dev_table_fini(&devs);	/* asserts that all are free */
}

TestSuite(srv_dev, .init = setup, .fini = teardown);

static void close_now(struct srv_dev *dev)
{
	cr_assert(srv_dev_begin_close(dev, SRV_DEV_CLOSED));
	srv_dev_free(dev);
}

Test(srv_dev, lowest_free_slot_from_0)
{
	struct srv_dev *d[N];

	for (unsigned i = 0; i < N; i++) {
		d[i] = srv_dev_open(&devs, &ex[i], RNBD_ACCESS_RW);
		cr_assert_eq(d[i]->id, i);
	}
	close_now(d[1]);
	close_now(d[0]);
	cr_assert_null(srv_dev_find(&devs, &ex[1]));
	cr_assert_eq(srv_dev_open(&devs, &ex[1], RNBD_ACCESS_RO), d[0]);
	cr_assert_eq(srv_dev_find(&devs, &ex[1]), d[0]);
	cr_assert_eq(srv_dev_find(&devs, &ex[2])->id, 2);
	close_now(d[0]);
	close_now(d[2]);
}

/* What was sent to a device that is closed does not meet the next one. */
Test(srv_dev, an_id_is_not_used_again)
{
	struct srv_dev *dev = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);
	uint32_t id = dev->id;

	close_now(dev);
	cr_assert_null(srv_dev_by_id(&devs, id));
	cr_assert_eq(srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW), dev);
	cr_assert_neq(dev->id, id);
	cr_assert_null(srv_dev_get(&devs, id));
	cr_assert_null(srv_dev_by_id(&devs, id));
	cr_assert_eq(srv_dev_by_id(&devs, dev->id), dev);
	cr_assert_eq(srv_dev_get(&devs, dev->id), dev);
	cr_assert_not(srv_dev_put(dev));
	/* They wrap, and the slot stays. */
	dev->id = 0u - SRV_DEV_SLOTS;
	close_now(dev);
	cr_assert_eq(dev->id, 0);
}

Test(srv_dev, unknown_ids)
{
	struct srv_dev *dev;

	cr_assert_null(srv_dev_get(&devs, 0));
	cr_assert_null(srv_dev_get(&devs, N));
	cr_assert_null(srv_dev_get(&devs, SRV_DEV_PAGE));
	cr_assert_null(srv_dev_get(&devs, SRV_DEV_PAGE * SRV_DEV_PAGES));
	cr_assert_null(srv_dev_get(&devs, UINT32_MAX));
	dev = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);
	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_null(srv_dev_get(&devs, 1));
	cr_assert_not(srv_dev_put(dev));
	close_now(dev);
	cr_assert_null(srv_dev_get(&devs, 0));
}

Test(srv_dev, the_last_reference_is_told_once)
{
	struct srv_dev *dev = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_not(srv_dev_begin_close(dev, SRV_DEV_CLOSED));
	cr_assert_null(srv_dev_get(&devs, 0), "closing: no new references");
	cr_assert_not(srv_dev_put(dev));
	cr_assert(srv_dev_put(dev));
	cr_assert_not(srv_dev_begin_close(dev, SRV_DEV_CLOSED), "quiet_msg is on its way");
	srv_dev_free(dev);
}

Test(srv_dev, revived_by_its_session)
{
	struct srv_dev *dev = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_not(srv_dev_begin_close(dev, SRV_DEV_LOST));
	cr_assert(srv_dev_revive(dev));
	cr_assert_eq(dev->state, SRV_DEV_OPEN);
	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_not(srv_dev_put(dev));
	cr_assert_not(srv_dev_put(dev), "open again: nobody waits for quiet");
	close_now(dev);
}

Test(srv_dev, too_late_to_revive)
{
	struct srv_dev *dev = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_not(srv_dev_begin_close(dev, SRV_DEV_LOST));
	cr_assert(srv_dev_put(dev));
	cr_assert_not(srv_dev_revive(dev));
	cr_assert_null(srv_dev_get(&devs, 0));
	srv_dev_free(dev);
}

Test(srv_dev, a_lost_device_can_be_closed)
{
	struct srv_dev *dev = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_eq(srv_dev_get(&devs, 0), dev);
	cr_assert_not(srv_dev_begin_close(dev, SRV_DEV_LOST));
	cr_assert_not(srv_dev_begin_close(dev, SRV_DEV_CLOSED));
	cr_assert_eq(dev->state, SRV_DEV_CLOSED);
	cr_assert(srv_dev_put(dev));
	srv_dev_free(dev);
}

/* Those that are open stay where they are, and ids that come free are used again. */
Test(srv_dev, more_than_a_page)
{
	static struct export many[2 * SRV_DEV_PAGE + 1];
	struct srv_dev *dev[ARRAY_SIZE(many)];
	unsigned n = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
		dev[i] = srv_dev_open(&devs, &many[i], RNBD_ACCESS_RW);
		cr_assert_eq(dev[i]->id, i);
	}
	for (struct srv_dev *d = srv_dev_first(&devs); d; d = srv_dev_next(&devs, d))
		cr_assert_eq(d, dev[n++]);
	cr_assert_eq(n, ARRAY_SIZE(many));
	close_now(dev[SRV_DEV_PAGE]);
	cr_assert_eq(srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RO), dev[SRV_DEV_PAGE]);
	for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
		cr_assert_eq(srv_dev_get(&devs, dev[i]->id), dev[i]);
		srv_dev_put(dev[i]);
		close_now(dev[i]);
	}
}

/* Its client goes on to send to it, and another export under that id would get the writes. */
Test(srv_dev, id_of_one_that_was_kicked_is_nobody_elses)
{
	struct srv_dev *d = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);
	uint32_t id = d->id;

	cr_assert_eq(srv_dev_get(&devs, id), d);
	cr_assert_not(srv_dev_begin_close(d, SRV_DEV_KICKED));
	cr_assert_null(srv_dev_get(&devs, id));
	cr_assert_eq(srv_dev_find(&devs, &ex[0]), d);	/* an OPEN waits for it */
	cr_assert(srv_dev_put(d));
	srv_dev_free(d);
	cr_assert_null(srv_dev_first(&devs));
	cr_assert_null(srv_dev_find(&devs, &ex[0]));
	d = srv_dev_open(&devs, &ex[1], RNBD_ACCESS_RW);
	cr_assert_neq(d->id, id);
	cr_assert_null(srv_dev_get(&devs, id));
	close_now(d);
}

Test(srv_dev, kicked_and_closed_meanwhile)
{
	struct srv_dev *d = srv_dev_open(&devs, &ex[0], RNBD_ACCESS_RW);

	cr_assert_not_null(srv_dev_get(&devs, d->id));
	cr_assert_not(srv_dev_begin_close(d, SRV_DEV_KICKED));
	cr_assert_not(srv_dev_begin_close(d, SRV_DEV_CLOSED));
	cr_assert(srv_dev_put(d));
	srv_dev_free(d);
	cr_assert_eq(d->state, SRV_DEV_FREE);
}
