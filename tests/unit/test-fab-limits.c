/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of the fabric that no connection of a test reaches: lengths of messages and of windows,
 * the number of keys. */
#include "unit.h"

#include <errno.h>

#include "fabric.h"
#include "tcp-key.h"

Test(fab_limits, longest_message)
{
	static const struct { uint64_t len; int rc; } cases[] = {
		{ FAB_MSG_MAX - 1, 0 }, { FAB_MSG_MAX, 0 }, { FAB_MSG_MAX + 1, -EINVAL },
		{ 4ull * FAB_MSG_MAX, -EINVAL },
	};

	for_each_case(c, cases) {
		struct ibv_sge sge[2] = { { .length = (uint32_t)(c->len / 2) },
					  { .length = (uint32_t)(c->len - c->len / 2) } };
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2 };
		const char *why = "";

		cr_assert_eq(fab_check_send(NULL, &wr, &why), c->rc, "%zu", (size_t)c->len);
		cr_assert_str_eq(why, c->rc ? "post of a malformed work request" : "");
	}
}

Test(fab_limits, longest_window)
{
	static const struct { uint64_t len; bool ok; } cases[] = {
		{ FAB_MW_LEN_MAX - 1, true }, { FAB_MW_LEN_MAX, true },
		{ FAB_MW_LEN_MAX + 1, false }, { 4 * FAB_MW_LEN_MAX, false },
	};
	struct fab_pd pd = { 0 };
	struct fab_mw mw = { .ibv = { .type = IBV_MW_TYPE_2 }, .pd = &pd };
	struct fab_mr mr = { .ibv.length = 8 * (size_t)FAB_MW_LEN_MAX, .pd = &pd, .iova = 4096,
			     .access = IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE };

	for_each_case(c, cases) {
		struct ibv_send_wr wr = {
			.bind_mw = { .mw = &mw.ibv, .rkey = 1,
				     .bind_info = { .mr = &mr.ibv, .addr = mr.iova,
						    .length = c->len } },
		};
		const char *why = fab_bind_check(&wr, &pd, 0);

		cr_assert_eq(!why, c->ok, "%zu: %s", (size_t)c->len, why ? why : "");
	}
}

/* All keys but the last ones are taken. */
Test(fab_limits, keys_of_tcp)
{
	struct fab_conn conn = { 0 };
	struct tcp_key *last[2];
	struct fab_pd *fpd;
	struct tcp_pd *pd;

	cr_assert_eq(tcp_pd_create(&conn, &fpd), 0);
	pd = tcp_pd(fpd);
	pd->nkeys = TCP_KEY_MAX - 2;
	for (unsigned i = 0; i < 2; i++) {
		last[i] = tcp_pd_key_alloc(pd);
		cr_assert(last[i]);
		cr_assert_eq(tcp_key_number(last[i]) >> 8, TCP_KEY_MAX - 2 + i);
	}
	for (unsigned i = 0; i < 4; i++)
		cr_assert(!tcp_pd_key_alloc(pd));
	cr_assert_eq(pd->live, 2);
	/* One that is free again is the next one's. */
	tcp_pd_key_free(pd, last[0]);
	cr_assert_eq(tcp_pd_key_alloc(pd), last[0]);
	for (unsigned i = 0; i < 2; i++)
		tcp_pd_key_free(pd, last[i]);
	tcp_pd_destroy(fpd);
}
