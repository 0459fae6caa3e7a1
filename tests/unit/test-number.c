/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and sizes as users write them. */
#include "unit.h"

#include "number.h"
#include "util.h"

Test(number, digits_within_the_limits)
{
	static const struct {
		const char *text;
		uint64_t least, most, want;
	} cases[] = {
		{ "0", 0, 0, 0 }, { "7", 7, 7, 7 }, { "007", 1, 9, 7 }, { "9", 1, 9, 9 },
		{ "1", 1, 9, 1 },
		{ "18446744073709551615", 0, UINT64_MAX, UINT64_MAX },
	};

	for_each_case(c, cases) {
		uint64_t n = 12345;

		cr_assert(number_parse(c->text, c->least, c->most, &n), "%s", c->text);
		cr_assert_eq(n, c->want, "%s", c->text);
	}
}

Test(number, anything_else_is_refused)
{
	static const char *const texts[] = {
		"", "-1", "+1", " 1", "1 ", "1x", "x", "0x10", "1.5", "1k", "0", "10",
		"18446744073709551616", "99999999999999999999999",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
		unsigned u = 12345;
		uint64_t n = 12345;

		cr_assert_not(number_parse(texts[i], 1, 9, &n), "%s", texts[i]);
		cr_assert_not(number_parse_u(texts[i], 1, 9, &u), "%s", texts[i]);
		cr_assert_eq(n, 12345, "%s", texts[i]);
		cr_assert_eq(u, 12345, "%s", texts[i]);
	}
}

/* 2^32 + 5 is no 5. */
Test(number, an_unsigned_int_has_32_bits)
{
	unsigned u = 1;

	cr_assert_not(number_parse_u("4294967301", 0, UINT32_MAX, &u));
	cr_assert(number_parse_u("4294967295", 0, UINT32_MAX, &u));
	cr_assert_eq(u, UINT32_MAX);
}

Test(number, a_prefix_ends_behind_its_digits)
{
	const char text[] = "12ab", *rest = text;
	uint64_t n = 0;

	cr_assert(number_prefix(text, &rest, &n));
	cr_assert_eq(n, 12);
	cr_assert_eq(rest, text + 2);
	cr_assert_not(number_prefix(rest, &rest, &n));
	cr_assert_not(number_prefix("18446744073709551616", &rest, &n));
	cr_assert_eq(rest, text + 2);
	cr_assert_eq(n, 12);
}

Test(size, numbers_with_a_letter_or_none)
{
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{ "0", 0 }, { "1", 1 }, { "007", 7 }, { "4096", 4096 }, { "4k", 4096 },
		{ "4K", 4096 },
		{ "3m", 3u << 20 }, { "3M", 3u << 20 }, { "5g", 5ull << 30 }, { "5G", 5ull << 30 },
		{ "7t", 7ull << 40 }, { "7T", 7ull << 40 }, { "0T", 0 },
		{ "16777215T", 16777215ull << 40 },
		{ "18446744073709551615", UINT64_MAX },
	};

	for_each_case(c, cases) {
		uint64_t bytes = 12345;

		cr_assert(size_parse(c->text, &bytes), "%s", c->text);
		cr_assert_eq(bytes, c->want, "%s: %llu", c->text, (unsigned long long)bytes);
	}
}

Test(size, anything_else_is_refused)
{
	static const char *const texts[] = {
		"", "k", "-1", "+1", " 1", "1 ", "0x10", "1.5G", "4KB", "4KiB", "4kk", "1P", "1,",
		"18446744073709551616", "16777216T", "18014398509481984K",
		"99999999999999999999999K",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
		uint64_t bytes = 12345;

		cr_assert_not(size_parse(texts[i], &bytes), "%s", texts[i]);
		cr_assert_eq(bytes, 12345, "%s", texts[i]);
	}
}

Test(size, a_text_is_read_as_the_size_it_was_made_of)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} cases[] = {
		{ 0, "0" }, { 1, "1" }, { 1000, "1000" }, { 1024, "1K" }, { 1536, "1536" },
		{ 64u << 20, "64M" },
		{ 3ull << 30, "3G" }, { 1ull << 60, "1048576T" },
		{ UINT64_MAX, "18446744073709551615" },
	};

	for_each_case(c, cases) {
		char buf[SIZE_TEXT_MAX];
		uint64_t bytes = 12345;

		cr_assert_str_eq(size_text(c->bytes, buf), c->want);
		cr_assert(size_parse(buf, &bytes));
		cr_assert_eq(bytes, c->bytes, "%s", c->want);
	}
}
