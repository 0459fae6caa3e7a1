/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of those who have keys or certificates.  Pure. */
#ifndef SECRET_NAME_H
#define SECRET_NAME_H

#include <stddef.h>

/* Write to @buf the identity that a key called @name proves: "psk:", and @name up to its first '/',
 * behind which a label tells several keys of one identity apart.  Returns @buf. */
const char *secret_name_identity(const char *name, char *buf, size_t len);

/* NULL; or what is expected of a name: @name cannot be that of a key in a file, and that of a
 * certificate is none. */
const char *secret_name_fault(const char *name);

#endif
