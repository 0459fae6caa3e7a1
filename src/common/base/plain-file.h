/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that an administrator names: configurations, keys, certificates.  Only regular files are
 * read, and only up to a bound: a FIFO would stop the reader for ever, and a device has no end.
 * Any thread.  A file on a network file system that does not answer still blocks the caller. */
#ifndef BASE_PLAIN_FILE_H
#define BASE_PLAIN_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Open @path for reading.  The descriptor, which the caller closes; or -errno with the reason in
 * @err, of @len bytes: -EINVAL if @path is no regular file. */
int plain_file_open(const char *path, char *err, size_t len);
/* Read all of @fd, at most @max bytes, into @buf, which has room for @max + 1.  The number of
 * bytes; or -errno with the reason in @err: -EFBIG if there are more. */
ssize_t plain_file_read(int fd, void *buf, size_t max, char *err, size_t len);
/* The same for the file @path: *@text is for the caller to free, with a zero byte behind all. */
ssize_t plain_file_load(const char *path, size_t max, char **text, char *err, size_t len);

#endif
