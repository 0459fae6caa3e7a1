/* SPDX-License-Identifier: BSD-3-Clause */
/* Between export.c and export-probe.c. */
#ifndef EXPORT_PRIV_H
#define EXPORT_PRIV_H

#include <stddef.h>

#include "export.h"

/* Open @ex->path as its flags say and learn size, identity and geometry.  0, or -errno with one line
 * in @err; what was opened is closed by the caller. */
int export_probe(struct export *ex, char *err, size_t errlen);

/* Geometry of the opened @ex, by what it is. */
void export_geometry_file(struct export *ex, uint32_t st_blksize);
void export_geometry_block(struct export *ex);

#endif
