/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's driver (ublk-abi.h): commands for it, the nodes of its devices, and the rings of
 * their queues.  ublk-kernel.c speaks to the kernel; tests have a kernel of their own. */
#ifndef UBLK_KERNEL_H
#define UBLK_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ublk-abi.h"

/* ---- control (ublk-abi.h, CONTROL) ----
 *
 * One thread at a time, no loop's: each call blocks until the kernel has carried the command out.
 * All return 0 or -errno. */

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

/* ---- the ring of a queue (ublk-abi.h, REQUESTS) ----
 *
 * The commands of one queue, their completions, and the memory that the data of its requests is in.
 * All calls on one thread, which the kernel takes for the owner of the queue from the first
 * ublk_ring_submit() on.  No function blocks.
 *
 * TWO ENDS.  A ring whose disk is gone is destroyed.  A ring whose disk lives is left: it stays
 * until the process ends, because the kernel loses requests when a ring is closed by a thread that
 * lives on (doc/decisions.md D28). */

struct ublk_ring;

/* Make the ring of queue @queue, with @depth tags of @io_bytes of memory each, whole pages, of the
 * character device @fd, which is open for as long.  0 or -errno. */
int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth,
		     uint32_t io_bytes);
/* Free @r, to whose tags the kernel hands no requests: the disk is not live, or has no tag any
 * more.  NULL: do nothing. */
void ublk_ring_destroy(struct ublk_ring *r);
/* Leave @r to the end of the process, with the tags and requests that it has, and never use it
 * again.  From then on the next owner of the device can fetch them. */
void ublk_ring_leave(struct ublk_ring *r);
/* A descriptor that is readable when ublk_ring_submit() would find completions. */
int ublk_ring_fd(const struct ublk_ring *r);

/* Give @tag to the kernel, for the first time. */
void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag);
/* Answer the request of @tag with @result, ublk_abi_io.result, and give @tag back. */
void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result);
/* Send what was given since the last call, and gather completions.  0 or -errno: of the ring, which
 * is of no use any more. */
int ublk_ring_submit(struct ublk_ring *r);
/* True if ublk_ring_next() has a completion. */
bool ublk_ring_ready(const struct ublk_ring *r);
/* Take the next completion.  0: the kernel has a request for *@tag; UBLK_IO_ABORTED: *@tag is over;
 * another -errno: the command was wrong. */
bool ublk_ring_next(struct ublk_ring *r, uint16_t *tag, int *result);
/* The request of @tag, which the kernel has completed.  Valid until the commit. */
const struct ublk_abi_desc *ublk_ring_desc(const struct ublk_ring *r, uint16_t tag);
/* Its data: the memory of @tag, in which the kernel has put that of a write. */
void *ublk_ring_buf(const struct ublk_ring *r, uint16_t tag);

#endif
