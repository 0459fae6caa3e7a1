/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the links in /dev/rtrs. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "cleanup.h"

#define DIRECTORY "/dev/rtrs"
#define READ_BYTES 4096u		/* the first IO; aligned as a page */

const char *attach_node(const char *name, char buf[ATTACH_NODE_LEN])
{
	snprintf(buf, ATTACH_NODE_LEN, DIRECTORY "/%s", name);
	return buf;
}

/* The kernel has the node made before it answers. */
static int first_read(const char *path)
{
	_cleanup_free_ void *buf = aligned_alloc(READ_BYTES, READ_BYTES);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	n = pread(fd, buf, READ_BYTES, 0);
	return n < 0 ? -errno : 0;
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
	if (r == 0)
		r = first_read(node);
	if (r < 0)
		snprintf(err, len, "%s: %s", node, strerror(-r));
	return r;
}
