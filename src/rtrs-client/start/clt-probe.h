/* SPDX-License-Identifier: BSD-3-Clause */
/* Tries a front end's session out: all that can be wrong with the server's address, the export's
 * name or control= is found while it is still an exit status. */
#ifndef CLT_PROBE_H
#define CLT_PROBE_H

#include "clt-start.h"

/* RDMA's own way to say that nobody is there takes a minute; who leaves the choice to us does not
 * wait for that before tcp is tried. */
#define CLT_PROBE_RDMA_MS 5000

/* Connect, open the export as clients will when one is configured, disconnect.  With
 * transport=auto this decides: the paths that name no transport are over "rdma" where one of them
 * works that way, else over "tcp", and the log says why.  Main thread, before a daemon forks;
 * blocks.  0, or -errno with the reason in @err; -EMFILE, too, when there are descriptors for the
 * session and none for a client.  At last the control socket gets its name. */
int clt_probe(struct clt_start *start, char err[CLT_FRONT_ERR]);

#endif
