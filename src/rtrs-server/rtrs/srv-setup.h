/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets a path up: the memory, and the connections, each by itself (doc/protocol.md 2).  Control
 * thread. */
#ifndef SRV_SETUP_H
#define SRV_SETUP_H

#include <stddef.h>
#include <stdint.h>

struct fab_conn;
struct rtrs_conn_req;
struct srv;
struct srv_path;
struct srv_who;
struct srv_sess;

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
