/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver makes a block device of the kernel out of an open export: via-nbd.c.  All calls are of
 * the main thread and may block; the loops of the session serve IO meanwhile.
 *
 * The happy path: probe() says that this kernel can; start() makes the device, or takes the device
 * over that a dead process has left; the program waits for its end, and calls news() when the
 * driver has called attach_wake(), and resize() when the export has grown; stop() ends the device,
 * or leaves it to the next process.
 *
 * Possible failures: probe() and start() write the reason; stop() with ATTACH_DETACH may fail, and
 * the device goes on then. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>

struct attach;

enum attach_stop {
	ATTACH_DETACH,			/* all requests are answered, then the device is gone */
	ATTACH_FORCE,			/* requests fail, if they must, and the device is gone */
	ATTACH_LEAVE,			/* the device stays, and its requests wait for the next
					 * process */
};

struct attach_driver {
	const char *name;		/* --via=NAME, and in the state */
	/* Can this kernel have such a device?  May load the module.  0, or -errno with @why. */
	int (*probe)(char *why, size_t len);
	/* Have the device of a->state (attach-state.h) served by this process: that of index
	 * a->state.index, if the kernel still has it and it waits for a server, or a new one.  Sets
	 * a->state.index and a->state.disk, and a->own.  0, or -errno with @err. */
	int (*start)(struct attach *a, char *err, size_t len);
	/* attach_wake() was called.  NULL: never. */
	void (*news)(struct attach *a);
	/* Tell the kernel that the export has dev_size(a->dev) bytes now.  0, or -errno with
	 * @err. */
	int (*resize)(struct attach *a, char *err, size_t len);
	/* End the work on the device, and free a->own.  0, or -errno with @err: @how was
	 * ATTACH_DETACH or ATTACH_FORCE, and the device goes on. */
	int (*stop)(struct attach *a, enum attach_stop how, char *err, size_t len);
};

extern const struct attach_driver attach_via_nbd;

#endif
