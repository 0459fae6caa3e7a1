/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of keys of servers, for the health of these.  Main thread. */
#ifndef CHECK_KEYS_H
#define CHECK_KEYS_H

#include "check.h"

/* Read the file of keys that @answer, to "show", names, and note in @check what is wrong there: the
 * next reload or start of the server would fail.  A file that this user may not read, as that of
 * another user, is not judged. */
void check_keys(struct check *check, const json_t *answer);

#endif
