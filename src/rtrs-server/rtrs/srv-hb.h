/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeats of a path, on connection 0 (doc/protocol.md 5).  Control thread. */
#ifndef SRV_HB_H
#define SRV_HB_H

#include <stdbool.h>

struct srv_path;

/* @path is about to serve.  Before receives are posted: they feed the heartbeat. */
void srv_hb_start(struct srv_path *path);
/* path->hb.next_ms has come: send what is due.  False: the peer has been silent for too long, and
 * @path is to be failed. */
bool srv_hb_tick(struct srv_path *path);

#endif
