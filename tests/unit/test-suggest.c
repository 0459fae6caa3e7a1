/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that do not exist and what was meant. */
#include <string.h>

#include "unit.h"

#include "names.h"
#include "util.h"

Test(suggest, distances)
{
	static const struct {
		const char *a, *b;
		unsigned want;
	} cases[] = {
		{ "", "", 0 }, { "", "abc", 3 }, { "abc", "", 3 }, { "abc", "abc", 0 },
		{ "listen", "listne", 1 }, { "lisen", "listen", 1 }, { "listenn", "listen", 1 },
		{ "xisten", "listen", 1 }, { "kitten", "sitting", 3 }, { "ba", "ab", 1 },
		{ "abcdef", "badcfe", 3 }, { "LISTEN", "listen", 0 }, { "Lsiten", "listen", 1 },
		{ "max_paths", "MAX-paths", 1 },
	};

	for_each_case(c, cases) {
		cr_assert_eq(suggest_distance(c->a, strlen(c->a), c->b), c->want, "%s %s", c->a,
			     c->b);
		cr_assert_eq(suggest_distance(c->b, strlen(c->b), c->a), c->want, "%s %s", c->b,
			     c->a);
	}
}

Test(suggest, nearest_name)
{
	static const char *const names[] = { "listen", NULL, "allow", "max-paths", "max-sessions" };
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "lsiten", "listen" }, { "listen", "listen" }, { "alow", "allow" },
		{ "max-path", "max-paths" }, { "maxsessions", "max-sessions" },
		{ "max_session", "max-sessions" }, { "ALLOW", "allow" },
		{ "export", NULL }, { "l", NULL }, { "", NULL },
	};

	for_each_case(c, cases) {
		const char *got = suggest_name(c->text, strlen(c->text), names, ARRAY_SIZE(names));

		cr_assert((!got && !c->want) || (got && c->want && !strcmp(got, c->want)), "%s: %s",
			  c->text, got ? got : "none");
	}
	cr_assert_str_eq(suggest_name("allow=1.2.3.4", 5, names, ARRAY_SIZE(names)), "allow");
}

Test(suggest, long_names)
{
	char text[200];
	const char *const names[] = { text };

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_null(suggest_name("aaaa", 4, names, 1));
	text[SUGGEST_LEN_MAX] = '\0';
	cr_assert_eq(suggest_name(text, SUGGEST_LEN_MAX, names, 1), text);
	cr_assert_null(suggest_name(text, SUGGEST_LEN_MAX + 1, (const char *const[]){"b"}, 1));
}
