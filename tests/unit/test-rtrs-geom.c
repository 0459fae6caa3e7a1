/* SPDX-License-Identifier: BSD-3-Clause */
/* Geometry and immediates: doc/protocol.md 2.6, 3.2. */
#include <errno.h>

#include "unit.h"

#include "rtrs-imm.h"

Test(rtrs_geom, sizes)
{
	static const struct {
		uint32_t queue_depth, max_io_size, max_hdr_size;
		int ret;
		uint32_t off_bits;
	} table[] = {
		{ 512, 126976, 4096, 0, 19 },		/* the kernel's default */
		{ 512, 520192, 4096, 0, 19 },		/* largest chunk at 512: 524288 */
		{ 512, 520193, 4096, -EOVERFLOW, 0 },
		{ 256, 1044480, 4096, 0, 20 },
		{ 256, 524288, 4096, 0, 20 },
		{ 128, 2093056, 4096, 0, 21 },
		{ 128, 2093057, 4096, -EOVERFLOW, 0 },
		{ 1, 126976, 4096, 0, 28 },
		{ 1, (1u << 28) - 4096, 4096, 0, 28 },
		{ 1, (1u << 28) - 4095, 4096, -EOVERFLOW, 0 },
		{ 2, 126976, 4096, 0, 27 },
		{ 3, 126976, 4096, 0, 26 },
		{ 513, 126976, 4096, 0, 18 },
		{ 65535, 4092, 4, 0, 12 },
		{ 65535, 4093, 4, -EOVERFLOW, 0 },
		{ 65536, 1024, 1024, -EINVAL, 0 },
		{ UINT32_MAX, 1024, 1024, -EINVAL, 0 },
		{ 0, 126976, 4096, -EINVAL, 0 },
		{ 512, 0, 4096, -EINVAL, 0 },
		{ 512, 126976, 0, -EINVAL, 0 },
		{ 1, UINT32_MAX, 1, -EINVAL, 0 },
		{ 1, UINT32_MAX, UINT32_MAX, -EINVAL, 0 },
		{ 1, UINT32_MAX - 1, 1, -EOVERFLOW, 0 },
	};

	for_each_case(c, table) {
		struct rtrs_geom g;
		int ret = rtrs_geom_init(&g, c->queue_depth, c->max_io_size, c->max_hdr_size);

		cr_assert_eq(ret, c->ret, "%u %u %u: %d", c->queue_depth, c->max_io_size,
			     c->max_hdr_size, ret);
		if (ret)
			continue;
		cr_assert_eq(g.off_bits, c->off_bits, "%u", c->queue_depth);
		cr_assert_eq(g.off_mask, (uint32_t)((1ull << c->off_bits) - 1));
		cr_assert_eq(g.chunk_size, c->max_io_size + c->max_hdr_size);
		cr_assert_eq(g.queue_depth, c->queue_depth);
		cr_assert_eq(g.max_io_size, c->max_io_size);
		cr_assert_eq(g.max_hdr_size, c->max_hdr_size);
	}
}

/* A kernel's header room is its page, of 64 KiB on some machines. */
Test(rtrs_geom, p33_header_room_of_64k)
{
	struct rtrs_geom g;
	uint32_t buf_id, off;
	__be32 imm;

	cr_assert_eq(rtrs_geom_init(&g, 512, 131072 - 65536, 65536), 0);
	cr_assert_eq(g.chunk_size, 131072);
	cr_assert_eq(g.max_io_size, 65536);
	imm = rtrs_imm_io_req(&g, 511, g.max_io_size + 32);
	rtrs_imm_io_req_split(&g, rtrs_imm_payload(imm), &buf_id, &off);
	cr_assert_eq(buf_id, 511);
	cr_assert_eq(off, 65536 + 32);
}

static void geom(struct rtrs_geom *g, uint32_t queue_depth)
{
	cr_assert_eq(rtrs_geom_init(g, queue_depth, 126976, 4096), 0);
}

Test(rtrs_imm, request_vectors)
{
	static const struct {
		uint32_t queue_depth, buf_id, off, imm;
	} table[] = {
		{ 512, 5, 4096 + 32, 0x00281020 },
		{ 512, 7, 36 + 36, 0x00380048 },	/* SESS_INFO */
		{ 512, 7, 56 + 264, 0x00380140 },	/* OPEN */
		{ 512, 9, 8, 0x00480008 },		/* CLOSE */
		{ 128, 3, 56 + 264, 0x00600140 },
		{ 512, 511, 131071, 0x0ff9ffff },
		{ 1, 0, 131071, 0x0001ffff },
	};

	for_each_case(c, table) {
		uint32_t buf_id, off;
		struct rtrs_geom g;
		__be32 imm;

		geom(&g, c->queue_depth);
		imm = rtrs_imm_io_req(&g, c->buf_id, c->off);
		cr_assert_eq(be32toh(imm), c->imm, "%#x", be32toh(imm));
		cr_assert_eq(rtrs_imm_type(imm), RTRS_IO_REQ_IMM);
		rtrs_imm_io_req_split(&g, rtrs_imm_payload(imm), &buf_id, &off);
		cr_assert_eq(buf_id, c->buf_id);
		cr_assert_eq(off, c->off);
	}
}

Test(rtrs_imm, response_vectors)
{
	static const struct {
		uint32_t msg_id;
		int status;
		bool w_inv;
		uint32_t imm;
	} table[] = {
		{ 5, 0, false, 0x10000005 }, { 5, 0, true, 0x20000005 },
		{ 5, -5, false, 0x10280005 }, { 5, -107, false, 0x13580005 },
		{ 0x7ffff, -511, false, 0x1fffffff }, { 0, -511, true, 0x2ff80000 },
	};

	for_each_case(c, table) {
		__be32 imm = rtrs_imm_io_rsp(c->msg_id, c->status, c->w_inv);
		uint32_t msg_id;
		int status;

		cr_assert_eq(be32toh(imm), c->imm, "%#x", be32toh(imm));
		cr_assert_eq(rtrs_imm_type(imm),
			     c->w_inv ? RTRS_IO_RSP_W_INV_IMM : RTRS_IO_RSP_IMM);
		rtrs_imm_io_rsp_split(rtrs_imm_payload(imm), &msg_id, &status);
		cr_assert_eq(msg_id, c->msg_id);
		cr_assert_eq(status, c->status);
	}
}

Test(rtrs_imm, p01_big_endian_in_memory)
{
	__be32 imm = rtrs_imm_pack(RTRS_HB_ACK_IMM, 0x1234567);

	expect_bytes(&imm, "\x91\x23\x45\x67", 4, "immediate");
}

Test(rtrs_imm, payload_never_reaches_the_type)
{
	__be32 imm = rtrs_imm_pack(RTRS_IO_REQ_IMM, UINT32_MAX);

	cr_assert_eq(rtrs_imm_type(imm), RTRS_IO_REQ_IMM);
	cr_assert_eq(rtrs_imm_payload(imm), RTRS_IMM_PAYL_MASK);
	for (unsigned type = 0; type < 16; type++)
		cr_assert_eq(rtrs_imm_type(htobe32(type << 28 | 0x0fffffff)), type);
}

/* The depth is allowed, and twice of it is not. */
Test(rtrs_geom, depth_max_is_the_last_that_fits)
{
	struct rtrs_geom g;

	for (uint32_t size = 4096; size <= 64u << 20; size *= 2) {
		uint32_t depth = rtrs_geom_depth_max(size, 4096);

		cr_assert_eq(rtrs_geom_init(&g, depth, size, 4096), 0, "%u", size);
		cr_assert_neq(rtrs_geom_init(&g, 2 * depth, size, 4096), 0, "%u", size);
	}
	cr_assert_eq(rtrs_geom_depth_max(0, 4096), 0);
}
