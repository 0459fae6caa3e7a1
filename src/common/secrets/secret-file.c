/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "names.h"
#include "number.h"
#include "psk.h"
#include "secret-file.h"

#define CREDENTIALS "/run/credentials"	/* of the units of the system */

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

/* A secret of which another user decides, or that another user reads, is none. */
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
	snprintf(why, len, "%s%s", strerror(-rc), more);
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
