/* SPDX-License-Identifier: BSD-3-Clause */
/* How the device of a reservation is asked, for store-file-pr*.c. */
#ifndef STORE_FILE_PR_PRIV_H
#define STORE_FILE_PR_PRIV_H

#include <stdint.h>

#include "store-file-pr.h"

/* An ioctl of linux/pr.h on @fd, with the device's status made an errno: 0; -EBUSY, a reservation
 * conflict; -EIO; or the kernel's -errno.  A device that first has something else to tell (a unit
 * attention) is asked again.  Worker; blocks. */
int store_file_pr_ioctl(int fd, unsigned long request, void *arg);

/* Ask for the holder's key and whether @key is registered.  0, -EOPNOTSUPP, -EPERM, or another
 * -errno.  Worker; blocks. */
int store_file_pr_ask(int fd, uint64_t key, struct store_file_pr_view *view);

#endif
