/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands for the kernel's driver (ublk-abi.h, CONTROL), and the nodes of its devices.  One thread
 * at a time, no loop's: each call blocks until the kernel has carried the command out.  All return
 * 0 or -errno.
 *
 * ublk-ctl.c speaks to the kernel; tests have a kernel of their own. */
#ifndef UBLK_CTL_H
#define UBLK_CTL_H

#include <stddef.h>
#include <stdint.h>

#include "ublk-abi.h"

struct ublk_ctl;

/* Open the driver, and ask for its features, UBLK_ABI_* in *@features.  -errno has the reason, and
 * what to do, in @why. */
int ublk_ctl_open(struct ublk_ctl **out, uint64_t *features, char *why, size_t len);
/* Free @ctl; NULL: do nothing. */
void ublk_ctl_close(struct ublk_ctl *ctl);

/* Make the device @dev, whose id, limits and flags the kernel completes. */
int ublk_ctl_add(struct ublk_ctl *ctl, struct ublk_abi_dev *dev);
/* Get device @id. */
int ublk_ctl_get(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_dev *dev);
/* Have device @id forgotten as soon as nobody has it open, us included.  Returns at once. */
int ublk_ctl_del(struct ublk_ctl *ctl, uint32_t id);
/* Describe the disk of @id, which is not started. */
int ublk_ctl_set_params(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_params *params);
int ublk_ctl_get_params(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_params *params);
/* Make the disk of @id, once this process has given the kernel all tags.  Reads of the disk, for
 * its partitions, are part of it. */
int ublk_ctl_start(struct ublk_ctl *ctl, uint32_t id);
/* End the disk of @id: what its page cache holds is written before, all requests are answered, and
 * all tags come back. */
int ublk_ctl_stop(struct ublk_ctl *ctl, uint32_t id);
/* Begin to take @id over.  -EBUSY: its process, or the ring of that one, is still there. */
int ublk_ctl_recover(struct ublk_ctl *ctl, uint32_t id);
/* Let requests of @id go on, once this process has given the kernel all tags. */
int ublk_ctl_recovered(struct ublk_ctl *ctl, uint32_t id);
/* Change the size of the disk of @id; UBLK_ABI_RESIZE. */
int ublk_ctl_resize(struct ublk_ctl *ctl, uint32_t id, uint64_t sectors);

/* Open the character device of @id.  Returns the descriptor, which the caller closes, or -errno. */
int ublk_ctl_open_char(uint32_t id);
/* Set *@id to the number of the first device from *@id on.  -ENODEV: there is none. */
int ublk_ctl_next(uint32_t *id);

#endif
