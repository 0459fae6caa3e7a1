/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Strict UTF-8: overlong forms, halves of surrogates and characters beyond U+10FFFF
 * are replaced, because terminals differ in how to show such bytes. */
#include <stddef.h>
#include <stdint.h>

#include "mask.h"

/* The length of the character at @s, or 0 if the character must not be printed. */
static size_t printable_len(const unsigned char *s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	if (!len || s[0] >= 0xf8)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)	/* the end of the text, too */
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ? 0 : len;
}

void mask_control(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		size_t len = printable_len(s);

		if (!len)
			*s = '?';
		s += len ? len : 1;
	}
}
