/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD messages: vectors of doc/protocol.md appendix A, every check of every decoder. */
#include <errno.h>
#include <zlib.h>

#include "unit.h"

#include "rnbd-msg.h"

Test(rnbd_msg, type)
{
	static const uint8_t bytes[] = { 0x04, 0x01, 0xff, 0xff };

	cr_assert_eq(rnbd_msg_type(bytes, 4), 0x0104);
	cr_assert_eq(rnbd_msg_type(bytes, 3), -EINVAL);
	cr_assert_eq(rnbd_msg_type(bytes, 0), -EINVAL);
}

Test(rnbd_msg, sess_info_without_extension)
{
	static const uint8_t expected[36] = { 0, 0, 0, 0, 2 };
	struct rnbd_sess_info info = { .ver = 2, .ext = { .features = 7 } };
	struct rnbd_msg_sess_info m;

	memset(&m, 0xa5, sizeof(m));
	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &info);
	expect_bytes(&m, expected, sizeof(m), "SESS_INFO");
	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO_RSP, &info);
	expect_bytes(&m, "\x01\x00\x00\x00\x02", 5, "SESS_INFO_RSP");
}

static const struct rnbd_sess_info with_ext = { .ver = 2, .ext = { .valid = true,
	.features = RNBD_EXT_ALL, .boot_id = { 1, 2, 3, 4, 5, 6, 7, 8 }, .instance = 0x3c2b1a09,
	.host = 0x6f5e4d } };

Test(rnbd_msg, sess_info_extension_bytes)
{
	struct rnbd_msg_sess_info m;
	struct rnbd_sess_info got;
	uint8_t bytes[31];
	uint32_t crc;

	memset(&m, 0xa5, sizeof(m));
	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &with_ext);
	memcpy(bytes, m.reserved, sizeof(bytes));
	expect_bytes(bytes, "nbdkrtrs\xbf\x0b\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08"
			    "\x09\x1a\x2b\x3c\x4d\x5e\x6f", 27, "extension");
	crc = (uint32_t)crc32(0, bytes, 27);
	cr_assert_eq(bytes[27] | bytes[28] << 8 | bytes[29] << 16 | (uint32_t)bytes[30] << 24, crc);

	cr_assert_eq(rnbd_sess_info_decode(&m, sizeof(m), &got), 0);
	cr_assert(got.ext.valid);
	cr_assert_eq(got.ver, 2);
	cr_assert_eq(got.ext.features, RNBD_EXT_ALL);
	expect_bytes(got.ext.boot_id, with_ext.ext.boot_id, 8, "boot id");
	cr_assert_eq(got.ext.instance, 0x3c2b1a09);
	cr_assert_eq(got.ext.host, 0x6f5e4d);
}

Test(rnbd_msg, sess_info_any_flipped_bit_makes_it_a_kernel)
{
	struct rnbd_msg_sess_info m;
	struct rnbd_sess_info got;

	for (unsigned bit = 0; bit < 31 * 8; bit++) {
		rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &with_ext);
		m.reserved[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(rnbd_sess_info_decode(&m, sizeof(m), &got), 0);
		cr_assert_not(got.ext.valid, "bit %u", bit);
		cr_assert_eq(got.ext.features, 0);
		cr_assert_eq(got.ext.instance, 0);
		cr_assert_eq(got.ext.host, 0);
	}
	/* what a kernel sends: zeroes, or its stack */
	memset(m.reserved, 0, sizeof(m.reserved));
	cr_assert_eq(rnbd_sess_info_decode(&m, sizeof(m), &got), 0);
	cr_assert_not(got.ext.valid);
	memset(m.reserved, 0xff, sizeof(m.reserved));
	cr_assert_eq(rnbd_sess_info_decode(&m, sizeof(m), &got), 0);
	cr_assert_not(got.ext.valid);
}

/* Another project's extension with the same check sum is not ours. */
Test(rnbd_msg, sess_info_other_magic)
{
	struct rnbd_msg_sess_info m;
	struct rnbd_sess_info got;
	le32 crc;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &with_ext);
	m.reserved[7] = 'S';
	crc = le32_put((uint32_t)crc32(0, m.reserved, 27));
	memcpy(m.reserved + 27, &crc, sizeof(crc));
	cr_assert_eq(rnbd_sess_info_decode(&m, sizeof(m), &got), 0);
	cr_assert_not(got.ext.valid);
}

Test(rnbd_msg, sess_info_length)
{
	struct rnbd_msg_sess_info m;
	struct rnbd_sess_info got;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &with_ext);
	for (size_t len = 0; len < sizeof(m); len++) {
		uint8_t *buf = tight_copy(&m, len);

		cr_assert_eq(rnbd_sess_info_decode(buf, len, &got), -EINVAL, "%zu", len);
		free(buf);
	}
}

Test(rnbd_msg, open)
{
	uint8_t expected[264] = { 2, 0, 0, 0, 1, 0, 'd', 'i', 's', 'k', '0' };
	char longest[256];
	struct rnbd_msg_open m;
	struct rnbd_open got;

	memset(&m, 0xa5, sizeof(m));
	cr_assert_eq(rnbd_open_encode(&m, "disk0", RNBD_ACCESS_RW), 0);
	expect_bytes(&m, expected, sizeof(m), "OPEN");
	cr_assert_eq(rnbd_open_decode(&m, sizeof(m), &got), 0);
	cr_assert_str_eq(got.name, "disk0");
	cr_assert_eq(got.mode, RNBD_ACCESS_RW);

	memset(longest, 'n', sizeof(longest));
	longest[254] = '\0';
	cr_assert_eq(rnbd_open_encode(&m, longest, RNBD_ACCESS_MIGRATION), 0);
	cr_assert_eq(rnbd_open_decode(&m, sizeof(m), &got), 0);
	cr_assert_str_eq(got.name, longest);
	cr_assert_eq(got.mode, RNBD_ACCESS_MIGRATION);
	longest[254] = 'n';
	longest[255] = '\0';
	cr_assert_eq(rnbd_open_encode(&m, longest, RNBD_ACCESS_RO), -ENAMETOOLONG);
}

/* @at, @value: one byte of a valid message overwritten. */
struct byte_case {
	const char *name;
	size_t len, at;
	uint8_t value;
	int ret;
};

Test(rnbd_msg, open_checks)
{
	static const struct byte_case table[] = {
		{ "valid", 264, 6, 'd', 0 },
		{ "empty", 0, 0, 0, -EINVAL },
		{ "header", 4, 0, 0, -EINVAL },
		{ "one byte short", 263, 6, 'd', -EINVAL },
		{ "longer", 270, 6, 'd', 0 },
		{ "mode ro", 264, 4, 0, 0 },
		{ "mode migration", 264, 4, 2, 0 },
		{ "mode 3", 264, 4, 3, -EINVAL },
		{ "mode max", 264, 4, 255, -EINVAL },
		{ "reserved garbage", 264, 5, 0xff, 0 },
		{ "padding garbage", 264, 2, 0xff, 0 },
		{ "name empty", 264, 6, 0, -EINVAL },
	};

	for_each_case(c, table) {
		struct rnbd_open got;
		uint8_t bytes[270] = { 0 }, *buf;
		int ret;

		rnbd_open_encode((void *)bytes, "disk0", RNBD_ACCESS_RW);
		bytes[c->at] = c->value;
		buf = tight_copy(bytes, c->len);
		ret = rnbd_open_decode(buf, c->len, &got);
		cr_assert_eq(ret, c->ret, "%s: %d", c->name, ret);
		free(buf);
	}
}

Test(rnbd_msg, open_name_without_an_end)
{
	struct rnbd_msg_open m;
	struct rnbd_open got;

	rnbd_open_encode(&m, "disk0", RNBD_ACCESS_RW);
	memset(m.dev_name, 'x', sizeof(m.dev_name));
	memset(m.reserved, 0, sizeof(m.reserved));
	cr_assert_eq(rnbd_open_decode(&m, sizeof(m), &got), -EINVAL);
	m.dev_name[254] = '\0';
	cr_assert_eq(rnbd_open_decode(&m, sizeof(m), &got), 0);
	cr_assert_eq(strlen(got.name), 254);
}

static const struct rnbd_dev_info dev = {
	.device_id = 0x01020304, .nsectors = 0x1112131415161718 >> 9,
	.max_hw_sectors = 0x21222324, .max_write_zeroes_sectors = 0x31323334,
	.max_discard_sectors = 0x41424344, .discard_granularity = 0x51525354,
	.discard_alignment = 0x61626364, .physical_block_size = 4096, .logical_block_size = 512,
	.max_segments = 0x7172, .secure_discard = 0, .rotational = true, .fua = true,
	.export_id = { 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88 },
};

Test(rnbd_msg, open_rsp_round_trip)
{
	struct rnbd_msg_open_rsp m;
	struct rnbd_dev_info got;

	memset(&m, 0xa5, sizeof(m));
	rnbd_open_rsp_encode(&m, &dev);
	expect_bytes(&m, "\x03\x00\x00\x00\x04\x03\x02\x01", 8, "OPEN_RSP");
	expect_bytes((uint8_t *)&m + 16, "\x24\x23\x22\x21\x34\x33\x32\x31\x44\x43\x42\x41"
		     "\x54\x53\x52\x51\x64\x63\x62\x61\x00\x10\x00\x02\x72\x71\x00\x00\x01\x01"
		     "\x81\x82\x83\x84\x85\x86\x87\x88\0\0", 40, "OPEN_RSP from 16");
	memset(&got, 0xa5, sizeof(got));
	cr_assert_eq(rnbd_open_rsp_decode(&m, sizeof(m), &got), 0);
	cr_assert_eq(got.device_id, dev.device_id);
	cr_assert_eq(got.nsectors, dev.nsectors);
	cr_assert_eq(got.max_hw_sectors, dev.max_hw_sectors);
	cr_assert_eq(got.max_write_zeroes_sectors, dev.max_write_zeroes_sectors);
	cr_assert_eq(got.max_discard_sectors, dev.max_discard_sectors);
	cr_assert_eq(got.discard_granularity, dev.discard_granularity);
	cr_assert_eq(got.discard_alignment, dev.discard_alignment);
	cr_assert_eq(got.physical_block_size, 4096);
	cr_assert_eq(got.logical_block_size, 512);
	cr_assert_eq(got.max_segments, dev.max_segments);
	cr_assert_eq(got.secure_discard, 0);
	cr_assert(got.rotational);
	cr_assert(got.fua);
	cr_assert_not(got.writeback);
	expect_bytes(got.export_id, dev.export_id, 8, "export id");
}

Test(rnbd_msg, open_rsp_cache_policy)
{
	static const struct {
		bool fua, writeback;
		uint8_t wire;
	} table[] = { { 0, 0, 0 }, { 1, 0, 1 }, { 0, 1, 2 }, { 1, 1, 3 } };

	for_each_case(c, table) {
		struct rnbd_dev_info info = dev, got;
		struct rnbd_msg_open_rsp m;

		info.fua = c->fua;
		info.writeback = c->writeback;
		rnbd_open_rsp_encode(&m, &info);
		cr_assert_eq(m.cache_policy, c->wire);
		cr_assert_eq(rnbd_open_rsp_decode(&m, sizeof(m), &got), 0);
		cr_assert_eq(got.fua, c->fua);
		cr_assert_eq(got.writeback, c->writeback);
	}
}

Test(rnbd_msg, p35_open_rsp_checks)
{
	static const struct {
		const char *name;
		size_t len;
		uint16_t block;
		uint64_t nsectors;
		int ret;
	} table[] = {
		{ "valid", 56, 512, 1, 0 },
		{ "empty", 0, 512, 1, -EINVAL },
		{ "one byte short", 55, 512, 1, -EINVAL },
		{ "longer", 60, 512, 1, 0 },
		{ "block 0", 56, 0, 1, -EINVAL },
		{ "block 1", 56, 1, 1, -EINVAL },
		{ "block 256", 56, 256, 1, -EINVAL },
		{ "block 511", 56, 511, 1, -EINVAL },
		{ "block 513", 56, 513, 1, -EINVAL },
		{ "block 4096", 56, 4096, 1, 0 },
		{ "block 32768", 56, 32768, 1, 0 },
		{ "block max", 56, 65535, 1, -EINVAL },
		{ "size 0", 56, 512, 0, 0 },
		{ "size largest", 56, 512, INT64_MAX >> 9, 0 },
		{ "size largest + 1", 56, 512, (INT64_MAX >> 9) + 1, -EINVAL },
		{ "size wraps to 0", 56, 512, 1ull << 55, -EINVAL },
		{ "size max", 56, 512, UINT64_MAX, -EINVAL },
	};

	for_each_case(c, table) {
		struct rnbd_dev_info info = dev, got;
		uint8_t bytes[60] = { 0 }, *buf;
		int ret;

		info.logical_block_size = c->block;
		info.nsectors = c->nsectors;
		rnbd_open_rsp_encode((void *)bytes, &info);
		buf = tight_copy(bytes, c->len);
		ret = rnbd_open_rsp_decode(buf, c->len, &got);
		cr_assert_eq(ret, c->ret, "%s: %d", c->name, ret);
		free(buf);
	}
}

Test(rnbd_msg, io_vectors)
{
	static const uint8_t write_bytes[] = { 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x10, 0x00,
		0x00, 0x00, 0x00, 0xde, 0xad, 0xbe, 0xef, 0xff, 0x01 };
	static const uint8_t flush_bytes[] = { 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0xde, 0xad, 0xbe, 0xef, 0xff, 0x01 };
	struct rnbd_io io = { .op = RNBD_OP_WRITE, .flags = RNBD_F_SYNC, .sector = 2048,
			      .bi_size = 4096 };
	struct rnbd_msg_io m;

	memset(&m, 0xa5, sizeof(m));
	rnbd_io_encode(&m, &io);
	expect_bytes(&m, write_bytes, 26, "WRITE");
	expect_bytes((uint8_t *)&m + 26, "\0\0\0\0\0\0", 6, "padding");
	io = (struct rnbd_io){ .op = RNBD_OP_FLUSH, .flags = RNBD_F_SYNC | RNBD_F_FUA,
			       .sector = RNBD_FLUSH_SECTOR };
	rnbd_io_encode(&m, &io);
	expect_bytes(&m, flush_bytes, 26, "FLUSH");

	cr_assert_eq(rnbd_io_decode(write_bytes, 32, 4096, false, &io), 0);
	cr_assert_eq(io.op, RNBD_OP_WRITE);
	cr_assert_eq(io.flags, RNBD_F_SYNC);
	cr_assert_eq(io.sector, 2048);
	cr_assert_eq(io.bi_size, 4096);
	cr_assert_eq(io.device_id, 0);
	cr_assert_eq(rnbd_io_decode(flush_bytes, 32, 0, true, &io), 0);
	cr_assert_eq(io.op, RNBD_OP_FLUSH);
	cr_assert_eq(io.flags, RNBD_F_SYNC | RNBD_F_FUA);
	cr_assert_eq(io.sector, 0);
	cr_assert_eq(io.bi_size, 0);
}

enum { RD = 1, WR = 0 };

static const struct io_case {
	const char *name;
	uint32_t rw;
	uint32_t bi_size, data_len;
	bool is_read;
	int ret;
} io_cases[] = {
	{ "READ", 0x100, 4096, 4096, RD, 0 },
	{ "READ the other way", 0, 4096, 4096, WR, -EINVAL },
	{ "READ of nothing", 0, 0, 0, RD, 0 },
	{ "READ without data", 0, 4096, 0, RD, -EINVAL },
	{ "READ bi_size 0", 0, 0, 4096, RD, -EINVAL },
	{ "READ bi_size less", 0, 3584, 4096, RD, -EINVAL },
	{ "READ bi_size more", 0, 4608, 4096, RD, -EINVAL },
	{ "READ bi_size max", 0, UINT32_MAX, 4096, RD, -EINVAL },
	{ "READ 1 byte", 0, 1, 1, RD, -EINVAL },
	{ "READ 511", 0, 511, 511, RD, -EINVAL },
	{ "READ 512", 0, 512, 512, RD, 0 },
	{ "READ 513", 0, 513, 513, RD, -EINVAL },
	{ "READ largest", 0, UINT32_MAX & ~511u, UINT32_MAX & ~511u, RD, 0 },
	{ "WRITE", 1, 4096, 4096, WR, 0 },
	{ "WRITE the other way", 1, 4096, 4096, RD, -EINVAL },
	{ "WRITE of nothing", 1, 0, 0, WR, 0 },
	{ "WRITE without data", 1, 512, 0, WR, -EINVAL },
	{ "WRITE bi_size less", 1, 512, 1024, WR, -EINVAL },
	{ "WRITE bi_size more", 1, 1024, 512, WR, -EINVAL },
	{ "WRITE 1000", 1, 1000, 1000, WR, -EINVAL },
	{ "WRITE with every flag", 1 | RNBD_F_ALL, 512, 512, WR, 0 },
	{ "unknown flag 12", 1 | 1u << 12, 512, 512, WR, 0 },
	{ "unknown flag 31", 1 | 1u << 31, 512, 512, WR, 0 },
	{ "unknown flag on READ", 1u << 16, 512, 512, RD, 0 },
	{ "FLUSH as READ", 0x302, 0, 0, RD, 0 },
	{ "FLUSH as WRITE", 0x2, 0, 0, WR, 0 },
	{ "FLUSH bi_size garbage", 0x2, 12345, 0, RD, 0 },
	{ "FLUSH with data as READ", 0x2, 512, 512, RD, -EINVAL },
	{ "FLUSH with data as WRITE", 0x2, 512, 512, WR, -EINVAL },
	{ "FLUSH unknown flag", 0x2 | 1u << 13, 0, 0, RD, 0 },
	{ "DISCARD", 3, 1u << 30, 0, WR, 0 },
	{ "DISCARD the other way", 3, 512, 0, RD, -EINVAL },
	{ "DISCARD of nothing", 3, 0, 0, WR, 0 },
	{ "DISCARD unaligned", 3, 513, 0, WR, -EINVAL },
	{ "DISCARD with other data", 3, 1024, 512, WR, -EINVAL },
	{ "SECURE_ERASE", 4, 512, 0, WR, -EOPNOTSUPP },
	{ "WRITE_ZEROES", 5, 65536, 0, WR, 0 },
	{ "WRITE_ZEROES NOUNMAP FUA", 5 | RNBD_F_NOUNMAP | RNBD_F_FUA, 65536, 0, WR, 0 },
	{ "WRITE_ZEROES the other way", 5, 512, 0, RD, -EINVAL },
	{ "WRITE_ZEROES unaligned", 5, 100, 0, WR, -EINVAL },
	{ "op 6", 6, 512, 512, RD, -EOPNOTSUPP },
	{ "op 7", 7, 512, 0, WR, -EOPNOTSUPP },
	{ "op 255", 255, 512, 512, RD, -EOPNOTSUPP },
};

Test(rnbd_msg, io_checks)
{
	for_each_case(c, io_cases) {
		struct rnbd_msg_io m;
		struct rnbd_io io = { .device_id = 3, .sector = 77, .bi_size = c->bi_size };
		int ret;

		rnbd_io_encode(&m, &io);
		m.rw = le32_put(c->rw);
		ret = rnbd_io_decode(&m, sizeof(m), c->data_len, c->is_read, &io);
		cr_assert_eq(ret, c->ret, "%s: %d", c->name, ret);
		if (ret)
			continue;
		/* flags of later versions are for those that know them */
		cr_assert_eq(io.op | io.flags, c->rw & (RNBD_OP_MASK | RNBD_F_ALL), "%s", c->name);
		cr_assert_eq(io.device_id, 3);
		cr_assert_eq(io.sector, io.op == RNBD_OP_FLUSH ? 0 : 77, "%s", c->name);
	}
}

Test(rnbd_msg, io_lengths)
{
	static const struct {
		size_t len;
		int ret;
		uint16_t prio;
	} table[] = { { 0, -EINVAL, 0 }, { 23, -EINVAL, 0 }, { 24, 0, 0 }, { 28, 0, 0 },
		      { 31, 0, 0 }, { 32, 0, 0x4004 }, { 64, 0, 0x4004 } };

	for_each_case(c, table) {
		struct rnbd_io io = { .op = RNBD_OP_READ, .bi_size = 512, .prio = 0x4004 };
		uint8_t bytes[64] = { 0 }, *buf;

		rnbd_io_encode((void *)bytes, &io);
		buf = tight_copy(bytes, c->len);
		cr_assert_eq(rnbd_io_decode(buf, c->len, 512, true, &io), c->ret, "%zu", c->len);
		if (!c->ret)
			cr_assert_eq(io.prio, c->prio, "%zu", c->len);
		free(buf);
	}
}

/* Where the kernel has padding.  A message that is too short for a tag has none. */
Test(rnbd_msg, io_tag)
{
	struct rnbd_io io = { .op = RNBD_OP_WRITE, .bi_size = 512, .tag = 0xa1b2c3d4 };
	struct rnbd_msg_io m;

	memset(&m, 0xa5, sizeof(m));
	rnbd_io_encode(&m, &io);
	expect_bytes((uint8_t *)&m + 26, "\xd4\xc3\xb2\xa1\0\0", 6, "tag");
	cr_assert_eq(rnbd_io_decode(&m, sizeof(m), 512, false, &io), 0);
	cr_assert_eq(io.tag, 0xa1b2c3d4);
	cr_assert_eq(rnbd_io_tag(&m, sizeof(m)), 0xa1b2c3d4);
	for (size_t len = 0; len < sizeof(m); len++) {
		uint8_t *buf = tight_copy(&m, len);

		cr_assert_eq(rnbd_io_tag(buf, len), 0, "%zu", len);
		free(buf);
	}
	cr_assert_eq(rnbd_io_decode(&m, 28, 512, false, &io), 0);
	cr_assert_eq(io.tag, 0);
}

Test(rnbd_msg, close)
{
	struct rnbd_msg_close m;
	uint32_t id = 0;

	memset(&m, 0xa5, sizeof(m));
	rnbd_close_encode(&m, 0x01020304);
	expect_bytes(&m, "\x05\x00\x00\x00\x04\x03\x02\x01", 8, "CLOSE");
	cr_assert_eq(rnbd_close_decode(&m, 8, &id), 0);
	cr_assert_eq(id, 0x01020304);
	cr_assert_eq(rnbd_close_decode(&m, 7, &id), -EINVAL);
	cr_assert_eq(rnbd_close_decode(&m, 0, &id), -EINVAL);
}

/* Reasons are above all errnos, in 9 bits, and stand for the errno that an older client gets. */
Test(rnbd_msg, reasons_on_the_wire)
{
	static const struct {
		enum rnbd_refusal refusal;
		int wire, err;
	} table[] = {
		{ RNBD_REFUSES_READ_ONLY, -257, -EROFS }, { RNBD_REFUSES_READER, -258, -EROFS },
		{ RNBD_REFUSES_WRITER, -259, -EPERM }, { RNBD_REFUSES_CLOSING, -260, -EPERM },
		{ RNBD_REFUSES_OPENING, -261, -EIO }, { RNBD_REFUSES_LOCKED, -262, -EBUSY },
	};
	static const struct { int wire, err; } others[] = {
		{ 0, 0 }, { -1, -1 }, { -EROFS, -EROFS }, { -255, -255 }, { -256, -EIO },
		{ -256 - RNBD_NREFUSALS, -EIO }, { -511, -EIO },
	};
	enum rnbd_refusal got;

	cr_assert_eq(ARRAY_SIZE(table), RNBD_NREFUSALS - 1);
	for_each_case(c, table) {
		cr_assert_eq(rnbd_refusal_to_wire(c->refusal), c->wire);
		cr_assert_eq(rnbd_refusal_errno(c->refusal), c->err);
		cr_assert_eq(rnbd_refusal_from_wire(c->wire, &got), c->err);
		cr_assert_eq(got, c->refusal);
	}
	for_each_case(c, others) {
		cr_assert_eq(rnbd_refusal_from_wire(c->wire, &got), c->err, "%d", c->wire);
		cr_assert_eq(got, RNBD_REFUSES_NOT);
	}
}

Test(rnbd_msg, errno_on_the_wire)
{
	static const struct {
		int err, wire;
	} table[] = {
		{ 0, 0 }, { -EIO, -EIO }, { -ENOSPC, -ENOSPC }, { -EDQUOT, -ENOSPC },
		{ -EFBIG, -ENOSPC },
		{ -EOPNOTSUPP, -95 }, { -ENOTSUP, -95 }, { -EINVAL, -EINVAL }, { -ENOTCONN, -107 },
		{ -ENOMEM, -ENOMEM }, { -EPERM, -EPERM }, { -EROFS, -EROFS }, { -ENOENT, -ENOENT },
		{ -EACCES, -EACCES }, { -EBUSY, -EBUSY }, { -ETIMEDOUT, -ETIMEDOUT },
		{ -EFAULT, -EIO }, { -ECANCELED, -EIO }, { -EINTR, -EIO }, { -ESTALE, -EIO },
		{ -4095, -EIO }, { -INT32_MAX, -EIO },
	};

	for_each_case(c, table) {
		int wire = rnbd_errno_to_wire(c->err);

		cr_assert_eq(wire, c->wire, "%d: %d", c->err, wire);
		cr_assert(wire > -512, "fits 9 bits");
	}
}
