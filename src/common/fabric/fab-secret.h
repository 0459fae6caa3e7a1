/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for keys, which is not in a core file, and is wiped before the memory is given back.  The
 * rest of the process stays in a core file, so a crash can be looked into.  Any thread. */
#ifndef FAB_SECRET_H
#define FAB_SECRET_H

#include <stddef.h>

/* @len bytes, at least 1, all 0; NULL with errno.  Give them to fab_secret_free(). */
void *fab_secret_alloc(size_t len);
/* Wipe and give back the @len bytes of @secret, which is as long as asked for; NULL: do nothing. */
void fab_secret_free(void *secret, size_t len);

#endif
