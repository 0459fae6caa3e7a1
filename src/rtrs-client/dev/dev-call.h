/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of NBD (dev-req.h) for a thread that waits for them.  All block; any thread.  0 or
 * -errno. */
#ifndef DEV_CALL_H
#define DEV_CALL_H

#include "dev.h"

/* Any offset and length inside the device; unaligned edges are read, changed and written under a
 * lock that excludes other writers of that block. */
int dev_call_read(struct dev_handle *h, void *buf, uint32_t len, uint64_t off);
int dev_call_write(struct dev_handle *h, const void *buf, uint32_t len, uint64_t off, bool fua);
/* Make durable all writes that have ended before. */
int dev_call_flush(struct dev_handle *h);
/* Unaligned edges are not discarded: the data there stays. */
int dev_call_discard(struct dev_handle *h, uint32_t len, uint64_t off, bool fua);
/* -EOPNOTSUPP when the server cannot do it as asked. */
int dev_call_zero(struct dev_handle *h, uint32_t len, uint64_t off, bool may_unmap, bool fua);

#endif
