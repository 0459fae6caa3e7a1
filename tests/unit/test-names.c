/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer may print, and names that do not exist with what was meant. */
#include <string.h>

#include "unit.h"
#include "util.h"

#include "names.h"

Test(mask, control_characters_and_no_utf8)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "" },
		{ "plain ~", "plain ~" },
		{ "a\nb\rc\td\x1b[0me\x7f", "a?b?c?d?[0me?" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		/* C1: U+009B begins a sequence of a terminal, U+0085 ends a line */
		{ "a\xc2\x9b""2J\xc2\x85z", "a??2J??z" },
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0" },
		/* the same in ISO 8859-1 */
		{ "a\x9b""2Jz\xff", "a?2Jz?" },
		/* cut off, by the end and by another character */
		{ "a\xe2\x82", "a??" },
		{ "\xf0\x9f\x98", "???" },
		{ "\xe2\x82z", "??z" },
		{ "\xc3\nb", "??b" },
		/* longer than it need be: '/', U+009B */
		{ "\xc0\xaf", "??" },
		{ "\xe0\x82\x9b", "???" },
		{ "\xf0\x80\x82\x9b", "????" },
		/* surrogates, beyond Unicode */
		{ "\xed\xa0\x80", "???" },
		{ "\xf4\x90\x80\x80", "????" },
		{ "\xf8\x88\x80\x80\x80", "?????" },
		/* U+202E turns what follows around; U+2066, U+061C */
		{ "a\xe2\x80\xaetxt\xe2\x81\xa6\xd8\x9c", "a???txt?????" },
		/* not seen: U+200B, U+FEFF, U+00AD, U+2060, U+3164, U+E0061 */
		{ "\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", "????????" },
		{ "\xe2\x81\xa0\xe3\x85\xa4\xf3\xa0\x81\xa1z", "??????????z" },
		/* U+2028 ends a line; the neighbours of these are text */
		{ "\xe2\x80\xa8\xe2\x80\xa7\xc2\xac\xe2\x80\xaf",
		  "???\xe2\x80\xa7\xc2\xac\xe2\x80\xaf" },
		{ "\xee\x80\x80\xf4\x8f\xbf\xbf", "\xee\x80\x80\xf4\x8f\xbf\xbf" },
	};

	for_each_case(c, cases) {
		char text[64];

		strcpy(text, c->text);
		mask_control(text);
		cr_assert_str_eq(text, c->want);
	}
}

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
		/* no neighbours swapped: both letters are others, or one of them */
		{ "ab", "cd", 2 }, { "ab", "bc", 2 }, { "ab", "ca", 2 },
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
