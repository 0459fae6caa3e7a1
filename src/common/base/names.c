/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the texts of intern(). */
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "names.h"
#include "util.h"

/* ---- names of peers ----
 *
 * Strict UTF-8: overlong forms, halves of surrogates and characters beyond U+10FFFF are replaced,
 * because terminals differ in how to show such bytes. */

/* Characters that end a line, turn the direction of the text around them, or are not seen: Unicode
 * 15.1, Bidi_Control, Default_Ignorable_Code_Point, and the separators Zl and Zp. */
static bool is_unseen(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0xad, 0xad }, { 0x34f, 0x34f }, { 0x61c, 0x61c }, { 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || is_unseen(c);
}

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
	return is_control(c) ? 0 : len;
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

/* ---- names with a mistake ----
 *
 * Names are short, so the table of distances lies on the stack.  Three rows suffice: the row of the
 * current letter and, for swapped neighbours, the two rows above. */

unsigned suggest_distance(const char *a, size_t len, const char *b)
{
	unsigned rows[3][SUGGEST_LEN_MAX + 1];
	size_t blen = strlen(b);

	if (len > SUGGEST_LEN_MAX || blen > SUGGEST_LEN_MAX)
		return SUGGEST_LEN_MAX;
	for (size_t j = 0; j <= blen; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= len; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *over = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= blen; j++) {
			row[j] = MIN(above[j - 1] + (a[i - 1] != b[j - 1]),
				     MIN(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], over[j - 2] + 1);
		}
	}
	return rows[len % 3][blen];
}

const char *suggest_name(const char *text, size_t len, const char *const *names, size_t n)
{
	unsigned nearest = MAX((unsigned)len / 3, 1u) + 1;
	const char *best = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned distance = names[i] ? suggest_distance(text, len, names[i]) : nearest;

		if (distance < nearest) {
			nearest = distance;
			best = names[i];
		}
	}
	return best;
}

/* ---- one text for a name: a tree of them under a lock that is innermost ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *texts;

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *intern(const char *text)
{
	const char *const *found;
	char *copy;

	LOCK_SCOPE(&lock);
	found = tfind(text, &texts, by_text);
	if (found)
		return *found;
	copy = strdup(text);
	found = copy ? tsearch(copy, &texts, by_text) : NULL;
	if (found)
		return *found;
	free(copy);
	return NULL;
}
