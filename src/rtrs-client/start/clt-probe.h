/* SPDX-License-Identifier: BSD-3-Clause */
/* Tries the session of a front end out.  A mistake in the server's address, the export's name or
 * control= is found here, while a mistake is still an exit status. */
#ifndef CLT_PROBE_H
#define CLT_PROBE_H

#include "clt-start.h"

/* The time for RDMA to reach the server, with transport=auto.  RDMA itself needs a minute to give
 * up on a silent address; tcp is tried sooner. */
#define CLT_PROBE_RDMA_MS 5000

/* Connect, open the export in the way of clients, if an export is configured, disconnect, and bind
 * the control socket.  With transport=auto this call chooses for all paths without a named
 * transport: "rdma" if any such path works over "rdma", else "tcp".  The log says why.  Main
 * thread, before a daemon forks; blocks.  0, or -errno with the reason in @err; -EMFILE, too, if
 * descriptors suffice for the session and not for a client. */
int clt_probe(struct clt_start *start, char err[CLT_FRONT_ERR]);

#endif
