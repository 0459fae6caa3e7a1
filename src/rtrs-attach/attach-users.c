/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /sys/block, /proc/self/mountinfo, /proc/swaps and the descriptors of all processes.  A
 * process may come or go meanwhile: only the kernel can refuse, with O_EXCL, and it does so for
 * file systems, swap and devices. */
#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "cleanup.h"
#include "clock.h"
#include "names.h"
#include "util.h"

#define PARTS_MAX 257u			/* the disk, and as many partitions as a disk can have */

bool attach_read_line(char *text, size_t len, const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	FILE *f = NULL;
	va_list ap;
	bool found;

	va_start(ap, fmt);
	if (vasprintf(&path, fmt, ap) >= 0)
		f = fopen(path, "re");
	va_end(ap);
	found = f && fgets(text, (int)len, f);
	text[found ? strcspn(text, "\n") : 0] = '\0';
	if (f)
		fclose(f);
	return found;
}

struct attach_search {
	FILE *out;			/* NULL: only count */
	dev_t devs[PARTS_MAX];		/* [n] of the disk and its partitions */
	char names[PARTS_MAX][32];	/* of these: "nbd0p1" */
	unsigned n;
	unsigned users;
};

static void tell(struct attach_search *l, unsigned part, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void tell(struct attach_search *l, unsigned part, const char *fmt, ...)
{
	va_list ap;

	l->users++;
	if (!l->out)
		return;
	fprintf(l->out, "  /dev/%s: ", l->names[part]);
	va_start(ap, fmt);
	vfprintf(l->out, fmt, ap);
	va_end(ap);
	fputc('\n', l->out);
}

/* The place of @dev in l->devs, or -1. */
static int part_of(const struct attach_search *l, dev_t dev)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->devs[i] == dev)
			return (int)i;
	}
	return -1;
}

/* The place of the block device at @path, or -1.  Asks no server of a file system. */
static int part_at(const struct attach_search *l, const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0 ||
	    !S_ISBLK(st.stx_mode))
		return -1;
	return part_of(l, makedev(st.stx_rdev_major, st.stx_rdev_minor));
}

/* ---- the disk ---- */

/* Each entry of directory @path, but "." and "..". */
static void each_entry(const char *path, void (*fn)(struct attach_search *l, const char *path,
						    const char *name, void *arg),
		       struct attach_search *l, void *arg)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			fn(l, path, e->d_name, arg);
	}
	if (dir)
		closedir(dir);
}

/* Add the disk or partition whose folder in sysfs is @path. */
static void add_part(struct attach_search *l, const char *path, const char *name)
{
	unsigned major, minor;
	char text[32];

	if (l->n == PARTS_MAX || !attach_read_line(text, sizeof(text), "%s/dev", path) ||
	    sscanf(text, "%u:%u", &major, &minor) != 2)
		return;
	l->devs[l->n] = makedev(major, minor);
	snprintf(l->names[l->n++], sizeof(l->names[0]), "%s", name);
}

static void see_partition(struct attach_search *l, const char *path, const char *name, void *arg)
{
	_cleanup_free_ char *folder = NULL;
	char number[16];

	if (asprintf(&folder, "%s/%s", path, name) >= 0 &&
	    attach_read_line(number, sizeof(number), "%s/partition", folder))
		add_part(l, folder, name);
}

static void find_parts(struct attach_search *l, const char *disk)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "/sys/block/%s", disk) < 0)
		return;
	add_part(l, path, disk);
	each_entry(path, see_partition, l, NULL);
}

/* ---- users ---- */

/* What device-mapper calls it is what its administrator knows: "dm-0 (vg0-home)". */
static void see_holder(struct attach_search *l, const char *path, const char *name, void *arg)
{
	char text[129];

	attach_read_line(text, sizeof(text), "%s/%s/dm/name", path, name);
	mask_control(text);
	tell(l, *(unsigned *)arg, *text ? "device /dev/%s (%s) is on it" :
	     "device /dev/%s is on it", name, text);
}

static void find_holders(struct attach_search *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "/sys/class/block/%s/holders", l->names[i]) >= 0)
			each_entry(path, see_holder, l, &i);
	}
}

/* "36 35 98:0 /root /mnt rw - ext4 /dev/nbd0 rw": a file system has the device by its number, or,
 * with several devices, by its name. */
static void see_mount(struct attach_search *l, char *line)
{
	char *dash = strstr(line, " - "), where[512], source[512] = "";
	unsigned major, minor;
	int part;

	if (!dash || sscanf(line, "%*d %*d %u:%u %*s %511s", &major, &minor, where) != 3)
		return;
	sscanf(dash, " - %*s %511s", source);
	part = part_of(l, makedev(major, minor));
	if (part < 0 && !strncmp(source, "/dev/", 5))
		part = part_at(l, source);
	if (part >= 0)
		tell(l, (unsigned)part, "mounted at %s", where);
}

static void see_swap(struct attach_search *l, char *line)
{
	char path[512];
	int part = sscanf(line, "%511s", path) == 1 ? part_at(l, path) : -1;

	if (part >= 0)
		tell(l, (unsigned)part, "swap is on it");
}

static void each_line(const char *path, void (*fn)(struct attach_search *l, char *line),
		      struct attach_search *l)
{
	FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0)
		fn(l, line);
	if (f)
		fclose(f);
}

static void see_descriptor(struct attach_search *l, const char *path, const char *name, void *arg)
{
	_cleanup_free_ char *file = NULL;
	const char *pid = arg;
	char text[64];
	int part = asprintf(&file, "%s/%s", path, name) < 0 ? -1 : part_at(l, file);

	if (part < 0)
		return;
	attach_read_line(text, sizeof(text), "/proc/%s/comm", pid);
	mask_control(text);
	tell(l, (unsigned)part, "process %s (%s) has it open", pid, text);
}

static void see_process(struct attach_search *l, const char *path, const char *name, void *arg)
{
	_cleanup_free_ char *folder = NULL;

	if (isdigit((unsigned char)*name) && atoi(name) != (int)getpid() &&
	    asprintf(&folder, "/proc/%s/fd", name) >= 0)
		each_entry(folder, see_descriptor, l, (void *)name);
}

unsigned attach_users(const char *disk, FILE *out)
{
	static struct attach_search l;			/* large for a stack */

	l = (struct attach_search){ .out = out };
	find_parts(&l, disk);
	find_holders(&l);
	each_line("/proc/self/mountinfo", see_mount, &l);
	each_line("/proc/swaps", see_swap, &l);
	each_entry("/proc", see_process, &l, NULL);
	return l.users;
}

static int keep_out(const char *path, const char *disk)
{
	int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (attach_users(disk, NULL)) {
		close(fd);
		return -EBUSY;
	}
	return fd;
}

int attach_users_keep_out(const char *disk, unsigned ms)
{
	const struct timespec nap = { .tv_nsec = 50000000 };
	uint64_t since_ms = clock_now_ms();
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "/dev/%s", disk) < 0)
		return -ENOMEM;
	do {
		fd = keep_out(path, disk);
	} while (fd == -EBUSY && clock_now_ms() - since_ms < ms && nanosleep(&nap, NULL) == 0);
	return fd;
}
