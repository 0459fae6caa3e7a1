/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the links in /dev/rtrs; and the first read of a disk, in a process of its own. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach-nbd.h"
#include "attach.h"
#include "cleanup.h"

#define DIRECTORY "/dev/rtrs"
#define READ_BYTES 4096u		/* the first IO; aligned as a page */

const char *attach_node(const char *name, char buf[ATTACH_NODE_LEN])
{
	snprintf(buf, ATTACH_NODE_LEN, DIRECTORY "/%s", name);
	return buf;
}

int attach_node_make(const struct attach_state *s, char *err, size_t len)
{
	char node[ATTACH_NODE_LEN];
	_cleanup_free_ char *target = NULL, *new = NULL;
	int r = 0;

	attach_node(s->name, node);
	if (asprintf(&target, "../%s", s->disk) < 0 || asprintf(&new, "%s.new", node) < 0)
		r = -ENOMEM;
	else if ((mkdir(DIRECTORY, 0755) < 0 && errno != EEXIST) ||
		 (unlink(new) < 0 && errno != ENOENT) || symlink(target, new) < 0 ||
		 rename(new, node) < 0)
		r = -errno;
	if (r < 0)
		snprintf(err, len, "%s: %s", node, strerror(-r));
	return r;
}

uint64_t attach_node_size(const char *disk)
{
	_cleanup_free_ char *path = NULL;
	unsigned long long sectors = 0;
	FILE *f;

	if (!*disk || asprintf(&path, "/sys/block/%s/size", disk) < 0)
		return 0;
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu", &sectors) != 1)
		sectors = 0;
	if (f)
		fclose(f);
	return sectors * 512;
}

/* Read once.  0 or -errno. */
static int read_disk(const char *disk)
{
	_cleanup_free_ void *buf = aligned_alloc(READ_BYTES, READ_BYTES);
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (!buf || asprintf(&path, "/dev/%s", disk) < 0)
		return -ENOMEM;
	/* The kernel has the node made before it has the driver answer. */
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	return fd < 0 || pread(fd, buf, READ_BYTES, 0) < 0 ? -errno : 0;
}

int attach_node_read_main(int argc, char **argv)
{
	const char *disk = argc == 2 ? argv[1] : "";
	int r = read_disk(disk);

	if (r < 0) {
		fprintf(stderr, "rtrs-attach: /dev/%s: %s\n", disk, strerror(-r));
		return EXIT_FAILED;
	}
	r = attach_nbd_set_look(disk);
	if (r < 0)
		fprintf(stderr, "rtrs-attach: /sys/block/%s/queue/io_timeout: %s; the next process "
			"may hold requests up for 30 s\n", disk, strerror(-r));
	return EXIT_DONE;
}
