/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver makes a block device of the kernel out of an open export: via-ublk.c, via-nbd.c.  All
 * calls are of the main thread and may block; the loops of the session serve IO meanwhile.
 *
 * The happy path: probe() says that this kernel can; start() makes the device, or takes the device
 * over that a dead process has left; the program waits for its end, and calls news() when the
 * driver has called attach_wake(), and resize() when the export has grown.  At the end the kernel's
 * device is removed, or left to the next process: leave(), then stop().
 *
 * Possible failures: probe() and start() write the reason.  The device may be removed by another
 * process at any time: news() reports it. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach-state.h"

struct attach;

struct attach_driver {
	const char *name;		/* --via=NAME, and in the state */
	bool has_queues;		/* of the session's loops each serves one */
	/* Set s->disk to the disk that the kernel has for the name of @s, and an empty
	 * s->export_name to its export, if the kernel knows.  Its index; -ENODEV: the kernel has
	 * none; -EEXIST: the disk is of another export than @s; or another -errno.  Loads no
	 * module. */
	int (*find)(struct attach_state *s);
	/* See driver_remove(). */
	int (*remove)(const struct attach_state *s, char *err, size_t len);
	/* Can this kernel have such a device?  May load the module.  0, or -errno with @why. */
	int (*probe)(char *why, size_t len);
	/* Have the device of a->state (attach-state.h) served by this process: the one that a dead
	 * process has left, or else a new one.  Set a->found, a->own, a->size.told, and index and
	 * disk of a->state.  0, or -errno with @err. */
	int (*start)(struct attach *a, char *err, size_t len);
	/* attach_wake() was called, by the driver or by another.  0: the device is served; -ENODEV:
	 * it has gone; another -errno: it waits for another process, for a reason that was
	 * logged. */
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

/* In the order in which they are tried. */
enum attach_via { ATTACH_VIA_AUTO, ATTACH_VIA_UBLK, ATTACH_VIA_NBD, ATTACH_VIAS };

extern const struct attach_driver attach_via_ublk, attach_via_nbd;
/* NULL: the program was built without it. */
extern const struct attach_driver *const attach_drivers[ATTACH_VIAS];

/* ---- driver.c: a device in the kernel, whoever serves it ---- */

/* Set s->index and s->disk to the disk that the kernel has for the name of @s, or to none: a state
 * may be older than the disk, and the disk of that name may be another program's by now.  If the
 * state was lost, so that s->driver is empty, set that, too.  0; -ENODEV: the kernel has none;
 * -EEXIST: it has, of another export than @s; or another -errno, with @s as it was. */
int driver_find(struct attach_state *s);
/* Have the kernel end the device of @s.  What waits for the device fails; the caller has flushed
 * it, or does not care.  0, also if the device has gone already; or -errno with @err. */
int driver_remove(const struct attach_state *s, char *err, size_t len);
/* Remove what is left of a device that has gone: its link in /dev/rtrs, its session, and its
 * state. */
void driver_forget(const struct attach_state *s);

/* The name of the device for users: "/dev/rtrs/NAME", in @buf.  Returns @buf. */
#define ATTACH_NODE_LEN (sizeof(ATTACH_LINKS "/") + ATTACH_NAME_MAX)
const char *driver_node(const char *name, char buf[ATTACH_NODE_LEN]);
/* Make driver_node() of @s a link to the device.  0, or -errno with @err. */
int driver_node_make(const struct attach_state *s, char *err, size_t len);
/* The bytes that the kernel says @disk, "nbd0", has; 0: there is no such disk. */
uint64_t driver_node_size(const char *disk);

#endif
