/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device can do, and queues for it. */
#include <errno.h>

#include "../unit/unit.h"
#include "rig.h"

struct dev {
	struct fab_pd *pd;
	struct mock_conn *c;
	struct frwr_caps caps;
};

static void query(struct dev *d)
{
	d->pd = mock_pd_create();
	d->c = mock_conn_create(d->pd, 16);
	cr_assert_eq(frwr_query(&d->c->fab, d->pd, &d->caps), 0);
	cr_assert_eq(mock.nmw, 0, "nothing stays behind");
	cr_assert_eq(mock.nmr, 0);
	mock_conn_destroy(d->c);
	mock_pd_destroy(d->pd);
}

static void expect_pick(const struct frwr_caps *caps, const enum frwr_mode *order, unsigned n,
			int rc, const char *text)
{
	char why[256];

	cr_assert_eq(frwr_pick(caps, order, n, why, sizeof(why)), rc);
	cr_assert_str_eq(why, text);
}

Test(frwr_query, r01_everything)
{
	struct dev d;

	mock_init();
	mock.attr.caps |= FAB_CAP_SUSPEND_MR | FAB_CAP_REREG_MR;
	query(&d);
	for (int i = 0; i < FRWR_NMODES; i++)
		cr_assert_eq(d.caps.rc[i], 0);
	cr_assert_eq(d.caps.quirks, 0);
	expect_pick(&d.caps, frwr_order_client, 3, FRWR_MW2, "MW2");
	expect_pick(&d.caps, frwr_order_server, 2, FRWR_MW1, "MW1");
	mock_fini();
}

Test(frwr_query, r01_type_1_only)
{
	struct dev d;

	mock_init();
	mock.attr.caps = FAB_CAP_MW_TYPE_1;
	query(&d);
	expect_pick(&d.caps, frwr_order_client, 3, FRWR_MW1,
		    "MW1 (not MW2: the device has no windows of type 2B)");
}

/* The flag is the kernel's; the user library has no windows. */
Test(frwr_query, r01_flags_are_tried)
{
	struct dev d;

	mock_init();
	mock.windows_refused = true;
	query(&d);
	cr_assert_eq(d.caps.rc[FRWR_MW2], -EOPNOTSUPP);
	expect_pick(&d.caps, frwr_order_server, 2, -EOPNOTSUPP,
		    "none (not MW1: the device offers windows and did not give one; "
		    "not suspend: keys of the "
		    "device cannot be closed for a while)");
	expect_pick(&d.caps, &frwr_order_client[1], 2, FRWR_REREG,
		    "REREG (not MW1: the device offers windows and did not give one; "
		    "system calls for each request)");
	mock.attr.caps |= FAB_CAP_SUSPEND_MR | FAB_CAP_REREG_MR;
	query(&d);
	expect_pick(&d.caps, frwr_order_server, 2, FRWR_SUSPEND,
		    "suspend (not MW1: the device offers windows and did not give one)");
	mock.keys_stay = true;
	query(&d);
	cr_assert_eq(d.caps.rc[FRWR_REREG], -EOPNOTSUPP, "a peer would keep the key");
}

Test(frwr_query, r01_nothing)
{
	char why[16];
	struct dev d;

	mock_init();
	mock.attr.caps = 0;
	mock.reg_mr_fails = 1;
	query(&d);
	expect_pick(&d.caps, frwr_order_client, 3, -EOPNOTSUPP,
		    "none (not MW2: the device has no windows of type 2B; "
		    "not MW1: the device has no windows of type 1; "
		    "not REREG: the device did not register memory for a peer to write)");
	cr_assert_eq(frwr_pick(&d.caps, frwr_order_client, 3, why, sizeof(why)), -EOPNOTSUPP);
	cr_assert_eq(strlen(why), sizeof(why) - 1, "cut off, not overrun");
}

Test(frwr_query, r03_quirks_by_device)
{
	struct dev d;

	mock_init();
	mock.attr.vendor_id = 0xffffff;
	query(&d);
	cr_assert_eq(d.caps.quirks, FRWR_QUIRK_MR_BOUNDS | FRWR_QUIRK_INV_FATAL |
				    FRWR_QUIRK_RETRIED_BIND | FRWR_QUIRK_INV_FLAG);
	mock.attr.vendor_part_id = 1;
	query(&d);
	cr_assert_eq(d.caps.quirks, 0);
}

static const struct size_case {
	const char *what;
	uint32_t max_wr, max_mw;
	struct frwr_load load;
	struct frwr_sizes want;
	int rc;
} sizes[] = {
	/* depth, chains of a request, send, receive */
	{ "client", 1024, 1024, { .mode = FRWR_MW2, .queue_depth = 128 }, { 128, 3, 384, 257 }, 0 },
	{ "client, type 1", 1024, 1024, { .mode = FRWR_MW1, .queue_depth = 128 },
	  { 128, 3, 384, 129 }, 0 },
	{ "client, no windows", 1024, 0, { .mode = FRWR_REREG, .queue_depth = 512 },
	  { 512, 1, 512, 513 }, 0 },
	{ "server", 4096, 1024, { .server = true, .mode = FRWR_MW1, .queue_depth = 512 },
	  { 512, 5, 2560, 513 }, 0 },
	{ "server, heartbeats", 4096, 0,
	  { .server = true, .mode = FRWR_MW1, .queue_depth = 512, .spare_wr = 16 },
	  { 512, 5, 2576, 513 }, 0 },
	{ "server, static keys", 4096, 0,
	  { .server = true, .mode = FRWR_STATIC, .queue_depth = 512 },
	  { 512, 3, 1536, 513 }, 0 },
	/* r06: the depth gives way */
	{ "short send queue", 100, 1024, { .mode = FRWR_MW2, .queue_depth = 128 },
	  { 33, 3, 99, 67 }, 0 },
	{ "short send queue, server", 100, 1024,
	  { .server = true, .mode = FRWR_MW1, .queue_depth = 512 }, { 20, 5, 100, 21 }, 0 },
	{ "short receive queue", 100, 1024, { .mode = FRWR_REREG, .queue_depth = 128 },
	  { 99, 1, 99, 100 }, 0 },
	{ "few windows", 1024, 16, { .mode = FRWR_MW2, .queue_depth = 128 }, { 16, 3, 48, 33 }, 0 },
	{ "few windows, one beside", 1024, 16,
	  { .mode = FRWR_MW1, .queue_depth = 128, .spare_windows = 1 },
	  { 15, 3, 45, 16 }, 0 },
	{ "few windows, server", 1024, 16, { .server = true, .mode = FRWR_MW1, .queue_depth = 128 },
	  { 128, 5, 640, 129 }, 0 },
	{ "just one", 3, 1024, { .mode = FRWR_MW2, .queue_depth = 128 }, { 1, 3, 3, 3 }, 0 },
	{ "not one", 2, 1024, { .mode = FRWR_MW2, .queue_depth = 128 }, { 0 }, -ENOMEM },
	{ "not one beside what is no request's", 6, 0,
	  { .mode = FRWR_STATIC, .queue_depth = 1, .spare_wr = 6 },
	  { 0 }, -ENOMEM },
	{ "no queue", 0, 1024, { .mode = FRWR_STATIC, .queue_depth = 1 }, { 0 }, -ENOMEM },
	{ "no window", 1024, 0, { .mode = FRWR_MW1, .queue_depth = 1 }, { 0 }, -ENOMEM },
};

Test(frwr_size, t05_r05_r06_r07_r08_r08a_table)
{
	for_each_case(c, sizes) {
		struct fab_device_attr dev = { .max_qp_wr = c->max_wr, .max_sge = 2,
					       .max_mw = c->max_mw };
		struct frwr_sizes s = { 0 };

		cr_assert_eq(frwr_sizing(&dev, &c->load, &s), c->rc, "%s", c->what);
		cr_assert_eq(memcmp(&s, &c->want, sizeof(s)), 0, "%s: %u %u %u %u", c->what,
			     s.queue_depth, s.wr_per_req, s.max_send_wr, s.max_recv_wr);
		cr_assert(c->rc || (s.max_send_wr <= c->max_wr && s.max_recv_wr <= c->max_wr));
	}
}

/* Whatever is asked for, what comes out fits the device. */
Test(frwr_size, t05_every_answer_fits)
{
	for (uint32_t max_wr = 0; max_wr < 60; max_wr++) {
		for (uint32_t n = 0; n < 4 * 2 * 20; n++) {
			struct frwr_load load = { .mode = (enum frwr_mode)(n % 4),
						  .server = n / 4 % 2, .queue_depth = n / 8 + 1 };
			struct fab_device_attr dev = { .max_qp_wr = max_wr, .max_sge = 2,
						       .max_mw = 12 };
			struct frwr_sizes s;
			int rc = frwr_sizing(&dev, &load, &s);

			cr_assert(rc == 0 || rc == -ENOMEM);
			if (rc)
				continue;
			cr_assert(s.queue_depth >= 1 && s.queue_depth <= load.queue_depth);
			cr_assert_leq(s.queue_depth * s.wr_per_req, s.max_send_wr);
			cr_assert_leq(s.max_send_wr, max_wr);
			cr_assert_leq(s.max_recv_wr, max_wr);
			cr_assert(load.mode > FRWR_MW1 || load.server || s.queue_depth <= 12);
		}
	}
}

Test(frwr_size, r08_a_device_that_sends_one_element)
{
	struct fab_device_attr dev = { .max_qp_wr = 100, .max_sge = 1, .max_mw = 100 };
	struct frwr_load load = { .mode = FRWR_MW2, .queue_depth = 1 };
	struct frwr_sizes s;

	cr_assert_eq(frwr_sizing(&dev, &load, &s), -EOPNOTSUPP);
}
