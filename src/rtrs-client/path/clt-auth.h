/* SPDX-License-Identifier: BSD-3-Clause */
/* The proof of who the client is, on connection 0 of an attempt, before the attempt makes the
 * connections of the path (doc/decisions.md D23).  Service thread. */
#ifndef CLT_AUTH_H
#define CLT_AUTH_H

#include "auth-chap.h"
#include "fabric.h"
#include "rtrs-msg.h"

struct auth_key;
struct clt_con;
struct clt_path;

struct clt_auth {
	/* of this attempt */
	bool proven;			/* @chap is PROVEN: connections have tags */
	struct auth_chap chap;
	struct rtrs_msg_conn_req req;	/* the last CONN_REQ */
	struct rtrs_msg_conn_rsp rsp;	/* and the answer, which asks for the proof */
	struct {
		uint8_t in[AUTH_MSG_MAX], out[AUTH_MSG_MAX];
	} *msgs;
	struct ibv_mr *mr;		/* of @msgs */
	struct auth_key *key;		/* that is proven; NULL: none yet */
	struct fab_cqe recv_cqe, send_cqe;
	void (*done)(struct clt_path *path, int err, const char *why);
	/* kept from the attempt before */
	bool passed_over;		/* it had the key of other paths, and did not come up */
};

/* fab_cm_conf.seal() of a path: the last word on the CONN_REQ @data of @conn, which gets its tag.
 * A path whose first connection has TLS has TLS on all. */
const char *clt_auth_seal(struct fab_conn *conn, void *data, size_t len);
/* Judge @rsp, as it came in @msg on @con.  1: the server asks for the proof, clt_auth_begin() is to
 * follow; 0: go on; or -errno with @why. */
int clt_auth_judge(const struct clt_con *con, const struct rtrs_conn_rsp *rsp,
		   const struct rtrs_msg_conn_rsp *msg, char *why, size_t len);
/* Begin the proof on connection 0, which is established.  While another path of the session is
 * connected the proof is of that path's key: the server lets nobody else into a session than who
 * made it, and the key of the configuration may be a new one by now (clt-reload.h).  An attempt
 * behind one that failed so proves the key of the configuration, because this path may lead to
 * another server, or the session may be gone there.  Calls @done when the server has proven
 * itself, too, or with -errno. */
int clt_auth_begin(struct clt_path *path, void (*done)(struct clt_path *path, int err,
						       const char *why), char *why, size_t len);
/* Free the memory of the messages: connection 0 has drained. */
void clt_auth_left(struct clt_path *path);
/* Forget the attempt. */
void clt_auth_release(struct clt_path *path);

#endif
