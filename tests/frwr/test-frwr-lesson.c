/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that offer windows and cannot use them: what failed once is not offered again. */
#include <errno.h>

#include "../unit/unit.h"
#include "rig.h"

static struct frwr_lessons lessons;

static void query(struct rig *r, struct frwr_caps *caps)
{
	cr_assert_eq(frwr_query(&r->c[0]->fab, r->pd, caps), 0);
	frwr_lessons_apply(&lessons, caps);
}

static void open_rig(struct rig *r, enum frwr_mode mode)
{
	struct frwr_caps caps;

	frwr_lessons_init(&lessons);
	rig_open(r, mode);
	strcpy(mock.attr.name, "mock0");
	query(r, &caps);
	cr_assert_eq(caps.rc[FRWR_MW2], 0);
	cr_assert_eq(caps.rc[FRWR_MW1], 0);
	frwr_pool_learn(r->pool, &lessons, &caps);
}

static void close_rig(struct rig *r)
{
	rig_close(r);
	frwr_lessons_fini(&lessons);
}

static void bind_one(struct rig *r, int rc)
{
	struct ibv_send_wr *req = rig_req(r, true);
	struct frwr_handle h;
	struct frwr_entry e;

	cr_assert_eq(rig_map(r, 0, &h), 0);
	cr_assert_eq(frwr_fill_send(&e, &r->c[0]->fab, rig_at(r, 0), req, req), 0);
	cr_assert_eq(rig_post(r, 0, &e), rc);
}

static void expect(struct rig *r, enum frwr_mode mode, const char *why)
{
	enum frwr_mode other = mode == FRWR_MW2 ? FRWR_MW1 : FRWR_MW2;
	struct frwr_caps caps;

	query(r, &caps);
	cr_assert_eq(frwr_lessons_count(&lessons), 1);
	cr_assert_eq(caps.rc[mode], -EOPNOTSUPP);
	cr_assert(caps.unable[mode]);
	cr_assert_str_eq(caps.why[mode], why);
	cr_assert(!caps.rc[other] && !caps.unable[other]);
}

Test(frwr_lesson, r01_r28_bind_is_refused)
{
	struct rig r;

	open_rig(&r, FRWR_MW2);
	mock.bind_refused = true;
	bind_one(&r, -EOPNOTSUPP);
	expect(&r, FRWR_MW2,
	       "device mock0 offers memory windows of type 2B and refuses to bind them");
	close_rig(&r);
}

Test(frwr_lesson, r01_r28_bind_to_nothing_is_refused)
{
	struct frwr_entry e;
	struct rig r;

	open_rig(&r, FRWR_MW1);
	mock.unbind_refused = true;
	rig_valid(&r, 0, 0);
	cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r), 0);
	cr_assert_eq(rig_post(&r, 0, &e), -EOPNOTSUPP);
	expect(&r, FRWR_MW1,
	       "device mock0 offers memory windows of type 1 and refuses to take them away");
	/* Once is enough. */
	rig_map(&r, 1, &(struct frwr_handle){ 0 });
	frwr_map_end(rig_at(&r, 1));
	expect(&r, FRWR_MW1,
	       "device mock0 offers memory windows of type 1 and refuses to take them away");
	close_rig(&r);
}

static void complete_with(enum frwr_mode mode, enum ibv_wc_status status)
{
	struct rig r;

	open_rig(&r, mode);
	mock.bind_status = status;
	r.c[0]->hold = true;
	bind_one(&r, 0);
	r.c[0]->hold = false;
	mock_conn_break(r.c[0], 0);
	mock_dispatch(r.c[0]);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_DEAD);
	if (status == IBV_WC_WR_FLUSH_ERR)
		cr_assert_eq(frwr_lessons_count(&lessons), 0);
	else
		expect(&r, mode, mode == FRWR_MW1 ?
		       "device mock0 offers memory windows of type 1 and fails to bind them" :
		       "device mock0 offers memory windows of type 2B and fails to bind them");
	close_rig(&r);
}

/* A flush can have any reason. */
Test(frwr_lesson, r01_bind_completes_with_an_error)
{
	complete_with(FRWR_MW2, IBV_WC_MW_BIND_ERR);
	complete_with(FRWR_MW1, IBV_WC_MW_BIND_ERR);
	complete_with(FRWR_MW1, IBV_WC_LOC_QP_OP_ERR);
	complete_with(FRWR_MW2, IBV_WC_WR_FLUSH_ERR);
}

/* Other reasons are not the device's: a full queue, a request that is malformed, the end. */
Test(frwr_lesson, r28_other_errors_teach_nothing)
{
	static const int rcs[] = { -ENOMEM, -EINVAL, -ENOTCONN };

	for (unsigned i = 0; i < ARRAY_SIZE(rcs); i++) {
		struct rig r;

		open_rig(&r, FRWR_MW2);
		r.c[0]->fail_rc = rcs[i];
		bind_one(&r, rcs[i]);
		cr_assert_eq(frwr_lessons_count(&lessons), 0);
		close_rig(&r);
	}
}

Test(frwr_lesson, another_device)
{
	struct frwr_caps caps;
	struct rig r;

	open_rig(&r, FRWR_MW2);
	mock.bind_refused = true;
	bind_one(&r, -EOPNOTSUPP);
	strcpy(mock.attr.name, "mock1");
	query(&r, &caps);
	cr_assert(!caps.rc[FRWR_MW2] && !caps.unable[FRWR_MW2]);
	close_rig(&r);
}
