/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as users write them. */
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
