/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys and certificates of programs, for the health of these.  Main thread. */
#ifndef CHECK_KEYS_H
#define CHECK_KEYS_H

#include <sys/types.h>

#include "check.h"

#define CHECK_CERTS_DAYS 14		/* a certificate that ends sooner is told */

/* Read the files of keys that @answer, to "show" of a program of @user, names, and note in @check
 * what is wrong there: the next reload or start of the program would fail.  A file that this user
 * may not read, as that of another user, is not judged.  Note a certificate that ends soon or has
 * ended, too. */
void check_keys(struct check *check, const json_t *answer, uid_t user);

#endif
