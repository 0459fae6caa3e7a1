/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a device that hold data, according to the server (doc/decisions.md D16). */
#ifndef DEV_EXTENTS_H
#define DEV_EXTENTS_H

#include "dev.h"
#include "rnbd-extents.h"

/* True if the present server tells holes from data; else the whole device counts as data.  Any
 * thread. */
bool dev_extents_known(const struct dev *dev);

/* Ask for the extents of @len bytes from @off on, of any alignment, inside the device.  @fn gets
 * each extent, in the order of places.  The first extent begins at @off or before, each next extent
 * follows without a gap, and the last may end before the @len bytes do.  @one: ask for one extent.
 * Blocks; any thread.  0; the result of @fn, if not 0; -EBADMSG: the answer is invalid; or an error
 * as of dev_io_read(). */
int dev_extents(struct dev *dev, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg);

#endif
