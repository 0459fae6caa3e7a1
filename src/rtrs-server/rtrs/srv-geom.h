/* SPDX-License-Identifier: BSD-3-Clause */
/* The announced queue depth: --queue-depth, or less if a device has short queues.
 *
 * All paths of a session must get one depth (doc/traps.md 4), and the same after a reconnect
 * (doc/traps.md 5, 6).  So the whole server has one.  A device known at the start of listening
 * lowers the depth then; a device behind an address that names no device (a wildcard) lowers the
 * depth with the first client of all.  From the first client on the depth is fixed.  Control
 * thread. */
#ifndef SRV_GEOM_H
#define SRV_GEOM_H

#include <stddef.h>
#include <stdint.h>

struct fab_conn;
struct fab_qp_attr;
struct fab_listener;
struct srv;
struct srv_chunks;

/* Set the depth of the configuration.  -EINVAL, -EOVERFLOW: queue depth and size do not fit
 * together. */
int srv_geom_init(struct srv *srv);
/* Lower the depth to the queues of the device of @l, a listener called @name.  0; or -errno with
 * the reason in @why: the device is too small for any depth, or for the depth that earlier clients
 * got. */
int srv_geom_listener(struct srv *srv, const struct fab_listener *l, const char *name, char *why,
		      size_t len);
/* Fix the depth, if the peer of @conn is the first client to get a path.  0; or -errno with the
 * reason in @why: the device cannot serve the depth that earlier clients got. */
int srv_geom_client(struct srv *srv, const struct fab_conn *conn, char *why, size_t len);
/* The queues of connection @cid of a path with memory @c (doc/protocol.md 2.1, 2.2).
 * @service_recvs: see struct srv_path. */
void srv_geom_queues(const struct srv *srv, uint16_t cid, const struct srv_chunks *c,
		     unsigned service_recvs, struct fab_qp_attr *attr);

/* Estimate the memory of a connection of a new path for the peer of @conn; for limits. */
size_t srv_geom_con_memory(const struct srv *srv, const struct fab_conn *conn);

#endif
