/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a device that hold data, according to the server (doc/decisions.md D16). */
#ifndef DEV_EXTENTS_H
#define DEV_EXTENTS_H

#include "dev.h"
#include "rnbd-ext.h"

/* True if the present server tells holes from data; else the whole device counts as data.  Any
 * thread. */
bool dev_extents_known(const struct dev *dev);

/* A question that is under way; embedded by its owner, who steps @io.clt (clt_op_step()). */
struct dev_extents_ask {
	struct dev_io io;
	void *answer;			/* the caller's memory, RNBD_EXTENTS_ROOM bytes */
	/* private */
	uint64_t start;			/* of what is asked about, in whole sectors */
	uint32_t room;
};

/* Begin to ask what @len bytes from @off on are, of any alignment, inside the device; about one
 * extent alone with @one.  @fn as clt_op_start().  Does not block. */
void dev_extents_start(struct dev_extents_ask *ask, struct dev_handle *h, uint64_t len,
		       uint64_t off, bool one, void (*fn)(struct clt_waiter *w));
/* The operation has ended: call @fn for each extent in turn, in the order of their places.  The
 * first one begins at @off or in front of it, they touch each other, and need not reach the end of
 * what was asked for.  0; what @fn returned, if that was not 0; -EBADMSG: the server's answer is
 * none; or as dev_io_end(). */
int dev_extents_end(struct dev_extents_ask *ask,
		    int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent),
		    void *arg);
/* Both, with a wait between them.  Blocks; any thread. */
int dev_extents(struct dev_handle *h, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg);

#endif
