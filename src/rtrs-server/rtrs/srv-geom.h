/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue depth that is announced: what --queue-depth says, or less where a device has short
 * queues.
 *
 * All paths of a session must be told one depth (doc/traps.md 4), and the same after a reconnect
 * (doc/traps.md 5, 6), so there is one for the whole server.  Devices that are known when the
 * server starts to listen lower it then; one behind an address that says nothing of it (a wildcard)
 * with the first client of all, and from then on it is fixed.  Control thread. */
#ifndef SRV_GEOM_H
#define SRV_GEOM_H

#include <stddef.h>
#include <stdint.h>

struct fab_conn;
struct fab_qp_attr;
struct fab_listener;
struct srv;
struct srv_chunks;

/* The depth that the configuration asks for.  -EINVAL, -EOVERFLOW: queue depth and size do not fit
 * together. */
int srv_geom_init(struct srv *srv);
/* The server listens at @l, which @name says in words.  0; or -errno with the reason in @why: its
 * device is too small for any depth. */
int srv_geom_listener(struct srv *srv, const struct fab_listener *l, const char *name, char *why,
		      size_t len);
/* A path is made for the peer of @conn: fixes the depth if it is the first.  0; or -errno with the
 * reason in @why: its device cannot do what others have been told. */
int srv_geom_client(struct srv *srv, const struct fab_conn *conn, char *why, size_t len);
/* The queues of connection @cid of a path with memory @c (doc/protocol.md 2.1, 2.2).
 * @service_recvs: see struct srv_path. */
void srv_geom_queues(const struct srv *srv, uint16_t cid, const struct srv_chunks *c,
		     unsigned service_recvs, struct fab_qp_attr *attr);

/* Memory that a connection of a new path for the peer of @conn takes, about; for limits. */
size_t srv_geom_con_memory(const struct srv *srv, const struct fab_conn *conn);

#endif
