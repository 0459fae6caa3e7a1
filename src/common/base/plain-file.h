/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that an administrator names: configurations, keys, certificates, metrics.  Only regular
 * files are read, and only up to a bound: a FIFO would stop the reader for ever, and a device has
 * no end.  A file system that does not answer, as that of a dead server of NFS, is left alone after
 * a while: the thread that waits for it stays behind until it answers.  Who reads does not wait
 * when the end of the program has begun (process.h); who writes or removes waits then, too.  Any
 * thread that may block. */
#ifndef BASE_PLAIN_FILE_H
#define BASE_PLAIN_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* How long a file system has for one file or directory; and while another one has not answered. */
#define PLAIN_FILE_MS 10000u
#define PLAIN_FILE_AGAIN_MS 1000u
/* The most threads that stay behind. */
#define PLAIN_FILE_LEFT_MAX 64u

/* The bytes of a file.  All 0: none. */
struct plain_file {
	char *text;			/* [n], and a zero byte behind; secret_alloc() */
	size_t n;
	size_t room;			/* bytes of @text */
	struct stat st;			/* of the file that was read, when it was opened */
};

/* Read all of @path, at most @max bytes, into @file, for plain_file_free().  0; or -errno with the
 * reason in @err, without the name of the file, and @file is empty: -EINVAL if @path is no regular
 * file, -EFBIG if there is more, -EAGAIN if it grows each time that it is read, -ETIMEDOUT if its
 * file system does not answer, -EBUSY if too many do not, -ECANCELED if the end of the program has
 * begun. */
int plain_file_load(const char *path, size_t max, struct plain_file *file, char *err, size_t len);
/* Wipe and free the bytes of @file. */
void plain_file_free(struct plain_file *file);
/* The entries of @dir for which @wants is true, as scandir(), by the bytes of their names.  Their
 * number, with *@entries and each of them for the caller to free; or -errno as above. */
int plain_file_list(const char *dir, int (*wants)(const struct dirent *entry),
		    struct dirent ***entries, char *err, size_t len);
/* Make @path a file with the @n bytes of @text, so that readers find this file or the one before:
 * the bytes are written to @path.tmp, which is renamed.  0; or -errno as above, and after
 * -ETIMEDOUT the file may come as soon as its file system answers. */
int plain_file_write(const char *path, const char *text, size_t n, char *err, size_t len);
/* Likewise, and the file lasts: file and directory are on stable storage at the end.  The directory
 * of @path is made, if it alone is missing.  @text NULL: remove @path, if it is there. */
int plain_file_save(const char *path, const char *text, size_t n, char *err, size_t len);
/* Remove @path.  0, if there is no file, too; or -errno as above. */
int plain_file_remove(const char *path, char *err, size_t len);

/* A file that a program writes again and again where an administrator said, who may have named
 * another one by mistake: what is of somebody else is neither replaced nor removed. */
struct plain_file_own {
	const char *path;
	const char *begin;		/* constant: each text begins so */
	dev_t dev;			/* the last one written; @ino 0: none, or not known */
	ino_t ino;
};

/* plain_file_write(), where nothing is, or an empty file, or one that begins as its texts do; else
 * -EEXIST. */
int plain_file_own_write(struct plain_file_own *own, const char *text, size_t n, char *err,
			 size_t len);
/* plain_file_remove(), but another file stays, and is no failure. */
int plain_file_own_remove(const struct plain_file_own *own, char *err, size_t len);

#endif
