/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of NBD (dev-req.h) for a thread that waits until the end.  Any thread; each function
 * blocks, and returns 0 or -errno. */
#ifndef DEV_CALL_H
#define DEV_CALL_H

#include "dev.h"

/* Read @len bytes at @off, both any inside the device. */
int dev_call_read(struct dev_handle *h, void *buf, uint32_t len, uint64_t off);
/* Write @len bytes at @off, both any inside the device.  Blocks of unaligned edges are read,
 * changed and written under a lock that excludes their other writers.  @fua: durable at the
 * return. */
int dev_call_write(struct dev_handle *h, const void *buf, uint32_t len, uint64_t off, bool fua);
/* Make durable all writes that have ended before. */
int dev_call_flush(struct dev_handle *h);
/* Discard whole blocks; the data of unaligned edges stays.  -EOPNOTSUPP: the server takes no
 * DISCARD. */
int dev_call_discard(struct dev_handle *h, uint32_t len, uint64_t off, bool fua);
/* Write zeroes.  -EOPNOTSUPP: the server cannot write zeroes as asked. */
int dev_call_zero(struct dev_handle *h, uint32_t len, uint64_t off, bool may_unmap, bool fua);

#endif
