/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of the drivers' IO, which is constant. */
#include <config.h>

#include "store-driver.h"
#include "store-drivers.h"

#define DECLARE(name) extern const struct store_io_ops store_##name##_io_ops;
STORE_DRIVERS(DECLARE)

#define ROW(name) &store_##name##_io_ops,
const struct store_io_ops *const store_drivers_io[] = { STORE_DRIVERS(ROW) };
