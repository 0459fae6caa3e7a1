/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer may print. */
#include <string.h>

#include "unit.h"

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
