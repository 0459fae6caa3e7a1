/* SPDX-License-Identifier: BSD-3-Clause */
/* The drivers of this server.  To add one: a folder with its store_NAME_driver and its
 * store_NAME_io_ops, a line in STORE_DRIVERS(), and its folder in local.mk. */
#ifndef STORE_DRIVERS_H
#define STORE_DRIVERS_H

struct store_driver;
struct store_io_ops;

#ifdef HAVE_RBD
#define STORE_DRIVER_RBD(X) X(rbd)
#else
#define STORE_DRIVER_RBD(X)
#endif

/* The driver of paths is the last one. */
#define STORE_DRIVERS(X) \
	X(mem)                                                                                     \
	STORE_DRIVER_RBD(X)                                                                        \
	X(file)

/* The drivers in the order of STORE_DRIVERS(), and the IO of each.  The simulation has tables of
 * its own. */
extern const struct store_driver *const store_drivers[];
extern const struct store_io_ops *const store_drivers_io[];

#endif
