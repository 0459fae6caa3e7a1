/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of files by reflink: a file beside the exported one that shares its blocks (FICLONE).
 * The file system writes back and locks the file meanwhile, so that each write is in the snapshot
 * as a whole or not at all.  Owns the new file until it is durable. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "store-file-priv.h"

static int sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) :
					   strdup(".");
	_cleanup_close_ int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static const char *why_not(int err)
{
	switch (err) {
	case EOPNOTSUPP:
	case EINVAL:
	case ENOTTY:
		return "its file system shares no blocks between files: expected XFS or btrfs";
	case EEXIST:
		return "a file has this name already";
	default:
		return strerror(err);
	}
}

/* Fill the new file @fd, at @path.  0 or -errno. */
static int clone_into(const struct store_file *f, int fd, const char *path)
{
	if (ioctl(fd, FICLONE, f->fd) < 0 || fsync(fd) < 0)
		return -errno;
	return sync_directory(path);
}

int store_file_snapshot(struct export *ex, const char *name, char *text, size_t len)
{
	const struct store_file *f = store_file(ex);
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int fd, rc;

	if (f->is_block) {
		snprintf(text, len, "a block device has no snapshots here: make one below it, by "
			 "lvcreate --snapshot for LVM");
		return -EOPNOTSUPP;
	}
	if (asprintf(&path, "%s.%s", ex->path, name) < 0) {
		path = NULL;
		snprintf(text, len, "out of memory");
		return -ENOMEM;
	}
	fd = fstat(f->fd, &st) < 0 ? -1 :
	     open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0666);
	if (fd < 0) {
		rc = -errno;
		snprintf(text, len, "'%s': %s", path, why_not(-rc));
		return rc;
	}
	rc = clone_into(f, fd, path);
	close(fd);
	if (rc)
		unlink(path);
	snprintf(text, len, rc ? "'%s': %s" : "%s", path, why_not(-rc));
	return rc;
}
