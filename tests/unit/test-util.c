/* SPDX-License-Identifier: BSD-3-Clause */
/* util.h and le.h */
#include "unit.h"

#include "wire-int.h"

Test(util, ceil_log2)
{
	static const struct {
		uint64_t x;
		unsigned bits;
	} table[] = { { 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 2 }, { 5, 3 }, { 511, 9 },
		      { 512, 9 }, { 513, 10 }, { 65535, 16 }, { 65536, 16 }, { 65537, 17 },
		      { 1ull << 32, 32 }, { (1ull << 63) + 1, 64 }, { UINT64_MAX, 64 } };

	for_each_case(c, table)
		cr_assert_eq(ceil_log2(c->x), c->bits, "%#llx", (unsigned long long)c->x);
}

Test(util, range_ok)
{
	static const struct {
		uint64_t off, len, size;
		bool ok;
	} table[] = {
		{ 0, 0, 0, true }, { 0, 1, 0, false }, { 1, 0, 0, false }, { 0, 10, 10, true },
		{ 1, 10, 10, false }, { 10, 0, 10, true }, { 11, 0, 10, false }, { 9, 1, 10, true },
		{ 9, 2, 10, false },
		{ UINT64_MAX, 1, 10, false }, { 1, UINT64_MAX, 10, false },
		{ UINT64_MAX, UINT64_MAX, 10, false }, { UINT64_MAX, 2, UINT64_MAX, false },
		{ 0, UINT64_MAX, UINT64_MAX, true }, { 1, UINT64_MAX, UINT64_MAX, false },
		{ 2, UINT64_MAX - 1, UINT64_MAX, false }, { 1, UINT64_MAX - 1, UINT64_MAX, true },
	};

	for_each_case(c, table)
		cr_assert_eq(range_ok(c->off, c->len, c->size), c->ok, "%#llx + %#llx in %#llx",
			     (unsigned long long)c->off, (unsigned long long)c->len,
			     (unsigned long long)c->size);
}

Test(util, pow2_and_align)
{
	cr_assert_not(is_pow2(0));
	cr_assert(is_pow2(1));
	cr_assert_not(is_pow2(3));
	cr_assert(is_pow2(1ull << 63));
	cr_assert_not(is_pow2(UINT64_MAX));
	cr_assert_eq(align_up(0, 512), 0);
	cr_assert_eq(align_up(1, 512), 512);
	cr_assert_eq(align_up(512, 512), 512);
	cr_assert_eq(align_up(513, 512), 1024);
	cr_assert_eq(align_down(511, 512), 0);
	cr_assert_eq(align_down(513, 512), 512);
	cr_assert_eq(align_down(UINT64_MAX, 4096), UINT64_MAX - 4095);
}

Test(util, min_max_evaluate_once)
{
	int i = 0;
	int low = MIN(i++, 5);

	cr_assert_eq(low, 0);
	cr_assert_eq(i, 1);
	cr_assert_eq(MAX(3, 2), 3);
	cr_assert_eq(MIN(-1, 1), -1);
	cr_assert_eq(MIN(MAX(MIN(7, 9), 3), MAX(5, MIN(6, 8))), 6);
}

Test(util, container_of)
{
	struct {
		char a;
		long b;
	} s;

	cr_assert_eq(container_of(&s.b, __typeof__(s), b), &s);
}

Test(le, bytes_on_the_wire)
{
	le16 a = le16_put(0x1BBD);
	le32 b = le32_put(0x01020304);
	le64 c = le64_put(0x0102030405060708);

	expect_bytes(&a, "\xbd\x1b", 2, "le16");
	expect_bytes(&b, "\x04\x03\x02\x01", 4, "le32");
	expect_bytes(&c, "\x08\x07\x06\x05\x04\x03\x02\x01", 8, "le64");
	cr_assert_eq(le16_get(a), 0x1BBD);
	cr_assert_eq(le32_get(b), 0x01020304);
	cr_assert_eq(le64_get(c), 0x0102030405060708);
}

Test(le, any_address)
{
	static const unsigned char bytes[] = { 0xff, 8, 7, 6, 5, 4, 3, 2, 1 };

	cr_assert_eq(le64_get(*(const le64 *)(const void *)(bytes + 1)), 0x0102030405060708);
	cr_assert_eq(le32_get(*(const le32 *)(const void *)(bytes + 1)), 0x05060708);
	cr_assert_eq(le16_get(*(const le16 *)(const void *)(bytes + 1)), 0x0708);
}
