/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs and loop devices that use a file or device, unhindered by any claim: warnings, as far as
 * this process may see such users.  Owns nothing; main thread, or a worker (export-life.h).
 *
 * Paths are compared, not files: a descriptor of another process may lie on a dead file system, for
 * which stat(2) would wait. */
#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "store-file-priv.h"
#include "log.h"

/* The path of the export, and a path to compare. */
struct seek {
	char path[PATH_MAX], other[PATH_MAX];
};

/* Read the target of a link of /proc, without following the link. */
static bool link_target(const char *link, char path[PATH_MAX])
{
	ssize_t n = readlink(link, path, PATH_MAX - 1);

	if (n < 0)
		return false;
	path[n] = '\0';
	return true;
}

/* Make a struct seek for @ex, for the caller to free.  NULL: cannot look. */
static struct seek *seek_file(const struct export *ex)
{
	struct seek *seek = malloc(sizeof(*seek));
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", store_file(ex)->fd);
	if (seek && link_target(link, seek->path))
		return seek;
	free(seek);
	return NULL;
}

static bool opened_for_writing(const char *pid, const char *fd)
{
	char path[64], line[64];
	unsigned flags = O_RDONLY;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/fdinfo/%.20s", pid, fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	}
	fclose(f);
	return (flags & O_ACCMODE) != O_RDONLY;
}

static bool process_writes(const char *pid, struct seek *seek)
{
	char dir[64], link[128];
	struct dirent *d;
	bool found = false;
	DIR *fds;

	snprintf(dir, sizeof(dir), "/proc/%.20s/fd", pid);
	fds = opendir(dir);
	if (!fds)
		return false;
	while (!found && (d = readdir(fds))) {
		snprintf(link, sizeof(link), "%s/%.20s", dir, d->d_name);
		found = link_target(link, seek->other) && !strcmp(seek->other, seek->path) &&
			opened_for_writing(pid, d->d_name);
	}
	closedir(fds);
	return found;
}

static void name_process(const char *pid, char *buf, size_t len)
{
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	if (!store_file_sysfs_line(path, comm, sizeof(comm)))
		snprintf(comm, sizeof(comm), "?");
	snprintf(buf, len, "process %s (%s)", pid, comm);
}

bool store_file_users_writer(const struct export *ex, char *name, size_t len)
{
	_cleanup_free_ struct seek *seek = seek_file(ex);
	DIR *proc = seek ? opendir("/proc") : NULL;
	struct dirent *d;
	bool found = false;

	if (!proc)
		return false;
	while (!found && (d = readdir(proc))) {
		if (!isdigit((unsigned char)d->d_name[0]) || atoi(d->d_name) == getpid() ||
		    !process_writes(d->d_name, seek))
			continue;
		found = true;
		name_process(d->d_name, name, len);
	}
	closedir(proc);
	return found;
}

/* True if the loop device @name has seek->path as backing file. */
static bool loop_is_on(const char *name, struct seek *seek)
{
	char attr[64 + NAME_MAX];

	snprintf(attr, sizeof(attr), "/sys/block/%s/loop/backing_file", name);
	return store_file_sysfs_line(attr, seek->other, sizeof(seek->other)) &&
	       !strcmp(seek->other, seek->path);
}

static bool find_loop(const struct export *ex, char *name, size_t len)
{
	_cleanup_free_ struct seek *seek = seek_file(ex);
	DIR *block = seek ? opendir("/sys/block") : NULL;
	struct dirent *d;
	bool found = false;

	if (!block)
		return false;
	while (!found && (d = readdir(block))) {
		found = !strncmp(d->d_name, "loop", 4) && loop_is_on(d->d_name, seek);
		if (found)
			snprintf(name, len, "%s", d->d_name);
	}
	closedir(block);
	return found;
}

/* A description of @ex that meets no lock of this server. */
static int description_of(const struct export *ex)
{
	int lock_fd = store_file_keep(ex)->lock_fd;

	return lock_fd >= 0 ? lock_fd : store_file(ex)->fd;
}

/* True if a lock of fcntl(2) is on the file, as QEMU locks images: flock(2) does not meet such
 * locks.  The byte of servers is left out. */
static bool locked_by_program(const struct export *ex)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_len = STORE_FILE_WRITER_BYTE };

	return !fcntl(description_of(ex), F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* True if another server has locked the byte of servers, and --no-lock did not wait for the
 * server. */
static bool locked_by_server(const struct export *ex)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET,
			      .l_start = STORE_FILE_WRITER_BYTE, .l_len = 1 };

	return !fcntl(description_of(ex), F_OFD_GETLK, &lock) && lock.l_type == F_WRLCK;
}

void store_file_users_warn(const struct export *ex)
{
	char name[NAME_MAX + 1];

	if (find_loop(ex, name, sizeof(name)))
		log_warn(ex->name, "'%s' is the storage of the loop device %s: clients and writers "
			 "of the loop device destroy each other's data", ex->path, name);
	if (store_file_users_writer(ex, name, sizeof(name)))
		log_warn(ex->name,
			 "'%s' is open for writing in %s: clients and that process destroy "
			 "each other's data",
			 ex->path, name);
	else if (locked_by_server(ex))
		log_warn(ex->name,
			 "'%s' is exported for writing by another server: the clients of both "
			 "destroy each other's data",
			 ex->path);
	else if (locked_by_program(ex))
		log_warn(ex->name, "'%s' is locked by another program, in the way of QEMU: clients "
			 "and that program may destroy each other's data", ex->path);
}
