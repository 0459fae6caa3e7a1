/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing that outlives a call: makes paths and connections; control thread.  A path that
 * cannot be made holds nothing; a connection that cannot be accepted fails the path. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth-conn.h"
#include "clock.h"
#include "rtrs-msg.h"
#include "srv-con.h"
#include "srv-geom.h"
#include "srv-info.h"
#include "srv-pass.h"
#include "srv-path.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "srv-setup.h"
#include "srv-state.h"
#include "util.h"

static int setup_alloc(struct srv_path *path, struct srv *srv, struct fab_conn *conn)
{
	struct fab_device_attr attr;
	int rc = fab_query_device(conn, &attr);

	if (rc)
		return rc;
	snprintf(path->device, sizeof(path->device), "%s", attr.name);
	path->device_port = attr.port;
	/* A queue is longer than three times the depth (frwr_sizing()), and each user message has
	 * a chunk.  So a short queue, too, has room for all messages and the heartbeats. */
	path->service_recvs = MIN((unsigned)RTRS_SERVICE_CON_DEPTH, attr.max_qp_wr - 1);
	path->cons = calloc(path->cid_num, sizeof(*path->cons));
	if (!path->cons || srv_req_alloc(path, srv->geom.queue_depth))
		return -ENOMEM;
	return srv_chunk_init(&path->chunks, srv, conn);
}

uint64_t srv_setup_memory(const struct srv *srv, unsigned ncons, const struct fab_conn *conn)
{
	return (uint64_t)srv->geom.queue_depth * srv->geom.chunk_size +
	       (uint64_t)ncons * srv_geom_con_memory(srv, conn);
}

int srv_setup_path(struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct srv_who *who, struct fab_conn *conn, struct srv_path **ret,
		   char *err, size_t errlen)
{
	char cause[SRV_CAUSE_LEN];
	struct srv_path *path = calloc(1, sizeof(*path));
	struct srv *srv = sess->srv;
	int rc;

	if (!path) {
		snprintf(err, errlen, "no memory for a path");
		return -ENOMEM;
	}
	srv_path_init(path, sess, req, who, conn);
	rc = setup_alloc(path, srv, conn);
	if (rc) {
		srv_chunk_error(&path->chunks, rc, cause, sizeof(cause));
		snprintf(err, errlen, "cannot make a path: %s", cause);
		free(path->cons);
		free(path->reqs);
		explicit_bzero(path->conn_key, sizeof(path->conn_key));
		free(path);
		return rc;
	}
	path->offset = srv->next_offset++ % (srv->nthreads - 1);
	srv_sess_get(sess);
	list_add_tail(&sess->paths, &path->link);
	srv->npaths++;
	path->memory = srv_setup_memory(srv, path->cid_num, conn);
	srv->memory += path->memory;
	srv->nhalf_open++;
	loop_timer_set(srv_loop(srv), &path->timer, clock_now_ms() + srv->conf->setup_timeout_ms);
	*ret = path;
	return 0;
}

/* Accept @con, whose queues this makes.  0, or -errno with the connection rejected or destroyed. */
static int setup_accept(struct srv_path *path, struct srv_con *con, const struct rtrs_conn_req *req)
{
	const struct rtrs_conn_rsp rsp = {
		.queue_depth = (uint16_t)path->srv->geom.queue_depth,
		.max_io_size = path->srv->geom.max_io_size,
		.max_hdr_size = path->srv->geom.max_hdr_size,
		.new_rkey = srv_chunk_new_keys(&path->chunks),
		.auth = req->auth == RTRS_AUTHS_PROVES ? RTRS_AUTHS_PROVES : RTRS_AUTHS_NOTHING,
	};
	struct auth_channel channel;
	struct rtrs_msg_conn_rsp m;
	struct fab_qp_attr attr;
	int rc;

	srv_geom_queues(path->srv, con->cid, &path->chunks, path->service_recvs, &attr);
	rc = fab_create_qp(con->fab, path->chunks.pd, &attr);
	if (!rc && !con->cid)
		rc = srv_info_post_recv(path, con);	/* must exist before the accept (2.2) */
	if (rc) {
		srv_con_refuse(con->fab, rc, RTRS_REFUSES_NOT);
		return rc;
	}
	rtrs_conn_rsp_encode(&m, &rsp);
	if (rsp.auth == RTRS_AUTHS_PROVES) {
		auth_conn_channel(&channel, con->fab);
		auth_conn_rsp_seal(&m, &channel, req->tag, path->conn_key);
	}
	fab_conn_set_context(con->fab, con);
	rc = fab_accept(con->fab, &m, sizeof(m));
	if (rc)
		fab_conn_destroy(con->fab);
	return rc;
}

int srv_setup_con(struct srv_path *path, const struct rtrs_conn_req *req, struct fab_conn *conn)
{
	struct srv *srv = path->srv;
	uint16_t cid = req->cid;
	unsigned thread = cid ? 1 + (path->offset + cid) % (srv->nthreads - 1) : 0;
	char cause[SRV_CAUSE_LEN];
	struct srv_con *con = srv_con_create(path, cid, &srv->threads[thread], conn,
					     &srv_path_con_ops);
	int rc;

	if (!con) {
		rc = -ENOMEM;
		srv_con_refuse(conn, rc, RTRS_REFUSES_NOT);
	} else {
		rc = setup_accept(path, con, req);
	}
	if (rc) {
		if (con) {
			con->fab = NULL;
			srv_con_destroy(con);
		}
		srv_path_fail(path, "cannot accept connection %u: %s", cid,
			      srv_chunk_error(&path->chunks, rc, cause, sizeof(cause)));
		return rc;
	}
	path->cons[cid] = con;
	path->chunks.rings[thread].used = true;
	path->ncons++;
	srv->ncons++;
	srv_con_start(con);
	return 0;
}
