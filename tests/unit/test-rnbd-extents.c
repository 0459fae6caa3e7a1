/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD_OP_EXTENTS and its answer: bytes of man/rtrs-protocol.pod, and every check of the
 * decoder. */
#include <errno.h>

#include "unit.h"

#include "rnbd-ext.h"
#include "rnbd-msg.h"

#define SPARSE (RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO)

Test(rnbd_extents, bytes)
{
	static const uint8_t expected[] = {
		0x02, 0x80, 0, 0, 3, 0, 0, 0,
		0x80, 0, 0, 0, 0, 0, 0, 0,  1, 0, 0, 0, 3, 0, 0, 0,  8, 0, 0, 0, 2, 0, 0, 0,
	};
	static uint8_t buf[RNBD_EXTENTS_ROOM + 100];
	struct rnbd_extents_writer w;

	memset(buf, 0xa5, sizeof(buf));
	rnbd_extents_begin(&w, buf, sizeof(buf));
	cr_assert(rnbd_extents_add(&w, 65536, 0));
	cr_assert(rnbd_extents_add(&w, 512, SPARSE));
	cr_assert(rnbd_extents_add(&w, 1024, RNBD_EXTENT_ZERO));
	/* more of the same is one */
	cr_assert(rnbd_extents_add(&w, 3072, RNBD_EXTENT_ZERO));
	rnbd_extents_end(&w);
	expect_bytes(buf, expected, sizeof(expected), "extents");
	for (size_t i = sizeof(expected); i < sizeof(buf); i++)
		cr_assert_eq(buf[i], 0, "byte %zu is what was there", i);
	cr_assert_eq(rnbd_extents_decode(buf, sizeof(buf), 65536 + 512 + 4096), 3);
	cr_assert_eq(rnbd_extents_get(buf, 0).len, 65536);
	cr_assert_eq(rnbd_extents_get(buf, 1).what, SPARSE);
	cr_assert_eq(rnbd_extents_get(buf, 2).len, 4096);
}

/* A number of sectors has 32 bits, a length in bytes more. */
Test(rnbd_extents, bytes_beyond_32_bits)
{
	static const uint64_t gib = 1 << 30;
	struct rnbd_extents_writer w;
	uint8_t buf[100];

	rnbd_extents_begin(&w, buf, sizeof(buf));
	cr_assert(rnbd_extents_add(&w, 3 * gib, 0));
	cr_assert(rnbd_extents_add(&w, 3 * gib, 0));
	cr_assert(rnbd_extents_add(&w, 4 * gib, SPARSE));
	cr_assert(rnbd_extents_add(&w, 2040 * gib, 0));
	rnbd_extents_end(&w);
	cr_assert_eq(rnbd_extents_decode(buf, sizeof(buf), 2050 * gib), 3);
	cr_assert_eq(rnbd_extents_get(buf, 0).len, 6 * gib);
	cr_assert_eq(rnbd_extents_get(buf, 1).len, 4 * gib);
	cr_assert_eq(rnbd_extents_get(buf, 2).len, 2040 * gib);
	cr_assert_eq(rnbd_extents_decode(buf, sizeof(buf), 2050 * gib - 512), -EINVAL);
	/* what is beyond only together */
	cr_assert_eq(rnbd_extents_decode(buf, sizeof(buf), 9 * gib), -EINVAL);
}

static void fill(size_t room, unsigned max)
{
	uint8_t *buf = malloc(room);
	struct rnbd_extents_writer w;
	unsigned n = 0;

	cr_assert_not_null(buf);
	rnbd_extents_begin(&w, buf, room);
	while (rnbd_extents_add(&w, 512, n % 2 ? SPARSE : 0))
		n++;
	cr_assert_not(rnbd_extents_add(&w, 512, 0));
	rnbd_extents_end(&w);
	cr_assert_eq(n, max, "%zu: %u", room, n);
	cr_assert_eq(rnbd_extents_decode(buf, room, 512ull * n), (int)n);
	free(buf);
}

Test(rnbd_extents, as_many_as_there_is_room_for)
{
	fill(RNBD_EXTENTS_ROOM_MIN, 1);
	fill(RNBD_EXTENTS_ROOM_MIN + 7, 1);
	fill(RNBD_EXTENTS_ROOM_MIN + 8, 2);
	fill(RNBD_EXTENTS_ROOM, 511);
	fill(2 * RNBD_EXTENTS_ROOM, 511);
}

Test(rnbd_extents, garbage)
{
	static const struct {
		const char *why;
		uint8_t bytes[24];
		size_t len;
		uint64_t about;
		int result;
	} cases[] = {
		{ "good", { 2, 0x80, 0, 0, 1, 0, 0, 0, 2 }, 16, 1024, 1 },
		{ "not to the end", { 2, 0x80, 0, 0, 1, 0, 0, 0, 2 }, 16, 4096, 1 },
		{ "short", { 2, 0x80, 0, 0, 1, 0, 0, 0, 2 }, 15, 1024, -EINVAL },
		{ "nothing", { 0 }, 0, 1024, -EINVAL },
		{ "another message", { 1, 0x80, 0, 0, 1, 0, 0, 0, 2 }, 16, 1024, -EINVAL },
		{ "none", { 2, 0x80, 0, 0, 0, 0, 0, 0, 2 }, 16, 1024, -EINVAL },
		{ "more than bytes", { 2, 0x80, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 }, 23,
		  1024, -EINVAL },
		{ "as many as bytes", { 2, 0x80, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 }, 24,
		  1024, 2 },
		{ "far more", { 2, 0x80, 0, 0, 0xff, 0xff, 0xff, 0xff, 1 }, 24, 1024, -EINVAL },
		{ "an empty one", { 2, 0x80, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 }, 24,
		  1024, -EINVAL },
		{ "beyond the end", { 2, 0x80, 0, 0, 1, 0, 0, 0, 3 }, 16, 1024, -EINVAL },
		{ "the second is", { 2, 0x80, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1 }, 24,
		  1024, -EINVAL },
		{ "the longest", { 2, 0x80, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff }, 16, 1024,
		  -EINVAL },
		{ "of no kind", { 2, 0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4 }, 16, 1024, -EINVAL },
	};

	for_each_case(c, cases) {
		uint8_t *buf = tight_copy(c->bytes, c->len);

		cr_assert_eq(rnbd_extents_decode(buf, c->len, c->about), c->result, "%s", c->why);
		free(buf);
	}
}

static int decode(struct rnbd_io io, uint32_t data_len, bool is_read)
{
	struct rnbd_msg_io m;
	struct rnbd_io got;

	io.op = RNBD_OP_EXTENTS;
	rnbd_io_encode(&m, &io);
	return rnbd_io_decode(&m, sizeof(m), data_len, is_read, &got);
}

Test(rnbd_extents, operation)
{
	static const struct rnbd_io good = { .sector = 8, .bi_size = 1u << 31 };
	struct rnbd_io io;

	cr_assert_eq(decode(good, RNBD_EXTENTS_ROOM, true), 0);
	cr_assert_eq(decode(good, RNBD_EXTENTS_ROOM_MIN, true), 0);
	cr_assert_eq(decode(good, RNBD_EXTENTS_ROOM_MIN - 1, true), -EINVAL);
	cr_assert_eq(decode(good, 0, true), -EINVAL);
	cr_assert_eq(decode(good, RNBD_EXTENTS_ROOM, false), -EINVAL);
	io = good;
	io.flags = RNBD_F_SYNC;
	cr_assert_eq(decode(io, RNBD_EXTENTS_ROOM, true), 0);
	io.flags = RNBD_F_FUA;
	cr_assert_eq(decode(io, RNBD_EXTENTS_ROOM, true), -EINVAL);
	io.flags = RNBD_F_PREFLUSH;
	cr_assert_eq(decode(io, RNBD_EXTENTS_ROOM, true), -EINVAL);
	io = good;
	io.bi_size = 0;
	cr_assert_eq(decode(io, RNBD_EXTENTS_ROOM, true), -EINVAL);
	io.bi_size = 1000;
	cr_assert_eq(decode(io, RNBD_EXTENTS_ROOM, true), -EINVAL);
}
