/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a locale of the C library, whose tables know the width of a character.  The user's locale
 * may have another encoding than answers have.  Without C.UTF-8, which is part of the C library
 * from glibc 2.35 on, each character has one column. */
#include <config.h>

#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#include "width.h"

/* The locale, made once; (locale_t)0: this machine has none. */
static locale_t utf8_locale(void)
{
	static locale_t locale;
	static bool asked;

	if (!asked)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	asked = true;
	return locale;
}

static int characters(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* The columns of @text in the present locale. */
static int columns(const char *text)
{
	size_t left = strlen(text), n;
	mbstate_t state = { 0 };
	int width = 0;
	wchar_t c;

	for (; left; text += n, left -= n) {
		n = mbrtowc(&c, text, left, &state);
		if (n == (size_t)-1 || n == (size_t)-2 || !n)
			return width + characters(text);
		/* A character that the table does not know has a column. */
		width += wcwidth(c) < 0 ? 1 : wcwidth(c);
	}
	return width;
}

int width_of(const char *text)
{
	locale_t before;
	int width;

	if (!utf8_locale())
		return characters(text);
	before = uselocale(utf8_locale());
	width = columns(text);
	uselocale(before);
	return width;
}
