/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "plain-file.h"

static int refuse(int rc, const char *why, char *err, size_t len)
{
	snprintf(err, len, "%s", why);
	return rc;
}

int plain_file_open(const char *path, char *err, size_t len)
{
	/* O_NONBLOCK: a FIFO without a writer does not stop open().  For a regular file the flag
	 * means nothing. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return refuse(-errno, strerror(errno), err, len);
	if (fstat(fd, &st) < 0)
		rc = refuse(-errno, strerror(errno), err, len);
	else if (!S_ISREG(st.st_mode))
		rc = refuse(-EINVAL, "expected a file", err, len);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

ssize_t plain_file_read(int fd, void *buf, size_t max, char *err, size_t len)
{
	ssize_t more = 1;
	size_t n = 0;

	while (more > 0 && n <= max) {
		more = read(fd, (char *)buf + n, max + 1 - n);
		n += more > 0 ? (size_t)more : 0;
	}
	if (more < 0)
		return refuse(-errno, strerror(errno), err, len);
	if (n <= max)
		return (ssize_t)n;
	snprintf(err, len, "expected at most %zu bytes", max);
	return -EFBIG;
}

ssize_t plain_file_load(const char *path, size_t max, char **text, char *err, size_t len)
{
	_cleanup_close_ int fd = plain_file_open(path, err, len);
	ssize_t n;

	*text = NULL;
	if (fd < 0)
		return fd;
	/* Memory that is not written costs nothing, and a key is not copied when a buffer grows. */
	*text = malloc(max + 2);
	if (!*text)
		return refuse(-ENOMEM, "out of memory", err, len);
	n = plain_file_read(fd, *text, max, err, len);
	if (n >= 0) {
		(*text)[n] = '\0';
		return n;
	}
	free(*text);
	*text = NULL;
	return n;
}
