/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "secret-file.h"

/* A secret of which another user decides, or that another user reads, is none. */
static int check_secret(const struct stat *st, uid_t reader, char *why, size_t len)
{
	if (st->st_mode & (S_IRWXG | S_IRWXO)) {
		snprintf(why, len, "expected mode 0600, not %04o: others could read the key",
			 (unsigned)(st->st_mode & 07777));
		return -EACCES;
	}
	if (st->st_uid && st->st_uid != reader) {
		snprintf(why, len, "expected a file of root or of user %u, not of user %u, who "
			 "could change the key", (unsigned)reader, (unsigned)st->st_uid);
		return -EACCES;
	}
	return 0;
}

int secret_file_read(const char *path, enum secret_file_kind kind, uid_t reader, size_t max,
		     struct plain_file *file, char *why, size_t len)
{
	int rc = plain_file_load(path, max, file, why, len);

	if (!rc && kind == SECRET_FILE_SECRET)
		rc = check_secret(&file->st, reader, why, len);
	if (rc)
		plain_file_free(file);
	return rc;
}
