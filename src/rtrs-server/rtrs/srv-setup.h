/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets paths up: the queue depth that all have, and of each path the memory, and the connections,
 * each by itself (doc/protocol.md 2).  Control thread. */
#ifndef SRV_SETUP_H
#define SRV_SETUP_H

#include <stddef.h>
#include <stdint.h>

struct fab_conn;
struct fab_listener;
struct rtrs_conn_req;
struct srv;
struct srv_path;
struct srv_sess;
struct srv_who;

/* ---- the announced queue depth ---- */

/* --queue-depth, or less if a device has short queues.
 *
 * All paths of a session must get one depth (doc/traps.md 4), and the same after a reconnect
 * (doc/traps.md 5, 6).  So the whole server has one.  A device known at the start of listening
 * lowers the depth then; a device behind an address that names no device (a wildcard) lowers the
 * depth with the first client of all.  From the first client on the depth is fixed. */

/* Set the depth of the configuration.  -EINVAL, -EOVERFLOW: queue depth and size do not fit
 * together. */
int srv_setup_geom(struct srv *srv);
/* Lower the depth to the queues of the device of @l, a listener called @name.  0; or -errno with
 * the reason in @why: the device is too small for any depth, or for the depth that earlier clients
 * got. */
int srv_setup_fit_listener(struct srv *srv, const struct fab_listener *l, const char *name,
			   char *why, size_t len);
/* Fix the depth, if the peer of @conn is the first client to get a path.  0; or -errno with the
 * reason in @why: the device cannot serve the depth that earlier clients got. */
int srv_setup_fit_client(struct srv *srv, const struct fab_conn *conn, char *why, size_t len);

/* ---- a path ---- */

/* Estimate the memory of a path with @ncons connections for the peer of @conn. */
uint64_t srv_setup_memory(const struct srv *srv, unsigned ncons, const struct fab_conn *conn);

/* Make a path of @sess in CONNECTING for the peer of @conn, who is @who, with memory and without
 * connections. 0, or -errno with nothing held and the reason in @err. */
int srv_setup_path(struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct srv_who *who, struct fab_conn *conn, struct srv_path **ret,
		   char *err, size_t errlen);

/* Accept @conn, whose CONN_REQ is @req, as a connection of @path.  On error the path has failed,
 * and @conn is gone. */
int srv_setup_con(struct srv_path *path, const struct rtrs_conn_req *req, struct fab_conn *conn);

#endif
