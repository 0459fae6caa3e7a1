/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of keys and certificates, read whole (plain-file.h).  One open() serves the checks and the
 * read, so what was checked is what is used.  Any thread. */
#ifndef FAB_FILE_H
#define FAB_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum fab_file_kind {
	FAB_FILE_PUBLIC,
	FAB_FILE_SECRET,		/* belongs to root or to the reader, who alone may read */
};

/* The bytes of a file. */
struct fab_file {
	char *text;			/* [n], and a zero byte behind; secret.h */
	size_t n;
	size_t room;			/* bytes of @text */
	int64_t changed_s;		/* since 1970: the last change of the file */
};

/* Read @path, a regular file of at most @max bytes, into @file, as a program of the user @reader
 * may use it.  0; or -errno with the reason in @why, without the name of the file, and @file is
 * empty; -EACCES: the rights or the owner of the file, too.  Give @file to
 * fab_file_free(). */
int fab_file_read(const char *path, enum fab_file_kind kind, uid_t reader, size_t max,
		  struct fab_file *file, char *why, size_t len);
/* Wipe and free the bytes of @file. */
void fab_file_free(struct fab_file *file);

#endif
