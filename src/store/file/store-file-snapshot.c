/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of files by reflink: a file beside the exported one that shares its blocks (FICLONE).
 * The file system writes back and locks the file meanwhile, so that each write is in the snapshot
 * as a whole or not at all.  Owns the new file, which has no name until it is whole and durable:
 * nothing is left of a snapshot that fails, or during which the process or the machine dies. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "names.h"
#include "store-file-priv.h"

/* A descriptor of the directory of @path, or -errno. */
static int open_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) :
					   strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

static const char *why_not(int err, char *buf, size_t len)
{
	char user[WHO_TEXT_LEN];

	switch (err) {
	case EOPNOTSUPP:
	case EINVAL:
	case ENOTTY:
		return "its file system shares no blocks between files: expected XFS or btrfs; "
		       "elsewhere copy the file while its clients have stopped";
	case EEXIST:
		return "a file has this name already";
	case EACCES:
		snprintf(buf, len, "%s: %s may not write to this directory: chown or chmod it",
			 strerror(err), who_text(geteuid(), user));
		return buf;
	default:
		return strerror(err);
	}
}

/* Give the new file @fd the name of @path, in @dir.  0 or -errno. */
static int name_file(int fd, int dir, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char self[32];
	int rc;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	if (!fsync(dir))
		return 0;
	rc = -errno;
	unlinkat(dir, name, 0);
	return rc;
}

/* Make the snapshot of @f at @path.  0 or -errno. */
static int clone_to(const struct store_file *f, const char *path)
{
	_cleanup_close_ int dir = open_directory(path), fd = -1;
	struct stat st;

	if (dir < 0)
		return dir;
	if (fstat(f->fd, &st) < 0)
		return -errno;
	fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, st.st_mode & 0666);
	if (fd < 0 || ioctl(fd, FICLONE, f->fd) < 0 || fsync(fd) < 0)
		return -errno;
	return name_file(fd, dir, path);
}

int store_file_snapshot(struct export *ex, const char *name, char *text, size_t len)
{
	const struct store_file *f = store_file(ex);
	_cleanup_free_ char *path = NULL;
	char why[160];
	int rc;

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
	rc = clone_to(f, path);
	snprintf(text, len, rc ? "'%s': %s" : "%s", path, why_not(-rc, why, sizeof(why)));
	return rc;
}
