/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of options, FILE, and the directory beside it: FILE.d/NAME.conf.  A file there is read
 * behind FILE, in the order of the names.  One of them, FILE.d/rtrsctl-saved.conf, belongs to the
 * program, which replaces it as a whole; the others are the administrator's.  Blocks; any
 * thread. */
#ifndef OPT_DIR_H
#define OPT_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Call @read for @file, and for each file of its directory, which need not be there.  All are read,
 * behind a mistake, too.  Returns the first error, as of opt_file_read(), or 0. */
int opt_dir_read(const char *file, int (*read)(void *arg, const char *path, FILE *errors),
		 void *arg, FILE *errors);
/* The name of the program's file beside @file, for the caller to free; NULL: no memory. */
char *opt_dir_saved(const char *file);
/* True if @where, "FILE:LINE", is a line of @saved, the program's file; NULL: no. */
bool opt_dir_is_saved(const char *saved, const char *where);
/* Make @saved, a name of opt_dir_saved(), a file with the @n bytes of @text, so that it lasts
 * (plain_file_save()); NULL: remove it.  0, or -errno with one line in @err, and the file is as
 * before. */
int opt_dir_save(const char *saved, const char *text, size_t n, char *err, size_t len);

#endif
