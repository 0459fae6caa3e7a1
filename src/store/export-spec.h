/* SPDX-License-Identifier: BSD-3-Clause */
/* An export as a line of text: "NAME=TARGET[,readonly][,FLAG...]", with the flags of the driver of
 * TARGET (struct store_driver).  A ',' or '\' in TARGET is written "\,", "\\". */
#ifndef EXPORT_SPEC_H
#define EXPORT_SPEC_H

#include "export.h"

/* Make the export that @spec describes, without opening anything.  NULL with -errno in *@rc and one
 * line in @err: bad syntax; a name that is empty, too long, or has ".."; an unknown flag.  Any
 * thread. */
struct export *export_spec_parse(const char *spec, int *rc, char *err, size_t errlen);
/* Close @ex, which is a name of no store, and free it.  Any thread; may block. */
void export_spec_free(struct export *ex);

#endif
