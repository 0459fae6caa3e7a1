/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners and the connection managers they belong to.  Control thread. */
#ifndef SRV_LISTEN_H
#define SRV_LISTEN_H

#include <stddef.h>

struct srv;

/* Open every listener of the configuration and tell each on stdout.  0, or -errno with one line in
 * @err and nothing left behind. */
int srv_listen_start(struct srv *srv, char *err, size_t errlen);
/* Accept nothing new.  Connections live on. */
void srv_listen_stop(struct srv *srv);
/* All connections are gone: close the connection managers, then call srv->part_gone(). */
void srv_listen_close(struct srv *srv);

#endif
