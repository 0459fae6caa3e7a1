/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at an opened file for what the administrator has hardly meant, and warns: programs and loop
 * devices that use the file, unhindered by any claim, as far as this process may see such users;
 * and an image in a format like qcow2.  Main thread, or a worker (export-life.h); blocks.
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
#include "log.h"
#include "store-file-priv.h"

/* A file whose users are looked for. */
struct seek {
	const struct export *ex;
	char *path;			/* by which the kernel names the file */
	char *process, *loop;		/* of a user; NULL: not found */
};

/* All processes and loop devices are looked through once for all files. */
struct users_look {
	struct seek *all;		/* by .path */
	unsigned n;
	char other[PATH_MAX];		/* a path to compare */
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

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct seek *)a)->path, ((const struct seek *)b)->path);
}

/* The file that look->other names; NULL: none of them. */
static struct seek *look_find(const struct users_look *look)
{
	const struct seek key = { .path = (char *)(uintptr_t)look->other };

	return bsearch(&key, look->all, look->n, sizeof(*look->all), by_path);
}

static void look_add(struct users_look *look, const struct export *ex)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", store_file(ex)->fd);
	if (!link_target(link, look->other))
		return;
	look->all[look->n] = (struct seek){ .ex = ex, .path = strdup(look->other) };
	look->n += look->all[look->n].path != NULL;
}

/* Make a look for @n files, without a file yet; NULL: no memory. */
static struct users_look *look_create(unsigned n)
{
	struct users_look *look = calloc(1, sizeof(*look));

	if (!look)
		return NULL;
	look->all = calloc(n + 1, sizeof(*look->all));
	if (look->all)
		return look;
	free(look);
	return NULL;
}

static void look_destroy(struct users_look *look)
{
	for (unsigned i = 0; i < look->n; i++) {
		free(look->all[i].path);
		free(look->all[i].process);
		free(look->all[i].loop);
	}
	free(look->all);
	free(look);
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

/* "process 812 (qemu-img)", for the caller to free. */
static char *process_name(const char *pid)
{
	char path[64], comm[32], *name = NULL;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	if (!store_file_disk_line(path, comm, sizeof(comm)))
		snprintf(comm, sizeof(comm), "?");
	return asprintf(&name, "process %s (%s)", pid, comm) < 0 ? NULL : name;
}

static void look_into_process(struct users_look *look, const char *pid)
{
	char dir[64], link[128];
	struct seek *seek;
	struct dirent *d;
	DIR *fds;

	snprintf(dir, sizeof(dir), "/proc/%.20s/fd", pid);
	fds = opendir(dir);
	if (!fds)
		return;
	while ((d = readdir(fds))) {
		snprintf(link, sizeof(link), "%s/%.20s", dir, d->d_name);
		seek = link_target(link, look->other) ? look_find(look) : NULL;
		if (seek && !seek->process && opened_for_writing(pid, d->d_name))
			seek->process = process_name(pid);
	}
	closedir(fds);
}

static void look_into_processes(struct users_look *look)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;
	int own = getpid();

	/* /proc may be that of another namespace of PIDs, where this process has another number. */
	if (link_target("/proc/self", look->other))
		own = atoi(look->other);
	while (proc && (d = readdir(proc))) {
		if (isdigit((unsigned char)d->d_name[0]) && atoi(d->d_name) != own)
			look_into_process(look, d->d_name);
	}
	if (proc)
		closedir(proc);
}

static void look_at_loops(struct users_look *look)
{
	DIR *block = opendir("/sys/block");
	char attr[64 + NAME_MAX];
	struct seek *seek;
	struct dirent *d;

	while (block && (d = readdir(block))) {
		snprintf(attr, sizeof(attr), "/sys/block/%s/loop/backing_file", d->d_name);
		if (strncmp(d->d_name, "loop", 4) ||
		    !store_file_disk_line(attr, look->other, sizeof(look->other)))
			continue;
		seek = look_find(look);
		if (seek && !seek->loop)
			seek->loop = strdup(d->d_name);
	}
	if (block)
		closedir(block);
}

bool store_file_look_writer(const struct export *ex, char *name, size_t len)
{
	struct users_look *look = look_create(1);
	bool found;

	if (!look)
		return false;
	look_add(look, ex);
	look_into_processes(look);
	found = look->n && look->all[0].process;
	if (found)
		snprintf(name, len, "%s", look->all[0].process);
	look_destroy(look);
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

static void warn_of(const struct seek *seek)
{
	const struct export *ex = seek->ex;

	if (seek->loop)
		log_warn(ex->name, "'%s' is the storage of the loop device %s: clients and writers "
			 "of the loop device destroy each other's data", ex->path, seek->loop);
	if (seek->process)
		log_warn(ex->name,
			 "'%s' is open for writing in %s: clients and that process destroy "
			 "each other's data",
			 ex->path, seek->process);
	else if (locked_by_server(ex))
		log_warn(ex->name,
			 "'%s' is exported for writing by another server: the clients of both "
			 "destroy each other's data",
			 ex->path);
	else if (locked_by_program(ex))
		log_warn(ex->name, "'%s' is locked by another program, in the way of QEMU: clients "
			 "and that program may destroy each other's data", ex->path);
}

void store_file_look_warn(const struct export *const *all, unsigned n)
{
	struct users_look *look = look_create(n);

	if (!look)
		return;
	for (unsigned i = 0; i < n; i++) {
		if (store_writer(all[i]->store) == all[i])
			look_add(look, all[i]);
	}
	if (look->n) {
		qsort(look->all, look->n, sizeof(*look->all), by_path);
		look_at_loops(look);
		look_into_processes(look);
	}
	for (unsigned i = 0; i < look->n; i++)
		warn_of(&look->all[i]);
	look_destroy(look);
}

/* ---- images of virtual machines in a format of their own ---- */

/* Exported as they lie, clients see the bytes of the format instead of the disk.  A warning,
 * because a disk may hold anything. */

/* What a file of the format begins with, as QEMU's block drivers know the format. */
struct format {
	const char *name;		/* of qemu-img(1) */
	unsigned at;
	const char *magic;
	size_t len;
};

#define MAGIC(s) .magic = (s), .len = sizeof(s) - 1

/* LUKS is none of them: a client may open it. */
static const struct format formats[] = {
	{ "qcow2", 0, MAGIC("QFI\xfb") },
	{ "vmdk", 0, MAGIC("KDMV") },
	{ "vmdk", 0, MAGIC("COWD") },
	{ "vmdk", 0, MAGIC("# Disk DescriptorFile") },
	{ "vhdx", 0, MAGIC("vhdxfile") },
	{ "vdi", 64, MAGIC("\x7f\x10\xda\xbe") },
};

/* The format of what begins with the @len bytes of @head; NULL: none that is known. */
static const char *format_of(const char *head, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct format *f = &formats[i];

		if (f->at + f->len <= len && !memcmp(head + f->at, f->magic, f->len))
			return f->name;
	}
	return NULL;
}

void store_file_look_format(const struct export *ex)
{
	size_t size = MAX(ex->direct ? ex->block_align : 0, RNBD_SECTOR_SIZE);
	_cleanup_free_ char *head = NULL;
	const char *name;
	ssize_t n;
	void *p;

	if (posix_memalign(&p, size, size))
		return;
	head = p;
	n = pread(store_file(ex)->fd, head, size, 0);
	name = n > 0 ? format_of(head, (size_t)n) : NULL;
	if (name)
		log_warn(ex->name, "'%s' is a %s image: clients see the bytes of the format, not "
			 "the disk inside: make a raw copy (qemu-img convert -f %s -O raw), or "
			 "export the image with qemu-nbd", ex->path, name, name);
}
