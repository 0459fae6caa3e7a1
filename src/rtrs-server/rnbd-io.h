/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD's IO message to an operation of the storage: device, mode and range checks, private memory
 * (protocol.md 8.4, 8.5; design.md D8).  Thread of the request's connection. */
#ifndef RNBD_IO_H
#define RNBD_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "rnbd-dev.h"
#include "rnbd-msg.h"

struct export;
struct srv_req;

/* Ends in srv_io_finish(). */
void rnbd_io_start(struct srv_req *req);

/* May @io be done on @ex by a handle opened as @mode?  Pure.  0; -EPERM: it would modify what was opened
 * read-only; -EIO: beyond the end.  @io may become a FLUSH: an empty WRITE that asks for one. */
int rnbd_io_check(const struct export *ex, enum rnbd_access_mode mode, struct rnbd_io *io);

#endif
