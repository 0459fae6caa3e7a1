/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeats of a path, on connection 0 (doc/protocol.md 5).  Control thread. */
#ifndef SRV_HB_H
#define SRV_HB_H

#include <stdbool.h>

struct srv_path;

/* Begin the heartbeat of @path, which is about to serve.  Call before posting receives, which feed
 * the heartbeat. */
void srv_hb_start(struct srv_path *path);
/* Send the heartbeat that is due at path->hb.next_ms.  False: the peer has been silent for too
 * long, and the caller fails @path. */
bool srv_hb_tick(struct srv_path *path);

#endif
