/* SPDX-License-Identifier: BSD-3-Clause */
/* What an IO may do on an open device.  Pure. */
#ifndef RNBD_CHECK_H
#define RNBD_CHECK_H

#include "rnbd-msg.h"

struct export;

/* May @io be done on @ex by a handle opened as @mode?  0; -EPERM: it would modify what was opened
 * read-only; -EIO: beyond the end.  @io may become a FLUSH: an empty WRITE that asks for one. */
int rnbd_io_check(const struct export *ex, enum rnbd_access_mode mode, struct rnbd_io *io);

#endif
