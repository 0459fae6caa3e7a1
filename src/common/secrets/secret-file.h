/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of keys and certificates, read whole (plain-file.h), and the names in them.  One open()
 * serves the checks and the read, so what was checked is what is used.  Any thread.  Short: three
 * calls. */
#ifndef SECRET_FILE_H
#define SECRET_FILE_H

#include <stddef.h>

#include "plain-file.h"

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

#endif
