/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of NBD's transmission phase, byte by byte, and what requests may be. */
#include <errno.h>

#include "nbd-msg.h"
#include "unit.h"

#define SIZE (1u << 20)

static const char *why;

Test(nbd_msg, decode)
{
	/* As long as the other one, because it is decoded as that, too. */
	static const uint8_t compact[32] = {
		0x25, 0x60, 0x95, 0x13, 0x00, 0x01, 0x00, 0x01, 1, 2, 3, 4, 5, 6, 7, 8,
		0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x02, 0,
	};
	static const uint8_t extended[32] = {
		0x21, 0xe4, 0x1c, 0x71, 0x00, 0x20, 0x00, 0x01, 1, 2, 3, 4, 5, 6, 7, 8,
		0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x02, 0,
	};
	struct nbd_request req;

	cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_SIMPLE, compact, &why), 0);
	cr_assert(req.type == NBD_CMD_WRITE && req.flags == NBD_CMD_FLAG_FUA);
	cr_assert(req.cookie == 0x0102030405060708 && req.off == 0x1000 && req.len == 0x200);
	cr_assert_eq(req.payload, 0x200);
	cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_EXTENDED, extended, &why), 0);
	cr_assert(req.type == NBD_CMD_WRITE && req.off == 0x1000 && req.len == 0x200);
	cr_assert_eq(req.payload, 0x200);
	/* One kind of header in place of the other. */
	cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_EXTENDED, compact, &why), -EPROTO);
	cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_STRUCTURED, extended, &why), -EPROTO);
}

/* A WRITE of more would hide where the next request begins. */
Test(nbd_msg, payload_too_long)
{
	static const uint64_t lens[] = { NBD_DATA_MAX - 1, NBD_DATA_MAX, NBD_DATA_MAX + 1ull,
					 4ull * NBD_DATA_MAX, UINT32_MAX, 1ull << 32, UINT64_MAX };
	struct nbd_msg_request m = { .magic = be32_put(NBD_REQUEST_MAGIC),
				     .type = be16_put(NBD_CMD_WRITE) };
	struct nbd_msg_request_ext ext = { .magic = be32_put(NBD_EXTENDED_REQUEST_MAGIC),
					   .type = be16_put(NBD_CMD_WRITE) };
	struct nbd_request req;

	for_each_case(len, lens) {
		int r = *len <= NBD_DATA_MAX ? 0 : -EPROTO;

		/* The data of a WRITE follows with the flag and without. */
		for (unsigned flags = 0; flags <= NBD_CMD_FLAG_PAYLOAD_LEN;
		     flags += NBD_CMD_FLAG_PAYLOAD_LEN) {
			ext.flags = be16_put((uint16_t)flags);
			ext.length = be64_put(*len);
			cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_EXTENDED, &ext, &why), r);
			cr_assert(r < 0 || req.payload == *len);
		}
		if (*len > UINT32_MAX)
			continue;
		m.length = be32_put((uint32_t)*len);
		cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_SIMPLE, &m, &why), r);
		cr_assert(r < 0 || req.payload == *len);
	}
	/* No data follows another request without the flag. */
	ext.type = be16_put(NBD_CMD_TRIM);
	ext.flags = be16_put(0);
	cr_assert_eq(nbd_request_decode(&req, NBD_HEADERS_EXTENDED, &ext, &why), 0);
	cr_assert_eq(req.payload, 0);
}

#define ALL_FLAGS (NBD_FLAG_SEND_FLUSH | NBD_FLAG_SEND_FUA | NBD_FLAG_SEND_TRIM | \
		   NBD_FLAG_SEND_WRITE_ZEROES | NBD_FLAG_SEND_DF | NBD_FLAG_SEND_CACHE | \
		   NBD_FLAG_SEND_FAST_ZERO)

Test(nbd_msg, check)
{
	static const struct {
		const char *what;
		uint16_t type, flags;
		uint64_t off, len;
		unsigned without;	/* NBD_FLAG_* that the export has not */
		int r;
		const char *why;	/* in the reason */
	} cases[] = {
		{ "read", NBD_CMD_READ, 0, 0, SIZE, 0, 0, NULL },
		{ "with DF", NBD_CMD_READ, NBD_CMD_FLAG_DF, 0, 1, 0, 0, NULL },
		{ "DF unknown", NBD_CMD_READ, NBD_CMD_FLAG_DF, 0, 1, NBD_FLAG_SEND_DF, -EINVAL,
		  "a flag" },
		{ "FUA of a read", NBD_CMD_READ, NBD_CMD_FLAG_FUA, 0, 1, 0, 0, NULL },
		{ "no FUA", NBD_CMD_TRIM, NBD_CMD_FLAG_FUA, 0, 1, NBD_FLAG_SEND_FUA, -EINVAL,
		  "a flag" },
		{ "NO_HOLE of a read", NBD_CMD_READ, NBD_CMD_FLAG_NO_HOLE, 0, 1, 0, -EINVAL,
		  "a flag" },
		{ "behind the end", NBD_CMD_READ, 0, SIZE - 1, 2, 0, -EINVAL, "beyond the end" },
		{ "wraps", NBD_CMD_READ, 0, UINT64_MAX, 2, 0, -EINVAL, "beyond the end" },
		{ "nothing", NBD_CMD_READ, 0, 0, 0, 0, -EINVAL, "empty" },
		{ "flush", NBD_CMD_FLUSH, 0, 0, 0, 0, 0, NULL },
		{ "flush of a range", NBD_CMD_FLUSH, 0, 0, 1, 0, -EINVAL, "no range" },
		{ "no flush", NBD_CMD_FLUSH, 0, 0, 0, NBD_FLAG_SEND_FLUSH, -EINVAL, "not have" },
		{ "trim", NBD_CMD_TRIM, NBD_CMD_FLAG_FUA, 0, SIZE, 0, 0, NULL },
		{ "no trim", NBD_CMD_TRIM, 0, 0, 1, NBD_FLAG_SEND_TRIM, -EINVAL, "not have" },
		{ "zero", NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_NO_HOLE, 0, SIZE, 0, 0, NULL },
		{ "fast zero", NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_FAST_ZERO, 0, 1, 0, 0, NULL },
		{ "not fast", NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_FAST_ZERO, 0, 1,
		  NBD_FLAG_SEND_FAST_ZERO, -EINVAL, "a flag" },
		{ "zero behind the end", NBD_CMD_WRITE_ZEROES, 0, SIZE, 1, 0, -ENOSPC,
		  "beyond the end" },
		{ "cache", NBD_CMD_CACHE, 0, 0, SIZE, 0, 0, NULL },
		{ "status", NBD_CMD_BLOCK_STATUS, NBD_CMD_FLAG_REQ_ONE, 0, SIZE, 0, 0, NULL },
		{ "payload", NBD_CMD_READ, NBD_CMD_FLAG_PAYLOAD_LEN, 0, 1, 0, -EINVAL, "a flag" },
		{ "resize", 8, 0, 0, 1, 0, -EINVAL, "unknown" },
		{ "disconnect", NBD_CMD_DISC, 0, 0, 0, 0, -EINVAL, "unknown" },
	};

	for_each_case(c, cases) {
		struct nbd_export export = { .size = SIZE,
					     .flags = (uint16_t)(ALL_FLAGS & ~c->without) };
		struct nbd_request req = { .flags = c->flags, .type = c->type, .off = c->off,
					   .len = c->len };

		cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_EXTENDED, &export, true, &why),
			     c->r, "%s", c->what);
		cr_assert(c->r == 0 || (c->why && strstr(why, c->why)), "%s: %s", c->what, why);
		export.flags |= NBD_FLAG_READ_ONLY;
		if (c->r == 0 && (c->type == NBD_CMD_TRIM || c->type == NBD_CMD_WRITE_ZEROES))
			cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_EXTENDED, &export, true,
						       &why), -EPERM, "%s, read-only", c->what);
	}
}

/* No memory is taken for more than the longest READ; a CACHE of more is cut. */
Test(nbd_msg, check_longest)
{
	struct nbd_export export = { .size = UINT64_C(1) << 40, .flags = ALL_FLAGS };
	static const uint64_t lens[] = { NBD_DATA_MAX - 1, NBD_DATA_MAX, NBD_DATA_MAX + 1ull,
					 4ull * NBD_DATA_MAX };

	for_each_case(len, lens) {
		struct nbd_request req = { .type = NBD_CMD_READ, .len = *len };
		int r = *len <= NBD_DATA_MAX ? 0 : -EINVAL;

		cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_SIMPLE, &export, false, &why), r);
		req.type = NBD_CMD_CACHE;
		cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_SIMPLE, &export, false, &why), 0);
	}
}

Test(nbd_msg, check_write)
{
	struct nbd_export export = { .size = SIZE, .flags = ALL_FLAGS };
	struct nbd_request req = { .type = NBD_CMD_WRITE, .len = 512, .payload = 512 };

	cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_SIMPLE, &export, false, &why), 0);
	cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_EXTENDED, &export, false, &why), 0);
	req.flags = NBD_CMD_FLAG_PAYLOAD_LEN;
	cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_EXTENDED, &export, false, &why), 0);
	cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_SIMPLE, &export, false, &why), -EINVAL);
	req.flags = 0;
	req.off = SIZE - 511;
	cr_assert_eq(nbd_request_check(&req, NBD_HEADERS_SIMPLE, &export, false, &why), -ENOSPC);
}

Test(nbd_msg, status_payload)
{
	struct nbd_request req = { .type = NBD_CMD_BLOCK_STATUS, .len = 12, .payload = 12 };
	uint8_t payload[16] = { 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, NBD_CONTEXT };

	cr_assert_eq(nbd_request_payload(&req, payload, &why), 0);
	cr_assert_eq(req.len, 0x2000);
	payload[11] = 77;
	cr_assert_eq(nbd_request_payload(&req, payload, &why), -EINVAL);
	req.payload = 16;
	cr_assert_eq(nbd_request_payload(&req, payload, &why), -EINVAL);
}

Test(nbd_msg, replies)
{
	static const struct {
		const char *what;
		enum nbd_headers headers;
		uint16_t type;
		int status;
		uint32_t data;
		size_t len;
		uint8_t bytes[NBD_REPLY_MAX];
	} cases[] = {
		{ "simple", NBD_HEADERS_SIMPLE, NBD_CMD_READ, 0, 512, 16,
		  { 0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 } },
		{ "simple error", NBD_HEADERS_SIMPLE, NBD_CMD_READ, -ENOSPC, 0, 16,
		  { 0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 9 } },
		{ "simple without data", NBD_HEADERS_STRUCTURED, NBD_CMD_FLUSH, 0, 0, 16,
		  { 0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 } },
		{ "structured", NBD_HEADERS_STRUCTURED, NBD_CMD_READ, 0, 512, 28,
		  { 0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 2, 8,
		    0, 0, 0, 0, 0, 0, 0x10, 0 } },
		{ "structured error", NBD_HEADERS_STRUCTURED, NBD_CMD_READ, -EPERM, 0, 26,
		  { 0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 6,
		    0, 0, 0, 1, 0, 0 } },
		{ "with a text", NBD_HEADERS_STRUCTURED, NBD_CMD_READ, -EPERM, 7, 26,
		  { 0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 13,
		    0, 0, 0, 1, 0, 7 } },
		{ "extended", NBD_HEADERS_EXTENDED, NBD_CMD_WRITE, 0, 0, 32,
		  { 0x6e, 0x8a, 0x27, 0x8c, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
		    0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
		{ "extended read", NBD_HEADERS_EXTENDED, NBD_CMD_READ, 0, 512, 40,
		  { 0x6e, 0x8a, 0x27, 0x8c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9,
		    0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 2, 8,
		    0, 0, 0, 0, 0, 0, 0x10, 0 } },
		{ "extended status", NBD_HEADERS_EXTENDED, NBD_CMD_BLOCK_STATUS, 0, 24, 32,
		  { 0x6e, 0x8a, 0x27, 0x8c, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 9,
		    0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 24 } },
	};
	uint8_t buf[NBD_REPLY_MAX];

	for_each_case(c, cases) {
		struct nbd_request req = { .type = c->type, .cookie = 9, .off = 0x1000 };

		cr_assert_eq(nbd_reply_encode(buf, c->headers, &req, c->status, c->data), c->len,
			     "%s", c->what);
		expect_bytes(buf, c->bytes, c->len, c->what);
	}
}

Test(nbd_msg, errors)
{
	static const int cases[][2] = {
		{ 0, 0 }, { -EROFS, NBD_EPERM }, { -EACCES, NBD_EPERM },
		{ -EDQUOT, NBD_ENOSPC }, { -EFBIG, NBD_ENOSPC },
		{ -EOPNOTSUPP, NBD_ENOTSUP }, { -ENOMEM, NBD_ENOMEM }, { -EINVAL, NBD_EINVAL },
		{ -ECONNABORTED, NBD_EIO }, { -EMEDIUMTYPE, NBD_EIO },
	};

	for_each_case(c, cases)
		cr_assert_eq((int)nbd_error_of((*c)[0]), (*c)[1], "%d", (*c)[0]);
}

Test(nbd_msg, extents)
{
	static const uint8_t want[20] = {
		0, 0, 0, NBD_CONTEXT, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 3,
	};
	struct nbd_status_writer w;
	uint8_t buf[20];

	nbd_status_begin(&w, NBD_HEADERS_STRUCTURED, buf, sizeof(buf));
	cr_assert_eq(nbd_status_end(&w), 0, "nothing was told");
	cr_assert(nbd_status_add(&w, 0x1000, 0));
	cr_assert(nbd_status_add(&w, 0x2000, 0), "neighbours of one kind are one extent");
	cr_assert(nbd_status_add(&w, 0x1000, 3));
	cr_assert(!nbd_status_add(&w, 0x1000, 0), "there is room for two");
	cr_assert_eq(nbd_status_end(&w), sizeof(want));
	expect_bytes(buf, want, sizeof(want), "extents");
}

Test(nbd_msg, extents_of_64_bits)
{
	struct nbd_status_writer w;
	uint8_t buf[64];
	be32 len;
	be64 len64;

	/* 32 bits hold a part of it, behind which nothing may follow. */
	nbd_status_begin(&w, NBD_HEADERS_STRUCTURED, buf, sizeof(buf));
	cr_assert(nbd_status_add(&w, UINT64_C(1) << 33, 0));
	cr_assert(!nbd_status_add(&w, 4096, 3));
	cr_assert_eq(nbd_status_end(&w), 12);
	memcpy(&len, buf + 4, sizeof(len));
	cr_assert_eq(be32_get(len), 0xfffff000u);
	nbd_status_begin(&w, NBD_HEADERS_EXTENDED, buf, sizeof(buf));
	cr_assert(nbd_status_add(&w, UINT64_C(1) << 33, 0));
	cr_assert(nbd_status_add(&w, 4096, 3));
	cr_assert_eq(nbd_status_end(&w), 8 + 2 * 16);
	memcpy(&len64, buf + 8, sizeof(len64));
	cr_assert_eq(be64_get(len64), UINT64_C(1) << 33);
}

/* The longest extent that 32 bits tell, in whole blocks, may have another behind it; a longer one
 * is cut, and the last. */
Test(nbd_msg, extents_around_32_bits)
{
	const uint64_t most = 0xfffff000, lens[] = { most - 1, most, most + 1, most + 0x1000,
						     4 * most };

	for_each_case(l, lens) {
		struct nbd_status_writer w;
		uint8_t buf[64];
		be32 len;

		nbd_status_begin(&w, NBD_HEADERS_STRUCTURED, buf, sizeof(buf));
		/* However many pieces it is told in. */
		cr_assert(nbd_status_add(&w, 1, 3));
		cr_assert(nbd_status_add(&w, *l - 1, 3));
		cr_assert_eq(nbd_status_add(&w, 4096, 0), *l <= most);
		cr_assert_eq(nbd_status_end(&w), *l <= most ? 20 : 12);
		memcpy(&len, buf + 4, sizeof(len));
		cr_assert_eq(be32_get(len), MIN(*l, most));
	}
}

/* As many extents as there is room for, and no byte behind. */
Test(nbd_msg, extents_in_their_room)
{
	enum { MOST = 5 };
	static const unsigned numbers[] = { MOST - 1, MOST, MOST + 1, 4 * MOST };

	for_each_case(n, numbers) {
		for (unsigned extended = 0; extended < 2; extended++) {
			size_t head = extended ? 8 : 4, each = extended ? 16 : 8;
			enum nbd_headers headers = extended ? NBD_HEADERS_EXTENDED :
							      NBD_HEADERS_STRUCTURED;
			uint8_t buf[128];
			struct nbd_status_writer w;
			unsigned i = 0;

			memset(buf, 0xa5, sizeof(buf));
			nbd_status_begin(&w, headers, buf, head + MOST * each);
			while (i < *n && nbd_status_add(&w, 4096, i % 2 ? 3 : 0))
				i++;
			cr_assert_eq(i, MIN(*n, (unsigned)MOST));
			cr_assert_eq(nbd_status_end(&w), head + MIN(*n, (unsigned)MOST) * each);
			cr_assert_eq(buf[head + MOST * each], 0xa5);
		}
	}
}
