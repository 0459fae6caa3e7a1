/* SPDX-License-Identifier: BSD-3-Clause */
/* The drivers of this server, and the IO of each.  A file apart, because the simulation has tables
 * of its own. */
#include <config.h>

#include "export.h"
#include "store-driver.h"

#define DECLARE(name)                                                                              \
	extern const struct store_driver store_##name##_driver;                                    \
	extern const struct store_io_ops store_##name##_io_ops;
STORE_DRIVERS(DECLARE)

#define DRIVER(name) &store_##name##_driver,
const struct store_driver *const store_drivers[] = { STORE_DRIVERS(DRIVER) };

#define IO_OPS(name) &store_##name##_io_ops,
const struct store_io_ops *const store_drivers_io[] = { STORE_DRIVERS(IO_OPS) };
