/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD as the protocol above RTRS (doc/protocol.md 8). */
#ifndef SRV_RNBD_H
#define SRV_RNBD_H

#include "srv-ops.h"

struct exports;
struct srv;

extern const struct srv_ops srv_rnbd_ops;

/* ---- control thread ---- */

/* Begin RNBD with @exports on @srv, whose threads are known, and set srv->user.  0 or -ENOMEM;
 * srv_rnbd_destroy() follows in both cases, when no session is left. */
int srv_rnbd_create(struct srv *srv, struct exports *exports);
/* Free RNBD's part of @srv. */
void srv_rnbd_destroy(struct srv *srv);

#endif
