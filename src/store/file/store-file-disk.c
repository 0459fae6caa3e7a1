/* SPDX-License-Identifier: BSD-3-Clause */
/* Block devices as the kernel tells of them in /proc and /sys: attributes, the disk of a partition,
 * and other users on this machine.  Owns nothing; main thread, or a worker (export-life.h). */
#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cleanup.h"
#include "store-file-priv.h"

/* ---- attributes ---- */

bool store_file_disk_line(const char *path, char *buf, int len)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(buf, len, f);
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

bool store_file_disk_attr(dev_t dev, const char *attr, char *buf, int len)
{
	static const char *const up[] = { "", "../" };

	for (unsigned i = 0; i < ARRAY_SIZE(up); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s", major(dev), minor(dev),
			 up[i], attr);
		if (store_file_disk_line(path, buf, len))
			return true;
	}
	return false;
}

uint64_t store_file_disk_number(dev_t dev, const char *attr, uint64_t otherwise)
{
	unsigned long long value;
	char buf[64];

	if (!store_file_disk_attr(dev, attr, buf, sizeof(buf)) || sscanf(buf, "%llu", &value) != 1)
		return otherwise;
	return value;
}

/* ---- users ---- */

/* As far as the kernel tells: mounts, swap, and devices made of the device (LVM, md,
 * device-mapper).
 *
 * A partition and the whole disk share their bytes, so a use of either is a use of both; two
 * partitions of one disk share nothing.  Only mounts of this process's mount namespace are visible:
 * for the mounts of others the kernel only answers EBUSY to the claim (store-file-claim.c). */

#define SYSFS_PATH_MAX 384

static dev_t parse_dev(const char *text)
{
	unsigned maj, min;

	return sscanf(text, "%u:%u", &maj, &min) == 2 ? makedev(maj, min) : 0;
}

/* The device number in "dev" of directory @name below the directory of @dev; 0: no such file. */
static dev_t dev_below(dev_t dev, const char *name)
{
	char path[SYSFS_PATH_MAX], line[32];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/dev", major(dev), minor(dev), name);
	return store_file_disk_line(path, line, sizeof(line)) ? parse_dev(line) : 0;
}

/* The disk of the partition @dev; 0: @dev is no partition. */
static dev_t whole_disk(dev_t dev)
{
	char path[SYSFS_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
	return stat(path, &st) ? 0 : dev_below(dev, "..");
}

dev_t store_file_disk_of(dev_t dev)
{
	dev_t disk = whole_disk(dev);

	return disk ? disk : dev;
}

bool store_file_disk_same(dev_t a, dev_t b)
{
	return a == b || whole_disk(a) == b || whole_disk(b) == a;
}

/* Put the name of @dev, "sda1", into @buf, or its numbers if the kernel does not tell the name.
 * Returns @buf. */
static const char *dev_name_text(dev_t dev, char *buf, size_t len)
{
	char path[64], *name;
	_cleanup_free_ char *real = NULL;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	real = realpath(path, NULL);
	name = real ? strrchr(real, '/') : NULL;
	if (name)
		snprintf(buf, len, "%s", name + 1);
	else
		snprintf(buf, len, "%u:%u", major(dev), minor(dev));
	return buf;
}

/* ---- mounts and swap ---- */

/* Undo the kernel's "\040" for blanks and the like. */
static char *unescape_octal(char *text)
{
	char *out = text;

	for (const char *in = text; *in; out++) {
		unsigned c;

		if (in[0] == '\\' && sscanf(in + 1, "%3o", &c) == 1) {
			*out = (char)c;
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
	return text;
}

/* True if @path is the node of @dev in /dev.  The look-up enters no other file system: everybody
 * may mount below /dev/shm, and a FUSE server there might never answer. */
static bool is_node_of(char *path, dev_t dev)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV };
	_cleanup_close_ int dir = -1, fd = -1;
	struct stat st;

	if (strncmp(unescape_octal(path), "/dev/", 5))
		return false;
	dir = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		fd = (int)syscall(SYS_openat2, dir, path + 5, &how, sizeof(how));
	return fd >= 0 && !fstat(fd, &st) && S_ISBLK(st.st_mode) && st.st_rdev == dev;
}

/* True if @line of mountinfo, "36 35 8:1 / /mnt rw - ext4 /dev/sda1 rw", is a mount of @dev.  The
 * kernel vouches only for the number: any user who mounts a FUSE file system or a tmpfs may call
 * the source /dev/sda.  Mounts of btrfs have numbers of no device, and a source made by the
 * kernel. */
static bool mount_line(char *line, dev_t dev, char *by, size_t len)
{
	char *number, *point, *save, *type, *source, *sep = strstr(line, " - ");
	bool is_it;

	if (!sep)
		return false;
	*sep = '\0';
	strtok_r(line, " ", &save);
	strtok_r(NULL, " ", &save);
	number = strtok_r(NULL, " ", &save);
	strtok_r(NULL, " ", &save);
	point = strtok_r(NULL, " ", &save);
	type = strtok_r(sep + 3, " ", &save);
	source = strtok_r(NULL, " \n", &save);
	if (!point || !source)
		return false;
	is_it = parse_dev(number) == dev || (!strcmp(type, "btrfs") && is_node_of(source, dev));
	if (is_it)
		snprintf(by, len, "is mounted at '%s'", unescape_octal(point));
	return is_it;
}

static bool swap_line(char *line, dev_t dev, char *by, size_t len)
{
	line[strcspn(line, " \t")] = '\0';
	if (!is_node_of(line, dev))
		return false;
	snprintf(by, len, "is in use as swap");
	return true;
}

static bool find_line(const char *path, bool (*fn)(char *line, dev_t dev, char *by, size_t len),
		      dev_t dev, char *by, size_t len)
{
	FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	bool found = false;
	size_t room = 0;

	if (!f)
		return false;
	while (!found && getline(&line, &room, f) > 0)
		found = fn(line, dev, by, len);
	fclose(f);
	return found;
}

/* ---- devices made of the device ---- */

/* "dm-0 (vg-root)" if device-mapper has a name for @holder, or else @holder. */
static void holder_name(dev_t dev, const char *holder, char *buf, size_t len)
{
	char path[SYSFS_PATH_MAX], name[128];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders/%s/dm/name", major(dev),
		 minor(dev), holder);
	if (store_file_disk_line(path, name, sizeof(name)))
		snprintf(buf, len, "%.200s (%.120s)", holder, name);
	else
		snprintf(buf, len, "%s", holder);
}

static bool dev_held(dev_t dev, char *by, size_t len)
{
	char path[SYSFS_PATH_MAX], name[SYSFS_PATH_MAX];
	struct dirent *d;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(dev), minor(dev));
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		found = true;
		holder_name(dev, d->d_name, name, sizeof(name));
		snprintf(by, len, "is in use by %s", name);
	}
	closedir(dir);
	return found;
}

/* ---- all kinds of use ---- */

static bool dev_used(dev_t dev, char *by, size_t len)
{
	return find_line("/proc/self/mountinfo", mount_line, dev, by, len) ||
	       find_line("/proc/swaps", swap_line, dev, by, len) || dev_held(dev, by, len);
}

static bool partition_used(dev_t disk, char *by, size_t len)
{
	char path[64], use[STORE_FILE_USE_MAX], name[64];
	struct dirent *d;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(disk), minor(disk));
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (d = readdir(dir))) {
		dev_t part = d->d_name[0] == '.' ? 0 : dev_below(disk, d->d_name);

		if (!part || whole_disk(part) != disk || !dev_used(part, use, sizeof(use)))
			continue;
		found = true;
		snprintf(by, len, "has the partition %s, which %s",
			 dev_name_text(part, name, sizeof(name)), use);
	}
	closedir(dir);
	return found;
}

bool store_file_disk_inuse(dev_t dev, char *by, size_t len)
{
	char use[STORE_FILE_USE_MAX], name[64];
	dev_t disk = whole_disk(dev);

	if (dev_used(dev, by, len))
		return true;
	if (!disk)
		return partition_used(dev, by, len);
	if (!dev_used(disk, use, sizeof(use)))
		return false;
	snprintf(by, len, "is a partition of %s, which %s",
		 dev_name_text(disk, name, sizeof(name)), use);
	return true;
}
