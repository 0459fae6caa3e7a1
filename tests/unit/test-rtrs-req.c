/* SPDX-License-Identifier: BSD-3-Clause */
/* The request in a chunk: vectors of doc/protocol.md appendix A, every check of 3.3, and a client
 * that changes the chunk between the server's two looks. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "unit.h"

#include "rtrs-req.h"

static struct rtrs_geom geom;

static void setup(void)
{
	cr_assert_eq(rtrs_geom_init(&geom, 512, 126976, 4096), 0);
}

TestSuite(rtrs_req, .init = setup);

static const struct rtrs_req read_req = { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32,
	.has_desc = true, .need_inval = true, .desc = { 0x1000, 0xabcd, 4096 } };

Test(rtrs_req, vectors)
{
	static const struct {
		const char *name;
		struct rtrs_req req;
		size_t len;
		const char *bytes;
	} table[] = {
		{ "WRITE", { .dir = RTRS_DIR_WRITE, .data_len = 4096, .usr_len = 32 }, 4,
		  "\x02\x00\x20\x00" },
		{ "READ", { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32, .has_desc = true,
			    .need_inval = true, .desc = { 0x1000, 0xabcd, 4096 } }, 24,
		  "\x03\x00\x20\x00\x01\x00\x01\x00\x00\x10\x00\x00\x00\x00\x00\x00"
		  "\xcd\xab\x00\x00\x00\x10\x00\x00" },
		{ "READ, flag clear", { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32,
			    .has_desc = true, .desc = { 0x1000, 0xabcd, 4096 } }, 24,
		  "\x03\x00\x20\x00\x00\x00\x01\x00\x00\x10\x00\x00\x00\x00\x00\x00"
		  "\xcd\xab\x00\x00\x00\x10\x00\x00" },
		{ "FLUSH", { .dir = RTRS_DIR_READ, .usr_len = 32 }, 8,
		  "\x03\x00\x20\x00\x00\x00\x00\x00" },
		{ "FLUSH never asks for an invalidation",
		  { .dir = RTRS_DIR_READ, .usr_len = 32, .need_inval = true }, 8,
		  "\x03\x00\x20\x00\x00\x00\x00\x00" },
	};

	for_each_case(c, table) {
		uint8_t buf[RTRS_HDR_MAX + 1];

		memset(buf, 0xa5, sizeof(buf));
		cr_assert_eq(rtrs_req_encode(&c->req, buf), c->req.usr_len + c->len, "%s", c->name);
		expect_bytes(buf + c->req.usr_len, c->bytes, c->len, c->name);
		cr_assert_eq(buf[c->req.usr_len - 1], 0xa5, "%s: user message untouched", c->name);
		cr_assert_eq(buf[c->req.usr_len + c->len], 0xa5, "%s: nothing behind", c->name);
	}
}

Test(rtrs_req, longest_user_message_fits)
{
	struct rtrs_req req = read_req;
	uint8_t buf[RTRS_HDR_MAX];

	req.usr_len = RTRS_USR_MAX;
	cr_assert_eq(rtrs_req_encode(&req, buf), sizeof(buf) - RTRS_DIGEST_LEN);
}

/* A chunk of exactly its size with @hdr at @off. */
static uint8_t *chunk_with(uint32_t off, const void *hdr, size_t len)
{
	uint8_t *chunk = calloc(1, geom.chunk_size);

	cr_assert_not_null(chunk);
	if (off < geom.chunk_size)
		memcpy(chunk + off, hdr, MIN(len, (size_t)(geom.chunk_size - off)));
	return chunk;
}

static int take(const uint8_t *chunk, uint32_t off, uint32_t byte_len, struct rtrs_req *req,
		const char **why)
{
	uint32_t start, len;
	uint8_t *copy;
	int ret = rtrs_req_extent(&geom, chunk, off, byte_len, &start, &len, why);

	if (ret)
		return ret;
	cr_assert(range_ok(start, len, geom.chunk_size));
	copy = tight_copy(chunk + start, len);
	ret = rtrs_req_decode(&geom, copy, start, len, off, byte_len, req, why);
	if (!ret) {
		cr_assert_eq(req->usr, copy);
		cr_assert_eq(start, off - req->usr_len);
		req->usr = NULL;
	}
	free(copy);
	return ret;
}

Test(rtrs_req, round_trip)
{
	static const struct {
		const char *name;
		struct rtrs_req req;
	} table[] = {
		{ "READ", { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32, .has_desc = true,
			    .need_inval = true, .desc = { UINT64_MAX, UINT32_MAX, 4096 } } },
		{ "READ of max_io_size", { .dir = RTRS_DIR_READ, .data_len = 126976, .usr_len = 32,
			    .has_desc = true, .desc = { 1, 2, 126976 } } },
		{ "READ of 1",
		  { .dir = RTRS_DIR_READ, .data_len = 1, .usr_len = 24, .has_desc = true,
			    .desc = { 1, 2, 1 } } },
		{ "FLUSH", { .dir = RTRS_DIR_READ, .usr_len = 32 } },
		{ "WRITE", { .dir = RTRS_DIR_WRITE, .data_len = 4096, .usr_len = 32 } },
		{ "WRITE of max_io_size",
		  { .dir = RTRS_DIR_WRITE, .data_len = 126976, .usr_len = 32 } },
		{ "CLOSE", { .dir = RTRS_DIR_WRITE, .usr_len = 8 } },
		{ "no user message", { .dir = RTRS_DIR_WRITE } },
		{ "longest user message", { .dir = RTRS_DIR_READ, .data_len = 36,
			    .usr_len = RTRS_USR_MAX, .has_desc = true, .desc = { 1, 2, 36 } } },
	};

	for_each_case(c, table) {
		uint32_t off = c->req.data_len + c->req.usr_len;
		uint8_t buf[RTRS_HDR_MAX] = { 0 };
		uint32_t byte_len = (uint32_t)rtrs_req_encode(&c->req, buf);
		uint8_t *chunk = chunk_with(c->req.data_len, buf, byte_len);
		const char *why = NULL;
		struct rtrs_req got;
		int ret;

		if (c->req.dir == RTRS_DIR_WRITE)
			byte_len += c->req.data_len;
		ret = take(chunk, off, byte_len, &got, &why);
		cr_assert_eq(ret, 0, "%s: %s", c->name, why);
		cr_assert_null(why);
		cr_assert_eq(got.dir, c->req.dir, "%s", c->name);
		cr_assert_eq(got.data_len, c->req.data_len, "%s", c->name);
		cr_assert_eq(got.usr_len, c->req.usr_len, "%s", c->name);
		cr_assert_eq(got.need_inval, c->req.need_inval, "%s", c->name);
		cr_assert_eq(got.has_desc, c->req.has_desc, "%s", c->name);
		cr_assert_eq(got.desc.addr, c->req.desc.addr, "%s", c->name);
		cr_assert_eq(got.desc.key, c->req.desc.key, "%s", c->name);
		cr_assert_eq(got.desc.len, c->req.desc.len, "%s", c->name);
		free(chunk);
	}
}

/* Header words as they stand in the chunk; desc.len is the only part of the descriptor that has a
 * rule. */
static const struct bad {
	const char *name;
	uint32_t off, byte_len;
	uint16_t type, usr_len, flags, sg_cnt;
	uint32_t desc_len;
	const char *why;		/* NULL: good */
} bads[] = {
	{ "READ", 4128, 56, 3, 32, 0, 1, 4096, NULL },
	{ "WRITE", 4128, 4132, 2, 32, 0, 0, 0, NULL },
	{ "FLUSH", 32, 40, 3, 32, 0, 0, 0, NULL },
	{ "unknown flags", 4128, 56, 3, 32, 0xffff, 1, 4096, NULL },
	{ "flag without descriptor", 32, 40, 3, 32, 1, 0, 0, NULL },

	{ "off = chunk", 131072, 131076, 2, 32, 0, 0, 0, "offset past the chunk" },
	{ "off max of its field", 524287, 524291, 2, 32, 0, 0, 0, "offset past the chunk" },
	{ "off max", UINT32_MAX, 3, 2, 32, 0, 0, 0, "offset past the chunk" },
	{ "3 bytes for the header", 131069, 131073, 2, 32, 0, 0, 0,
	  "request header runs past its chunk" },
	{ "7 bytes for READ", 131065, 520, 3, 512, 0, 0, 0, "more data than max_io_size" },
	{ "READ descriptor past the chunk", 131072 - 23, 24 + 512, 3, 512, 0, 1, 0,
	  "more data than max_io_size" },
	{ "type 0", 4128, 4132, 0, 32, 0, 0, 0, "unknown type of request" },
	{ "type 1", 4128, 4132, 1, 32, 0, 0, 0, "unknown type of request" },
	{ "type 4", 4128, 4132, 4, 32, 0, 0, 0, "unknown type of request" },
	{ "type max", 4128, 4132, 0xffff, 32, 0, 0, 0, "unknown type of request" },
	{ "usr_len = off", 32, 36, 2, 32, 0, 0, 0, NULL },
	{ "usr_len = off + 1", 32, 36, 2, 33, 0, 0, 0, "user message longer than its offset" },
	{ "usr_len max", 32, 36, 2, 0xffff, 0, 0, 0, "user message longer than its offset" },
	{ "usr_len RTRS_USR_MAX", 4128, 4132, 2, 512, 0, 0, 0, NULL },
	{ "usr_len RTRS_USR_MAX + 1", 4128, 4132, 2, 513, 0, 0, 0,
	  "user message longer than any we know" },
	{ "usr_len max, large off", 70000, 70004, 2, 0xffff, 0, 0, 0,
	  "user message longer than any we know" },
	{ "usr_len 0", 4096, 4100, 2, 0, 0, 0, 0, NULL },
	{ "data max_io_size + 1", 126976 + 33, 126976 + 37, 2, 32, 0, 0, 0,
	  "more data than max_io_size" },
	{ "sg_cnt 2", 4128, 72, 3, 32, 0, 2, 4096, "READ with more than one descriptor" },
	{ "sg_cnt max", 4128, 56, 3, 32, 0, 0xffff, 4096, "READ with more than one descriptor" },
	{ "WRITE byte_len 0", 4128, 0, 2, 32, 0, 0, 0, "length written does not fit the request" },
	{ "WRITE byte_len - 1", 4128, 4131, 2, 32, 0, 0, 0,
	  "length written does not fit the request" },
	{ "WRITE byte_len + 1", 4128, 4133, 2, 32, 0, 0, 0,
	  "length written does not fit the request" },
	{ "WRITE without its data", 4128, 36, 2, 32, 0, 0, 0,
	  "length written does not fit the request" },
	{ "WRITE byte_len max", 4128, UINT32_MAX, 2, 32, 0, 0, 0,
	  "length written does not fit the request" },
	{ "READ byte_len 0", 4128, 0, 3, 32, 0, 1, 4096,
	  "length written does not fit the request" },
	{ "READ without its descriptor", 4128, 40, 3, 32, 0, 1, 4096,
	  "length written does not fit the request" },
	{ "READ byte_len + 1", 4128, 57, 3, 32, 0, 1, 4096,
	  "length written does not fit the request" },
	{ "READ with data", 4128, 4128 + 24, 3, 32, 0, 1, 4096,
	  "length written does not fit the request" },
	{ "desc.len 0", 4128, 56, 3, 32, 0, 1, 0, "descriptor of another length than the data" },
	{ "desc.len - 1", 4128, 56, 3, 32, 0, 1, 4095,
	  "descriptor of another length than the data" },
	{ "desc.len + 1", 4128, 56, 3, 32, 0, 1, 4097,
	  "descriptor of another length than the data" },
	{ "desc.len max", 4128, 56, 3, 32, 0, 1, UINT32_MAX,
	  "descriptor of another length than the data" },
	{ "desc without data", 32, 56, 3, 32, 0, 1, 0, "READ with a descriptor and no data" },
	{ "data without desc", 4128, 40, 3, 32, 0, 0, 0, "READ of data without a descriptor" },
};

static void words(const struct bad *b, uint8_t hdr[24])
{
	struct rtrs_msg_rdma_read *r = (void *)hdr;

	memset(hdr, 0, 24);
	r->type = le16_put(b->type);
	r->usr_len = le16_put(b->usr_len);
	r->flags = le16_put(b->flags);
	r->sg_cnt = le16_put(b->sg_cnt);
	r->desc[0].len = le32_put(b->desc_len);
}

Test(rtrs_req, checks)
{
	for_each_case(b, bads) {
		uint8_t hdr[24], *chunk;
		const char *why = NULL;
		struct rtrs_req req;
		int ret;

		words(b, hdr);
		chunk = chunk_with(b->off, hdr, sizeof(hdr));
		ret = take(chunk, b->off, b->byte_len, &req, &why);
		cr_assert_eq(ret, b->why ? -EINVAL : 0, "%s: %d, %s", b->name, ret, why);
		cr_assert(b->why ? !strcmp(why, b->why) : !why, "%s: \"%s\", expected \"%s\"",
			  b->name, why, b->why);
		if (!ret)
			cr_assert(!req.need_inval || req.has_desc, "%s", b->name);
		free(chunk);
	}
}

/* With headers smaller than the data area the ends of the chunk are reached by valid offsets. */
Test(rtrs_req, end_of_the_chunk)
{
	static const struct {
		const char *name;
		uint16_t type, sg_cnt;
		uint32_t room, hdr_len;
		const char *why;
	} table[] = {
		{ "WRITE, 4 bytes", 2, 0, 4, 4, NULL },
		{ "WRITE, 3 bytes", 2, 0, 3, 4, "request header runs past its chunk" },
		{ "READ, 8 bytes", 3, 0, 8, 8, "READ of data without a descriptor" },
		{ "READ, 7 bytes", 3, 0, 7, 8, "request header runs past its chunk" },
		{ "READ with descriptor, 24 bytes", 3, 1, 24, 24, NULL },
		{ "READ with descriptor, 23 bytes", 3, 1, 23, 24,
		  "descriptor runs past its chunk" },
	};

	cr_assert_eq(rtrs_geom_init(&geom, 512, 8192, 64), 0);
	for_each_case(c, table) {
		uint32_t off = geom.chunk_size - c->room;
		struct bad b = { .type = c->type, .usr_len = 64, .sg_cnt = c->sg_cnt,
				 .desc_len = off - 64 };
		uint32_t byte_len = c->hdr_len + (c->type == 2 ? off : 64);
		uint8_t hdr[24], *chunk;
		const char *why = NULL;
		struct rtrs_req req;
		int ret;

		words(&b, hdr);
		chunk = chunk_with(off, hdr, sizeof(hdr));
		ret = take(chunk, off, byte_len, &req, &why);
		cr_assert_eq(ret, c->why ? -EINVAL : 0, "%s: %s", c->name, why);
		cr_assert(c->why ? !strcmp(why, c->why) : !why, "%s: %s", c->name, why);
		free(chunk);
	}
}

/* The copy says something else than what the extent was computed from. */
Test(rtrs_req, client_changes_the_chunk_between_the_looks)
{
	static const struct {
		const char *name;
		unsigned at;
		uint16_t value;
		bool ok;
	} table[] = {
		{ "type to WRITE", 0, 2, false }, { "type to unknown", 0, 9, false },
		{ "usr_len shorter", 2, 31, false }, { "usr_len longer", 2, 33, false },
		{ "usr_len 0", 2, 0, false }, { "usr_len max", 2, 0xffff, false },
		{ "sg_cnt 0", 6, 0, false }, { "sg_cnt 2", 6, 2, false },
		{ "desc.len", 20, 4095, false }, { "desc.len high", 22, 0xffff, false },
		{ "flags", 4, 1, true }, { "desc.addr", 8, 0xffff, true },
	};
	const struct bad valid = { .type = 3, .usr_len = 32, .sg_cnt = 1, .desc_len = 4096 };

	for_each_case(c, table) {
		uint32_t start, len;
		const char *why = NULL;
		struct rtrs_req req;
		uint8_t hdr[24], *chunk, *copy;
		int ret;

		words(&valid, hdr);
		chunk = chunk_with(4128, hdr, sizeof(hdr));
		cr_assert_eq(rtrs_req_extent(&geom, chunk, 4128, 56, &start, &len, &why), 0);
		cr_assert_eq(start, 4096);
		cr_assert_eq(len, 56);
		copy = tight_copy(chunk + start, len);
		copy[32 + c->at] = (uint8_t)c->value;
		copy[33 + c->at] = (uint8_t)(c->value >> 8);
		ret = rtrs_req_decode(&geom, copy, start, len, 4128, 56, &req, &why);
		cr_assert_eq(ret, c->ok ? 0 : -EINVAL, "%s", c->name);
		cr_assert_eq(!why, c->ok, "%s", c->name);
		free(copy);
		free(chunk);
	}
}

/* With these lengths a READ and a WRITE have written the same number of bytes, so only the shape of
 * the copy tells that another header stands in it now. */
Test(rtrs_req, client_turns_a_read_into_a_write_between_the_looks)
{
	static const struct {
		const char *name;
		uint16_t usr_len;
	} table[] = { { "same user message", 32 }, { "all of it is user message", 52 } };
	const struct bad valid = { .type = 3, .usr_len = 32, .sg_cnt = 1, .desc_len = 20 };

	for_each_case(c, table) {
		const struct bad changed = { .type = 2, .usr_len = c->usr_len };
		uint32_t start, len;
		const char *why = NULL;
		struct rtrs_req req;
		uint8_t hdr[24], *chunk, *copy;

		words(&valid, hdr);
		chunk = chunk_with(52, hdr, sizeof(hdr));
		cr_assert_eq(rtrs_req_extent(&geom, chunk, 52, 56, &start, &len, &why), 0);
		copy = tight_copy(chunk + start, len);
		words(&changed, hdr);
		memcpy(copy + 32, hdr, sizeof(hdr));
		cr_assert_eq(rtrs_req_decode(&geom, copy, start, len, 52, 56, &req, &why), -EINVAL,
			     "%s", c->name);
		cr_assert_str_eq(why, "request header changed while it was read", "%s", c->name);
		free(copy);
		free(chunk);
	}
}

static __be32 imm_of(const char *four)
{
	__be32 imm;

	memcpy(&imm, four, sizeof(imm));
	return imm;
}

static void needs_digests(void)
{
	if (!rtrs_digest_works())
		cr_skip_test("this build has no ISA-L");
}

/* The check value of CRC-32C, of "123456789" (RFC 3720 B.4 has others). */
Test(rtrs_digest, check_value)
{
	uint8_t msg[2 + RTRS_DIGEST_LEN] = "56";

	needs_digests();
	cr_assert_eq(rtrs_digest_seal(msg, 2, imm_of("1234"), "789", 3), sizeof(msg));
	cr_assert_arr_eq(msg, "56\x83\x92\x06\xe3", sizeof(msg));
}

/* Each bit counts, of each part; no data is no part. */
Test(rtrs_digest, each_bit)
{
	struct rtrs_digest_pair pair;
	uint8_t msg[32 + RTRS_DIGEST_LEN], data[100];
	__be32 imm = htobe32(0x10000005);

	needs_digests();
	memset(msg, 0x5a, sizeof(msg));
	memset(data, 0xa5, sizeof(data));
	rtrs_digest_seal(msg, 32, imm, data, sizeof(data));
	cr_assert(rtrs_digest_fits(msg, 32, imm, data, sizeof(data), &pair));
	cr_assert_eq(pair.found, pair.expected);
	for (unsigned bit = 0; bit < 32; bit++)
		cr_assert(!rtrs_digest_fits(msg, 32, imm ^ htobe32(1u << bit), data, sizeof(data),
					    &pair));
	for (unsigned bit = 0; bit < 8 * sizeof(msg); bit++) {
		msg[bit / 8] ^= 1u << bit % 8;
		cr_assert(!rtrs_digest_fits(msg, 32, imm, data, sizeof(data), &pair));
		cr_assert_neq(pair.found, pair.expected);
		msg[bit / 8] ^= 1u << bit % 8;
	}
	for (unsigned bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= 1u << bit % 8;
		cr_assert(!rtrs_digest_fits(msg, 32, imm, data, sizeof(data), &pair));
		data[bit / 8] ^= 1u << bit % 8;
	}
	cr_assert(!rtrs_digest_fits(msg, 32, imm, data, sizeof(data) - 1, &pair));
	rtrs_digest_seal(msg, 32, imm, NULL, 0);
	cr_assert(rtrs_digest_fits(msg, 32, imm, NULL, 0, &pair));
}
