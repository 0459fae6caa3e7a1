/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's NBD client, nbd.ko, by netlink (linux/nbd-netlink.h).  The only user of libnl.
 *
 * A device is known by its index: 0 is /dev/nbd0.  The kernel keeps a text with a device, the
 * backend, shows it in sysfs, and lets nobody change the device who does not have the same text.
 * Main thread; calls block, a change of the size until the kernel has ended the requests of the
 * device. */
#ifndef ATTACH_NBD_H
#define ATTACH_NBD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach-state.h"

struct attach_nbd;

/* The text that the kernel keeps with a device: "rtrs-attach:NAME:EXPORT". */
#define ATTACH_NBD_PREFIX "rtrs-attach:"
#define ATTACH_NBD_TEXT (sizeof(ATTACH_NBD_PREFIX) - 1 + ATTACH_NAME_MAX + RNBD_NAME_MAX)

/* A device to be. */
struct attach_nbd_dev {
	uint64_t size;			/* bytes */
	uint32_t block;			/* bytes: the logical block */
	uint16_t flags;			/* NBD_FLAG_* of the server */
	uint64_t dead_s;		/* requests wait so long for a new socket */
	const char *backend;
	int fd;				/* the client's end: a stream socket */
};

/* Open the kernel's interface, whose module is there.  0, or -errno with @err. */
int attach_nbd_open(struct attach_nbd **out, char *err, size_t len);
void attach_nbd_close(struct attach_nbd *nbd);

/* Make a device.  The index, or -errno with @err. */
int attach_nbd_connect(struct attach_nbd *nbd, const struct attach_nbd_dev *dev, char *err,
		       size_t len);
/* Give device @index, whose socket is dead, the socket dev->fd.  0, or -errno with @err.  If the
 * socket is not dead yet, dev->fd is dropped, with 0. */
int attach_nbd_replace(struct attach_nbd *nbd, int index, const struct attach_nbd_dev *dev,
		       char *err, size_t len);
/* Tell the kernel that device @index, of @backend, has @size bytes.  0, or -errno. */
int attach_nbd_resize(struct attach_nbd *nbd, int index, const char *backend, uint64_t size);
/* End device @index: the kernel says so to the server, and waits for the end of the connection.  0,
 * or -errno with @err. */
int attach_nbd_disconnect(struct attach_nbd *nbd, int index, char *err, size_t len);

/* The index of the device of @name, as attach_nbd_backend() has named it to the kernel, with its
 * export in @export[@len]; -ENODEV: there is none; or -errno: nobody knows. */
int attach_nbd_find(const char *name, char *export, size_t len);
/* Write "NAME:EXPORT" of which @disk, "nbd0", is the device, to @owner.  False: of none. */
bool attach_nbd_owner(const char *disk, char owner[ATTACH_NBD_TEXT]);
/* Have the kernel look often after requests of @disk in flight, to send them again over a new
 * connection.  Waits for requests in flight, if @disk has not been set so yet: not for the process
 * that serves them.  0, if @disk is no device of nbd.ko, too; or -errno. */
int attach_nbd_set_look(const char *disk);
/* The text for nbd.ko with which the device of @name can be found again, also when its state is
 * lost; @export is in it to be read.  For the caller to free; NULL: no memory. */
char *attach_nbd_backend(const char *name, const char *export);

#endif
