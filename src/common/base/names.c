/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the texts of intern(). */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

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
			row[j] = MIN(above[j - 1] + !same_letter(a[i - 1], b[j - 1]),
				     MIN(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
			    same_letter(a[i - 2], b[j - 1]))
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
static void *interned;

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *intern(const char *text)
{
	const char *const *found;
	char *copy;

	LOCK_SCOPE(&lock);
	found = tfind(text, &interned, by_text);
	if (found)
		return *found;
	copy = strdup(text);
	found = copy ? tsearch(copy, &interned, by_text) : NULL;
	if (found)
		return *found;
	free(copy);
	return NULL;
}

/* ---- users ---- */

const char *who_text(uid_t uid, char buf[WHO_TEXT_LEN])
{
	struct passwd room, *pw = NULL;
	char texts[1024];
	int n = -1;

	if (!getpwuid_r(uid, &room, texts, sizeof(texts), &pw) && pw)
		n = snprintf(buf, WHO_TEXT_LEN, "user %u (%s)", (unsigned)uid, pw->pw_name);
	if (n < 0 || n >= WHO_TEXT_LEN)
		snprintf(buf, WHO_TEXT_LEN, "user %u", (unsigned)uid);
	return buf;
}

const char *who_hides(const char *path, const char **dir)
{
	static const struct {
		const char *path, *setting;
	} dirs[] = {
		{ "/home/", "ProtectHome=" }, { "/root/", "ProtectHome=" },
		{ "/run/user/", "ProtectHome=" }, { "/tmp/", "PrivateTmp=" },
		{ "/var/tmp/", "PrivateTmp=" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		*dir = dirs[i].path;
		if (!strncmp(path, *dir, strlen(*dir)))
			return dirs[i].setting;
	}
	return NULL;
}

const char *who_closed(const char *path, int err, uid_t uid, const char *todo, char *buf,
		       size_t len)
{
	char user[WHO_TEXT_LEN], owner[WHO_TEXT_LEN];
	const char *dir, *by = NULL;
	struct stat st;
	bool seen = !stat(path, &st);

	*buf = '\0';
	if (err != -EACCES && err != -ENOENT)
		return buf;
	/* systemd.exec(5) sets it for services. */
	if (!seen && getenv("INVOCATION_ID"))
		by = who_hides(path, &dir);
	if (by)
		snprintf(buf, len, ": a service of systemd may not see %s of the machine (%s): "
			 "put it elsewhere", dir, by);
	else if (err == -EACCES && seen)
		snprintf(buf, len, ": %s, who runs this program, may not read it, and it is of %s "
			 "and group %u with mode %04o: %s", who_text(uid, user),
			 who_text(st.st_uid, owner), (unsigned)st.st_gid,
			 (unsigned)st.st_mode & 07777, todo);
	else if (err == -EACCES)
		snprintf(buf, len, ": %s, who runs this program, may not enter a directory of the "
			 "path: put it elsewhere, or let this user in (a unit sees nothing of "
			 "/home and /root)", who_text(uid, user));
	return buf;
}
