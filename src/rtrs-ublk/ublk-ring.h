/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of one queue to the kernel's driver (ublk-abi.h, REQUESTS), and their completions.
 * All calls on one thread, which the kernel takes for the owner of the queue from the first
 * ublk_ring_submit() on.  No function blocks.
 *
 * ublk-ring.c has an io_uring; tests have a kernel of their own. */
#ifndef UBLK_RING_H
#define UBLK_RING_H

#include <stdbool.h>

#include "ublk-abi.h"

struct ublk_ring;

/* Make the ring of queue @queue, with @depth tags, of the character device @fd, which lives longer.
 * 0 or -errno. */
int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth);
/* Free @r; NULL: do nothing.  Tags that are the kernel's come back to nobody: the next owner of the
 * device fetches them. */
void ublk_ring_destroy(struct ublk_ring *r);
/* A descriptor that is readable when ublk_ring_submit() would find completions. */
int ublk_ring_fd(const struct ublk_ring *r);

/* Give @tag with its buffer to the kernel, for the first time. */
void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag, void *buf);
/* Answer the request of @tag with @result, ublk_abi_io.result, and give @tag back. */
void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result, void *buf);
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

#endif
