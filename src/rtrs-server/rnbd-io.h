/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD's IO message to an operation of the storage: device, mode and range checks, private memory
 * (doc/protocol.md 8.4, 8.5; doc/decisions.md D8).  Thread of the request's connection. */
#ifndef RNBD_IO_H
#define RNBD_IO_H

struct srv_req;

/* Ends in srv_io_finish(). */
void rnbd_io_start(struct srv_req *req);

#endif
