/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for keys, which is not in a core file, and is wiped before the memory is given back.  Any
 * thread.  Short: two calls. */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stddef.h>

/* @len bytes, at least 1, all 0; NULL with errno.  Give them to secret_free(). */
void *secret_alloc(size_t len);
/* Wipe and give back the @len bytes of @secret, which is as long as asked for; NULL: do nothing. */
void secret_free(void *secret, size_t len);
/* Have the kernel write no core file of this process: keys that a library keeps are anywhere in the
 * heap.  The soft limit of core files becomes one byte, whatever it was; the hard limit stays, so
 * "prlimit --pid PID --core=unlimited" brings core files back, keys included. */
void secret_no_core_file(void);

#endif
