/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners and the connection managers they belong to.  Control thread. */
#ifndef SRV_LISTEN_H
#define SRV_LISTEN_H

#include <stddef.h>

struct srv;

/* Open every listener of the configuration.  0, or -errno with one line in @err and nothing left
 * behind. */
int srv_listen_start(struct srv *srv, char *err, size_t errlen);
/* Each of them on stdout: "listening on tcp://ADDR:PORT", with the port it got. */
void srv_listen_tell(const struct srv *srv);
/* Accept nothing new.  Connections live on. */
void srv_listen_stop(struct srv *srv);
/* All connections are gone: close the connection managers, then call srv->part_gone(). */
void srv_listen_close(struct srv *srv);

#endif
