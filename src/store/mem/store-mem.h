/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as an export, "NAME=mem:SIZE": a disk of zeroes that goes with its server, for trying and
 * measuring without a disk.  Nothing survives, so a FLUSH has nothing to do, and the export is a
 * disk of its own each time: a client that comes back to another one takes it for another disk. */
#ifndef STORE_MEM_H
#define STORE_MEM_H

#include "export.h"

struct store_mem {
	struct export ex;
	uint8_t *base;			/* export_size() bytes; MAP_FAILED: not mapped */
};

static inline struct store_mem *store_mem(const struct export *ex)
{
	return container_of(ex, struct store_mem, ex);
}

#endif
