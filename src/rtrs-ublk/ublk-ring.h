/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of one queue to the kernel's driver (ublk-abi.h, REQUESTS), their completions, and
 * the memory that the data of its requests is in.  All calls on one thread, which the kernel takes
 * for the owner of the queue from the first ublk_ring_submit() on.  No function blocks.
 *
 * TWO ENDS.  A ring whose disk is gone is destroyed.  A ring whose disk lives is left: it stays
 * until the process ends, because the kernel loses requests when a ring is closed by a thread that
 * lives on (doc/decisions.md D28).
 *
 * ublk-ring.c has an io_uring; tests have a kernel of their own. */
#ifndef UBLK_RING_H
#define UBLK_RING_H

#include <stdbool.h>

#include "ublk-abi.h"

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
