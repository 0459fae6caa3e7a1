/* SPDX-License-Identifier: BSD-3-Clause */
/* Who uses a disk of this machine, or a partition of it: file systems, swap, other devices, and
 * processes that have it open.  Main thread; blocks as far as /proc and /sys do. */
#ifndef ATTACH_USERS_H
#define ATTACH_USERS_H

#include <stdio.h>

/* Write a line about each user of @disk, "nbd0", to @out, with two blanks in front; this process is
 * none.  NULL: only count.  Returns their number. */
unsigned attach_users(const char *disk, FILE *out);
/* Keep others from using @disk, which nobody uses, or nobody within @ms: a program may look at a
 * disk for a moment.  A descriptor, until whose close no file system and no other device can have
 * the disk; -EBUSY: somebody uses it; or -errno. */
int attach_users_keep_out(const char *disk, unsigned ms);

#endif
