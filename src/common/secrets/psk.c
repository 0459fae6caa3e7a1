/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; keys and the bytes of files belong to the caller.  The text of a file and the keys
 * lie in memory that is wiped before it is given back, and that no core file has. */
#include <config.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "names.h"
#include "number.h"
#include "process.h"
#include "psk.h"
#include "util.h"

#define PSK_FILE_MAX (1u << 20)
#define PSK_LINES_MAX 4096u
#define CREDENTIALS "/run/credentials"	/* of the units of the system */

/* ---- files ---- */

/* True if @path is in a directory below @dir, or in @dir itself. */
static bool is_below(const char *path, const char *dir)
{
	size_t len = dir ? strlen(dir) : 0;

	return len && !strncmp(path, dir, len) && path[len] == '/';
}

/* True if @path is in a directory below @base, also when links and ".." are followed, that only
 * root, its group and @reader may enter. */
static bool is_kept_below(const char *path, const char *base, uid_t reader)
{
	_cleanup_free_ char *place = NULL, *top = NULL;
	struct stat st;

	if (!is_below(path, base))
		return false;
	place = realpath(path, NULL);
	top = realpath(base, NULL);
	if (!place || !top || !is_below(place, top))
		return false;
	*strrchr(place, '/') = '\0';
	return !stat(place, &st) && !(st.st_mode & (S_IWGRP | S_IRWXO)) && !st.st_gid &&
	       (!st.st_uid || st.st_uid == reader);
}

/* True if @path, with @st, is a credential of a unit.  systemd (257) gives it to root and the group
 * root, and @reader the right to read by an access control list, whose mask stands in the bits of
 * the group. */
static bool is_credential(const char *path, const struct stat *st, uid_t reader)
{
	return !st->st_gid && (is_kept_below(path, getenv("CREDENTIALS_DIRECTORY"), reader) ||
			       is_kept_below(path, CREDENTIALS, reader));
}

/* A secret of which another user decides, or that another user reads, is none; and what @reader may
 * not read, who may be another one than this process, is no use. */
static int check_secret(const char *path, const struct stat *st, uid_t reader, char *why,
			size_t len)
{
	mode_t others = st->st_mode & (S_IRWXG | S_IRWXO);

	if (others && (others != S_IRGRP || !is_credential(path, st, reader)))
		return fmt_error(-EACCES, why, len,
				 "expected mode 0600, not %04o: others could read the key",
				 (unsigned)(st->st_mode & 07777));
	if (st->st_uid && st->st_uid != reader) {
		char user[WHO_TEXT_LEN], owner[WHO_TEXT_LEN];

		snprintf(why, len, "is of %s, who could change the key, and %s reads it: expected "
			 "a file of the reader or of root%s", who_text(st->st_uid, owner),
			 who_text(reader, user), reader ? "" : "; a unit reads it as its own user: "
			 "check it with runuser -u USER");
		return -EACCES;
	}
	/* Another way to read it than as its owner would be in the bits of the group. */
	if (st->st_uid != reader && !others && reader != geteuid()) {
		char user[WHO_TEXT_LEN];

		return fmt_error(-EACCES, why, len, "is of user 0 (root) with mode %04o, and %s, "
				 "who runs the program, may not read it: chown it",
				 (unsigned)(st->st_mode & 07777), who_text(reader, user));
	}
	return 0;
}

/* Why @reader could not open @path: @rc. */
static void say_closed(const char *path, enum secret_file_kind kind, int rc, uid_t reader,
		       char *why, size_t len)
{
	char more[256];

	who_closed(path, rc, reader, kind == SECRET_FILE_SECRET ?
		   "chown it, and leave the mode 0600" : "chown or chmod it", more, sizeof(more));
	if (!*more && rc == -ENOENT)
		snprintf(more, sizeof(more), ": create it, or correct the path");
	snprintf(why, len, "%s%s", fds_strerror(rc), more);
}

int secret_file_read(const char *path, enum secret_file_kind kind, uid_t reader, size_t max,
		     struct plain_file *file, char *why, size_t len)
{
	int rc = plain_file_load(path, max, file, why, len);

	if (!rc && kind == SECRET_FILE_SECRET)
		rc = check_secret(path, &file->st, reader, why, len);
	else if (rc == -EACCES || rc == -ENOENT)
		say_closed(path, kind, rc, reader, why, len);
	if (rc)
		plain_file_free(file);
	return rc;
}

/* ---- names ---- */

const char *secret_name_fault(const char *name)
{
	static const char fault[] = "expected a name of 1 to 128 characters without spaces and ':' "
				    "that does not start with '#' or '/'";
	size_t n = strlen(name);

	_Static_assert(PSK_NAME_MAX == 128, "in words here");
	/* A '#' makes the name a number of hexadecimal digits (gnutls), or the line a comment; in
	 * front of a '/' stands the identity. */
	if (!n || n > PSK_NAME_MAX || *name == '#' || *name == '/')
		return fault;
	for (; *name; name++) {
		if ((unsigned char)*name <= ' ' || *name == ':' || *name == 0x7f)
			return fault;
	}
	return NULL;
}

const char *secret_name_identity(const char *name, char *buf, size_t len)
{
	snprintf(buf, len, "psk:%.*s", (int)strcspn(name, "/"), name);
	return buf;
}

/* ---- lines ---- */

void psk_line(const char *name, const uint8_t key[PSK_KEY_NEW], char line[PSK_LINE_MAX])
{
	int at = snprintf(line, PSK_LINE_MAX, "%s:", name);

	for (unsigned i = 0; i < PSK_KEY_NEW; i++)
		at += snprintf(line + at, (size_t)(PSK_LINE_MAX - at), "%02x", key[i]);
	snprintf(line + at, (size_t)(PSK_LINE_MAX - at), "\n");
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Write to @bytes what the @n digits @hex mean.  False: they are not so many pairs of hexadecimal
 * digits. */
static bool hex_bytes(const char *hex, size_t n, uint8_t *bytes)
{
	for (size_t i = 0; i < n; i += 2) {
		int high = hex_digit(hex[i]), low = high < 0 ? -1 : hex_digit(hex[i + 1]);

		if (low < 0)
			return false;
		*bytes++ = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* Read the key @hex.  False: no hexadecimal digits, or too many or too few. */
static bool parse_key(const char *hex, struct psk *psk)
{
	size_t n = strlen(hex);

	if (n % 2 || n / 2 < PSK_KEY_MIN || n / 2 > PSK_KEY_MAX || !hex_bytes(hex, n, psk->key))
		return false;
	psk->len = (unsigned)(n / 2);
	return true;
}

/* Put the name in the place of its digits, if @line is #HEX:KEY and HEX is a good name.  False: it
 * is something else. */
static bool decode_name(char *line)
{
	char name[PSK_NAME_MAX + 1] = "", *colon = strchr(line, ':');
	size_t n = colon ? (size_t)(colon - line) - 1 : 0;

	if (!n || n % 2 || n / 2 > PSK_NAME_MAX || !hex_bytes(line + 1, n, (uint8_t *)name) ||
	    strlen(name) != n / 2 || secret_name_fault(name))
		return false;
	memmove(line, name, n / 2);
	memmove(line + n / 2, colon, strlen(colon) + 1);
	return true;
}

/* False: @line is blank, or a comment.  As GnuTLS 3.7.9 reads its files, a name may be '#' and
 * hexadecimal digits, and any other line with '#' in front has no key. */
static bool line_has_key(char *line)
{
	const char *text = line + strspn(line, " \t");

	if (*line == '#')
		return decode_name(line);
	return *text && *text != '#';
}

const struct psk *psk_find(const struct psks *psks, const void *name, size_t len)
{
	for (unsigned i = 0; i < psks->n; i++) {
		if (strlen(psks->all[i].name) == len && !memcmp(psks->all[i].name, name, len))
			return &psks->all[i];
	}
	return NULL;
}

const struct psk *psk_by_serial(const struct psks *psks, uint64_t serial)
{
	for (unsigned i = 0; i < psks->n; i++) {
		if (psks->all[i].serial == serial)
			return &psks->all[i];
	}
	return NULL;
}

bool psk_same(const struct psk *a, const struct psk *b)
{
	return !strcmp(a->name, b->name) && a->len == b->len && !memcmp(a->key, b->key, a->len);
}

/* The key of @psks with the name and the bytes of @psk; NULL: none. */
static const struct psk *find_same(const struct psks *psks, const struct psk *psk)
{
	const struct psk *same = psk_find(psks, psk->name, strlen(psk->name));

	return same && psk_same(same, psk) ? same : NULL;
}

void psk_adopt(struct psks *now, const struct psks *before)
{
	for (unsigned i = 0; i < now->n; i++) {
		struct psk *psk = &now->all[i];
		const struct psk *old = find_same(before, psk);

		if (!old)
			continue;
		psk->serial = old->serial;
		psk->since_s = old->since_s;
	}
}

int psk_common(const struct psks *now, const struct psks *file, struct psks *both)
{
	*both = (struct psks){.room = (now->n + 1) * sizeof(*both->all)};
	both->all = secret_alloc(both->room);
	if (!both->all) {
		both->room = 0;
		return -ENOMEM;
	}
	for (unsigned i = 0; i < now->n; i++) {
		if (find_same(file, &now->all[i]))
			both->all[both->n++] = now->all[i];
	}
	return 0;
}

/* Parse @line into @psk.  NULL, or what is expected; never with a part of the line, which may be a
 * secret. */
static const char *parse_line(char *line, const struct psks *before, struct psk *psk)
{
	char *hex = strchr(line, ':');
	const char *fault;

	_Static_assert(PSK_KEY_MIN == 16 && PSK_KEY_MAX == 64, "in words here");
	if (!hex)
		return "expected NAME:KEY";
	*hex++ = '\0';
	fault = secret_name_fault(line);
	if (fault)
		return fault;
	if (psk_find(before, line, strlen(line)))
		return "expected each name once: a further key of one client has a label, as "
		       "NAME/b";
	if (!parse_key(hex, psk)) {
		explicit_bzero(psk, sizeof(*psk));
		return "expected a key of 32 to 128 hexadecimal digits, an even number, after the "
		       "':'";
	}
	snprintf(psk->name, sizeof(psk->name), "%s", line);
	return NULL;
}

/* ---- the file ---- */

static const char mark[] = "\xef\xbb\xbf";	/* of an editor, in front of UTF-8 */

static bool is_marked(const char *text)
{
	return !strncmp(text, mark, strlen(mark));
}

/* An editor of Windows ends a line with two bytes, of which the first one is invisible. */
static void end_of_line(char *line)
{
	size_t n = strlen(line);

	if (n && line[n - 1] == '\r')
		line[n - 1] = '\0';
}

/* Parse the lines of @text into psks->all, which has room for all of them. */
static int parse_text(char *text, struct psks *psks, char *err, size_t len)
{
	const char *fault;
	unsigned number = 0;
	char *end;

	if (is_marked(text))
		text += strlen(mark);
	for (char *line = text; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		number++;
		end_of_line(line);
		if (!line_has_key(line))
			continue;
		fault = is_marked(line) ? "begins with a byte order mark: expected none but at the "
					  "beginning of a file" :
					  parse_line(line, psks, &psks->all[psks->n]);
		if (fault)
			return fmt_error(-EINVAL, err, len, "line %u: %s", number, fault);
		psks->n++;
	}
	if (psks->n)
		return 0;
	return fmt_error(-EINVAL, err, len, "expected a line NAME:KEY, as rtrs-psk writes");
}

/* Room for a key of each line of @text. */
static int make_room(const char *text, size_t n, struct psks *psks, char *err, size_t len)
{
	unsigned lines = n && text[n - 1] != '\n';

	if (memchr(text, '\0', n))
		return fmt_error(-EINVAL, err, len, "expected lines NAME:KEY, not a zero byte");
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	if (lines > PSK_LINES_MAX)
		return fmt_error(-EFBIG, err, len, "expected at most %u lines", PSK_LINES_MAX);
	psks->room = MAX(lines, 1u) * sizeof(*psks->all);
	psks->all = secret_alloc(psks->room);
	if (psks->all)
		return 0;
	return fmt_error(-ENOMEM, err, len, "out of memory");
}

/* Fill @psks, which is empty, with the keys of @file. */
static int take_text(const struct plain_file *file, struct psks *psks, char *err, size_t len)
{
	static _Atomic uint64_t last_serial;
	int rc = make_room(file->text, file->n, psks, err, len);

	if (!rc)
		rc = parse_text(file->text, psks, err, len);
	for (unsigned i = 0; !rc && i < psks->n; i++) {
		psks->all[i].serial = ++last_serial;
		psks->all[i].since_s = file->st.st_mtime;
	}
	if (rc)
		psk_free(psks);
	return rc;
}

int psk_read(const char *path, uid_t reader, struct psks *psks, char *err, size_t len)
{
	struct plain_file file;
	int rc;

	*psks = (struct psks){0};
	rc = secret_file_read(path, SECRET_FILE_SECRET, reader, PSK_FILE_MAX, &file, err, len);
	if (rc)
		return rc;
	rc = take_text(&file, psks, err, len);
	plain_file_free(&file);
	return rc;
}

void psk_free(struct psks *psks)
{
	secret_free(psks->all, psks->room);
	*psks = (struct psks){0};
}
