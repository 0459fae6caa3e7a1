/* SPDX-License-Identifier: BSD-3-Clause */
/* LIST and LIST_RSP: bytes of man/rtrs-protocol.pod, parts, every check of every decoder. */
#include <errno.h>

#include "unit.h"

#include "rnbd-ext.h"

Test(rnbd_list, request)
{
	static const uint8_t expected[] = { 0x00, 0x80, 0, 0, 0x04, 0x03, 0x02, 0x01 };
	struct rnbd_msg_list m;
	uint32_t first;

	memset(&m, 0xa5, sizeof(m));
	rnbd_list_encode(&m, 0x01020304);
	expect_bytes(&m, expected, sizeof(m), "LIST");
	cr_assert_eq(rnbd_list_decode(&m, sizeof(m), &first), 0);
	cr_assert_eq(first, 0x01020304);
	for (size_t len = 0; len < sizeof(m); len++) {
		uint8_t *buf = tight_copy(&m, len);

		cr_assert_eq(rnbd_list_decode(buf, len, &first), -EINVAL, "%zu", len);
		free(buf);
	}
}

Test(rnbd_list, answer_bytes)
{
	static const uint8_t expected[] = { 0x01, 0x80, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0,
					    5, 'd', 'i', 's', 'k', '0', 1, 'x', 0 };
	uint8_t buf[RNBD_LIST_ROOM_MIN];
	struct rnbd_list_writer w;

	memset(buf, 0xa5, sizeof(buf));
	rnbd_list_begin(&w, buf, sizeof(buf));
	cr_assert(rnbd_list_add(&w, "disk0"));
	cr_assert(rnbd_list_add(&w, "x"));
	rnbd_list_end(&w, 7);
	expect_bytes(buf, expected, sizeof(expected), "LIST_RSP");
	cr_assert_eq(w.used, sizeof(expected) - 1);
	for (size_t i = w.used; i < sizeof(buf); i++)
		cr_assert_eq(buf[i], 0, "byte %zu is what was there", i);
}

/* Any number of names comes over in parts of any size. */
static void in_parts(size_t room)
{
	enum { N = 300 };
	static char names[N][RNBD_NAME_MAX];
	char got[RNBD_NAME_MAX];
	uint32_t first = 0, left;
	uint8_t *buf = malloc(room);

	cr_assert_not_null(buf);
	for (unsigned i = 0; i < N; i++) {
		memset(names[i], 'a' + (int)(i % 26), sizeof(names[i]));
		names[i][i % (RNBD_NAME_MAX - 1) + 1] = '\0';
	}
	do {
		struct rnbd_list_writer w;
		struct rnbd_list_reader r;
		uint32_t i = first;

		rnbd_list_begin(&w, buf, room);
		while (i < N && rnbd_list_add(&w, names[i]))
			i++;
		rnbd_list_end(&w, N - i);
		cr_assert_eq(rnbd_list_rsp_decode(buf, room, &r), 0);
		cr_assert_eq(r.n, i - first);
		for (uint32_t k = 0; k < r.n; k++) {
			cr_assert_eq(rnbd_list_rsp_name(&r, got), 0);
			cr_assert_str_eq(got, names[first + k]);
		}
		left = r.left;
		first = i;
	} while (left);
	cr_assert_eq(first, N);
	free(buf);
}

Test(rnbd_list, parts)
{
	in_parts(RNBD_LIST_ROOM_MIN);
	in_parts(RNBD_LIST_ROOM);
	in_parts(65536);
}

Test(rnbd_list, answer_head)
{
	uint8_t head[12] = { 0x01, 0x80, 0, 0, 1 };
	struct rnbd_list_reader r;

	for (size_t len = 0; len < sizeof(head); len++) {
		uint8_t *buf = tight_copy(head, len);

		cr_assert_eq(rnbd_list_rsp_decode(buf, len, &r), -EINVAL, "%zu", len);
		free(buf);
	}
	cr_assert_eq(rnbd_list_rsp_decode(head, sizeof(head), &r), 0);
	head[0] = 2;
	cr_assert_eq(rnbd_list_rsp_decode(head, sizeof(head), &r), -EINVAL, "another message");
	head[0] = 1;
	head[4] = 0;
	cr_assert_eq(rnbd_list_rsp_decode(head, sizeof(head), &r), 0, "no exports");
	head[8] = 1;
	cr_assert_eq(rnbd_list_rsp_decode(head, sizeof(head), &r), -EINVAL,
		     "would be asked for ever");
}

Test(rnbd_list, answer_names)
{
	static const struct {
		const char *why;
		uint8_t bytes[4];
		size_t len;
		int result;
	} cases[] = {
		{ "a name", { 2, 'a', 'b' }, 3, 0 },
		{ "nothing", { 0 }, 0, -EINVAL },
		{ "empty", { 0, 'a' }, 2, -EINVAL },
		{ "only its length", { 2 }, 1, -EINVAL },
		{ "cut off", { 3, 'a', 'b', 'c' }, 3, -EINVAL },
		{ "a zero byte", { 3, 'a', 0, 'b' }, 4, -EINVAL },
		{ "a zero byte at its end", { 2, 'a', 0 }, 3, -EINVAL },
	};

	for_each_case(c, cases) {
		uint8_t head[16] = { 0x01, 0x80, 0, 0, 0xff, 0xff, 0xff, 0xff }, *buf;
		struct rnbd_list_reader r;
		char name[RNBD_NAME_MAX];

		/* with what a larger buffer has behind it, and with nothing */
		memcpy(head + 12, c->bytes, sizeof(c->bytes));
		cr_assert_eq(rnbd_list_rsp_decode(head, 12 + c->len, &r), 0, "%s", c->why);
		cr_assert_eq(rnbd_list_rsp_name(&r, name), c->result, "%s", c->why);
		buf = tight_copy(head, 12 + c->len);
		cr_assert_eq(rnbd_list_rsp_decode(buf, 12 + c->len, &r), 0, "%s", c->why);
		cr_assert_eq(rnbd_list_rsp_name(&r, name), c->result, "%s", c->why);
		free(buf);
	}
}

/* 255 bytes do not fit with their terminator. */
Test(rnbd_list, answer_longest_name)
{
	uint8_t buf[12 + 1 + 255] = { 0x01, 0x80, 0, 0, 1 };
	char name[RNBD_NAME_MAX];
	struct rnbd_list_reader r;

	memset(buf + 13, 'n', 255);
	buf[12] = 255;
	cr_assert_eq(rnbd_list_rsp_decode(buf, sizeof(buf), &r), 0);
	cr_assert_eq(rnbd_list_rsp_name(&r, name), -EINVAL);
	buf[12] = 254;
	cr_assert_eq(rnbd_list_rsp_decode(buf, sizeof(buf), &r), 0);
	cr_assert_eq(rnbd_list_rsp_name(&r, name), 0);
	cr_assert_eq(strlen(name), 254);
}
