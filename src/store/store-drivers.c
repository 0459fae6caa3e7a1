/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of drivers, which is constant. */
#include <config.h>

#include "export.h"
#include "store-drivers.h"

#define DECLARE(name) extern const struct store_driver store_##name##_driver;
STORE_DRIVERS(DECLARE)

#define ROW(name) &store_##name##_driver,
const struct store_driver *const store_drivers[] = { STORE_DRIVERS(ROW) };
