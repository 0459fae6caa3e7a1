/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of pre-shared keys: lines NAME:HEX, which psktool writes, too, and which nbdkit and QEMU
 * read; comments are as GnuTLS takes them.  A file that others than its owner may read, or that
 * another user owns, is refused.  Pure but for the file; any thread. */
#ifndef PSK_H
#define PSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "plain-file.h"

#define PSK_NAME_MAX 128		/* bytes of a name */
#define PSK_KEY_MIN 16u		/* bytes of a key */
#define PSK_KEY_MAX 64u
#define PSK_KEY_NEW 32u		/* of a new key: 256 bits */
#define PSK_LINE_MAX (PSK_NAME_MAX + 1 + 2 * PSK_KEY_MAX + 2)

/* ---- files of keys and certificates, and the names in them ----
 *
 * Files are read whole (plain-file.h).  One open() serves the checks and the read, so what was
 * checked is what is used. */

enum secret_file_kind {
	SECRET_FILE_PUBLIC,
	/* belongs to root or to the reader, who alone may read; or is a credential of a unit
	 * (LoadCredential=) */
	SECRET_FILE_SECRET,
};

/* Read @path, a regular file of at most @max bytes, into @file, as a program of the user @reader
 * may use it.  0; or -errno with the reason in @why, without the name of the file, and @file is
 * empty; -EACCES: the rights or the owner of the file, too.  Give @file to
 * plain_file_free(). */
int secret_file_read(const char *path, enum secret_file_kind kind, uid_t reader, size_t max,
		     struct plain_file *file, char *why, size_t len);

/* Write to @buf the identity that a key called @name proves: "psk:", and @name up to its first '/',
 * behind which a label tells several keys of one identity apart.  Returns @buf. */
const char *secret_name_identity(const char *name, char *buf, size_t len);

/* NULL; or what is expected of a name: @name cannot be that of a key in a file, and that of a
 * certificate is none. */
const char *secret_name_fault(const char *name);

/* ---- keys ---- */

struct psk {
	uint64_t serial;		/* of the key in this process, not 0 and never used again */
	int64_t since_s;		/* since 1970: the last change of the file that brought the
					 * key */
	char name[PSK_NAME_MAX + 1];
	uint8_t key[PSK_KEY_MAX];
	unsigned len;			/* of @key */
};

struct psks {
	struct psk *all;		/* [n]; secret_alloc() */
	unsigned n;
	size_t room;			/* bytes of @all */
};

/* Read the file @path, which has one key or more, into @psks, as a program of the user @reader may
 * use it.  0; or -errno with the reason in @err, without the name of the file, and
 * no keys.  Give @psks to psk_free(). */
int psk_read(const char *path, uid_t reader, struct psks *psks, char *err, size_t len);
/* Give keys of @now that @before has, too, the same bytes under the same name, their serial and
 * age. */
void psk_adopt(struct psks *now, const struct psks *before);
/* Copy to @both the keys of @now that @file has, too, the same bytes under the same name.  0, or
 * -ENOMEM and no keys.  Give @both to psk_free(). */
int psk_common(const struct psks *now, const struct psks *file, struct psks *both);
/* True if @a and @b are the same bytes under the same name. */
bool psk_same(const struct psk *a, const struct psk *b);
/* The key with @serial; NULL: none. */
const struct psk *psk_by_serial(const struct psks *psks, uint64_t serial);
/* Wipe and free the keys. */
void psk_free(struct psks *psks);
/* The key of the @len bytes @name; NULL: none. */
const struct psk *psk_find(const struct psks *psks, const void *name, size_t len);

/* Write to @line a line with @key for @name, a good name.  The caller wipes @line and @key. */
void psk_line(const char *name, const uint8_t key[PSK_KEY_NEW], char line[PSK_LINE_MAX]);

#endif
