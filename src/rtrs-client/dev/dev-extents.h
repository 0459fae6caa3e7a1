/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of a device hold data, as far as the server tells it (doc/decisions.md D16). */
#ifndef DEV_EXTENTS_H
#define DEV_EXTENTS_H

#include "dev.h"
#include "rnbd-extents.h"

/* The server, as it is now, tells holes from data; else all is data. */
bool dev_extents_known(const struct dev *dev);

/* Ask what @len bytes from @off on are, of any alignment, inside the device, and call @fn for each
 * extent in turn, in the order of their places.  The first one begins at @off or in front of it,
 * they touch each other, and need not reach the end of what was asked for; with @one there is only
 * one.  Blocks; any thread.  0; what @fn returned, if that was not 0; -EBADMSG: the server's answer
 * is none; or as dev_io_read(). */
int dev_extents(struct dev *dev, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg);

#endif
