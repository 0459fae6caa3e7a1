/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners and their connection managers.  Control thread. */
#ifndef SRV_LISTEN_H
#define SRV_LISTEN_H

#include <stddef.h>

struct fab_addr;
struct srv;

/* Open every listener of the configuration.  0, or -errno with one line in @err and no listener
 * open. */
int srv_listen_start(struct srv *srv, char *err, size_t errlen);
/* Print "listening on tcp://ADDR:PORT" on stdout for each listener, with the port that the
 * listener got. */
void srv_listen_tell(const struct srv *srv);
/* Listen at @addr, too, as the configuration of a server that runs demands.  0, or -errno with one
 * line in @err. */
int srv_listen_add(struct srv *srv, const struct fab_addr *addr, char *err, size_t errlen);
/* Do not listen at @addr any more.  Connections live on. */
void srv_listen_del(struct srv *srv, const struct fab_addr *addr);
/* Accept no new connection.  Connections live on. */
void srv_listen_stop(struct srv *srv);
/* Close the connection managers, then call srv->part_gone().  All connections are gone. */
void srv_listen_close(struct srv *srv);

#endif
