/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but the descriptor, while a file is read. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "fab-file.h"
#include "secret.h"
#include "plain-file.h"
#include "util.h"

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

/* Read the open file @fd, which is in the state @st, into @file. */
static int read_all(int fd, const struct stat *st, size_t max, struct fab_file *file, char *why,
		    size_t len)
{
	const size_t most = MIN((size_t)st->st_size, max);
	ssize_t n;

	/* No copy is left behind when a buffer grows: the memory is made once. */
	file->room = most + 2;
	file->text = secret_alloc(file->room);
	if (!file->text) {
		snprintf(why, len, "out of memory");
		return -ENOMEM;
	}
	n = plain_file_read(fd, file->text, most, why, len);
	if (n < 0)
		return (int)n;
	file->text[n] = '\0';
	file->n = (size_t)n;
	file->changed_s = st->st_mtime;
	return 0;
}

int fab_file_read(const char *path, enum fab_file_kind kind, uid_t reader, size_t max,
		  struct fab_file *file, char *why, size_t len)
{
	_cleanup_close_ int fd = plain_file_open(path, why, len);
	struct stat st;
	int rc = 0;

	*file = (struct fab_file){ 0 };
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		rc = -errno;
		snprintf(why, len, "%s", strerror(-rc));
		return rc;
	}
	if (kind == FAB_FILE_SECRET)
		rc = check_secret(&st, reader, why, len);
	if (!rc)
		rc = read_all(fd, &st, max, file, why, len);
	if (rc)
		fab_file_free(file);
	return rc;
}

void fab_file_free(struct fab_file *file)
{
	secret_free(file->text, file->room);
	*file = (struct fab_file){ 0 };
}
