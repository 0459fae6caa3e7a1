/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver makes a block device of the kernel out of an open export: via-nbd.c.  All calls are of
 * the main thread and may block; the loops of the session serve IO meanwhile.
 *
 * The happy path: probe() says that this kernel can; start() makes the device, or takes the device
 * over that a dead process has left; the program waits for its end, and calls news() when the
 * driver has called attach_wake(), and resize() when the export has grown.  At the end the kernel's
 * device is removed (attach-remove.h), or left to the next process: leave(), then stop().
 *
 * Possible failures: probe() and start() write the reason.  The device may be removed by another
 * process at any time: news() reports it. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>
#include <stddef.h>

struct attach;
struct attach_state;

struct attach_driver {
	const char *name;		/* --via=NAME, and in the state */
	bool has_queues;		/* of the session's loops each serves one */
	/* Has the kernel a device of the NAME and the export of @s?  Loads no module. */
	bool (*has)(const struct attach_state *s);
	/* Can this kernel have such a device?  May load the module.  0, or -errno with @why. */
	int (*probe)(char *why, size_t len);
	/* Have the device of a->state (attach-state.h) served by this process: the one that a dead
	 * process has left, or else a new one.  Set a->found, a->own, a->size.told, and index and
	 * disk of a->state.  0, or -errno with @err. */
	int (*start)(struct attach *a, char *err, size_t len);
	/* attach_wake() was called, by the driver or by another.  0: the device is served; -ENODEV:
	 * it has gone; another -errno: it waits for another process, for a reason that was logged.
	 * NULL: never, before it is removed. */
	int (*news)(struct attach *a);
	/* Say to the kernel that the export has dev_size(a->dev) bytes now.  0; 1: a->helper does
	 * so, because it may have to wait for the device; -EAGAIN: the helper is busy; or another
	 * -errno with @err. */
	int (*resize)(struct attach *a, char *err, size_t len);
	/* Begin no further request, and answer no failure that may pass: the next process does what
	 * fails from now on again, and requests that wait will fail (client_lose_patience()).  Does
	 * not wait for requests. */
	void (*leave)(struct attach *a);
	/* After that: answer the requests in flight, end the work on the device, and free
	 * a->own. */
	void (*stop)(struct attach *a);
};

extern const struct attach_driver attach_via_ublk, attach_via_nbd;

#endif
