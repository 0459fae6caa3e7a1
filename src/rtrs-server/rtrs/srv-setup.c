/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets paths up; control thread.
 *
 * The happy path: srv_setup_geom() takes the depth of the configuration; each listener, and the
 * first client, may lower it to the queues of a device, which is logged once for each step;
 * srv_setup_path() makes a path with its memory; srv_setup_con() accepts each connection.
 *
 * Possible failures: a device that is too small is refused in words, at start or with its client; a
 * path that cannot be made holds nothing; a connection that cannot be accepted fails the path. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth-creds.h"
#include "clock.h"
#include "fabric.h"
#include "log.h"
#include "number.h"
#include "rtrs-msg.h"
#include "srv-auth.h"
#include "srv-chunk.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "util.h"

/* ---- the queue depth of all paths, fixed by the first path ---- */

int srv_setup_geom(struct srv *srv)
{
	return rtrs_geom_init(&srv->geom, srv->conf->queue_depth, srv->conf->max_io_size,
			      CONF_HDR_SIZE);
}

/* The load of a path on a device, before srv_chunk_init() decides about windows. */
static struct frwr_load geom_load(const struct srv *srv, const struct fab_device_attr *attr)
{
	enum srv_invalidate conf = srv->conf->invalidate;
	bool windows = attr->caps & FAB_CAP_MW_TYPE_1 &&
		       (conf == SRV_INVALIDATE_ALWAYS ||
			(conf == SRV_INVALIDATE_AUTO && !(attr->caps & FAB_CAP_DMA_LKEY)));

	return (struct frwr_load){
		.server = true, .mode = windows ? FRWR_MW1 : FRWR_STATIC,
		.queue_depth = srv->geom.queue_depth, .spare_wr = SRV_SEND_MARGIN,
	};
}

/* Set @depth to the number of chunks that fit into the queues of a device.  Answers take more
 * queue room than receives, on connection 0 too (srv_path.service_recvs).  @rc: result of the
 * query of the device.  0, or -errno and @why. */
static int geom_depth_for(const struct srv *srv, int rc, const struct fab_device_attr *attr,
			  unsigned *depth, char *why, size_t len)
{
	struct frwr_sizes sizes;
	struct frwr_load load;

	if (rc)
		return fmt_error(rc, why, len, "cannot query the device: %s", strerror(-rc));
	load = geom_load(srv, attr);
	if (frwr_sizing(attr, &load, &sizes)) {
		snprintf(why, len,
			 "the device's queues are too small: %u requests, expected at least %u",
			 attr->max_qp_wr, frwr_wr_per_req(&load) + load.spare_wr);
		return -ENOMEM;
	}
	*depth = sizes.queue_depth;
	return 0;
}

static void geom_lower(struct srv *srv, unsigned depth, const struct fab_device_attr *attr,
		       const char *name)
{
	int rc;

	if (depth == srv->geom.queue_depth)
		return;
	log_warn(name, "queue depth lowered from %u to %u: the device has queues of %u",
		 srv->geom.queue_depth, depth, attr->max_qp_wr);
	rc = rtrs_geom_init(&srv->geom, depth, srv->geom.max_io_size, srv->geom.max_hdr_size);
	assert(!rc);
}

/* True if @depth, of another device, is less than what clients were told; @why says so. */
static bool geom_too_late(const struct srv *srv, unsigned depth, char *why, size_t len)
{
	if (!srv->geom_fixed || depth >= srv->geom.queue_depth)
		return false;
	snprintf(why, len, "the device's queues allow a depth of %u, but an earlier client got %u: "
		 "set --queue-depth=%u", depth, srv->geom.queue_depth, depth);
	return true;
}

int srv_setup_fit_listener(struct srv *srv, const struct fab_listener *l, const char *name,
			   char *why, size_t len)
{
	struct fab_device_attr attr;
	unsigned depth;
	int rc = fab_listener_query_device(l, &attr);

	if (rc == -ENODEV)
		return 0;
	rc = geom_depth_for(srv, rc, &attr, &depth, why, len);
	if (!rc && geom_too_late(srv, depth, why, len))
		return -ENOMEM;
	if (!rc && !srv->geom_fixed)
		geom_lower(srv, depth, &attr, name);
	return rc;
}

int srv_setup_fit_client(struct srv *srv, const struct fab_conn *conn, char *why, size_t len)
{
	struct fab_device_attr attr;
	unsigned depth;
	int rc = geom_depth_for(srv, fab_query_device(conn, &attr), &attr, &depth, why, len);

	if (rc)
		return rc;
	if (geom_too_late(srv, depth, why, len))
		return -ENOMEM;
	if (!srv->geom_fixed)
		geom_lower(srv, depth, &attr, NULL);
	srv->geom_fixed = true;
	return 0;
}

/* The queues of connection @cid of a path with memory @c (doc/protocol.md 2.1, 2.2).
 * @service_recvs: see struct srv_path. */
static void setup_queues(const struct srv *srv, uint16_t cid, const struct srv_chunks *c,
		  unsigned service_recvs, struct fab_qp_attr *attr)
{
	bool windows = c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_MW1;
	const struct frwr_load load = { .server = true, .mode = windows ? FRWR_MW1 : FRWR_STATIC };
	unsigned depth = srv->geom.queue_depth, per_req = frwr_wr_per_req(&load);

	attr->max_recv_wr = (cid ? depth : service_recvs) + SRV_SPARE_RECVS + 1;
	attr->max_send_wr = per_req * (cid ? depth : MIN(depth, (unsigned)RTRS_SERVICE_CON_DEPTH));
	if (windows && !cid)	/* the first keys, all at once */
		attr->max_send_wr = MAX(attr->max_send_wr, depth);
	attr->max_send_wr += SRV_SEND_MARGIN;
	attr->max_send_sge = 1;
}

/* Estimate the memory of a connection of a new path for the peer of @conn. */
static size_t setup_con_memory(const struct srv *srv, const struct fab_conn *conn)
{
	struct fab_device_attr device;
	struct fab_qp_attr queues = { .max_send_sge = 1 };
	struct frwr_load load;

	if (fab_query_device(conn, &device))
		return 0;
	load = geom_load(srv, &device);
	queues.max_recv_wr = srv->geom.queue_depth + SRV_SPARE_RECVS + 1;
	queues.max_send_wr = frwr_wr_per_req(&load) * load.queue_depth + load.spare_wr;
	return sizeof(struct srv_con) + fab_qp_memory(conn, &queues);
}

/* ---- a path and its connections ---- */

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
	path->service_recvs = MIN((unsigned)RTRS_SERVICE_CON_DEPTH,
				  attr.max_qp_wr - SRV_SPARE_RECVS - 1);
	path->cons = calloc(path->cid_num, sizeof(*path->cons));
	if (!path->cons || srv_req_alloc(path))
		return -ENOMEM;
	return srv_chunk_init(&path->chunks, srv, conn);
}

uint64_t srv_setup_memory(const struct srv *srv, unsigned ncons, const struct fab_conn *conn)
{
	return (uint64_t)srv->geom.queue_depth * srv->geom.chunk_size +
	       (uint64_t)ncons * setup_con_memory(srv, conn);
}

int srv_setup_path(struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct srv_who *who, struct fab_conn *conn, struct srv_path **ret,
		   char *err, size_t errlen)
{
	char cause[SRV_CAUSE_LEN];
	struct srv_path *path = calloc(1, sizeof(*path));
	struct srv *srv = sess->srv;
	int rc;

	if (!path)
		return fmt_error(-ENOMEM, err, errlen, "no memory for a path");
	srv_path_init(path, sess, req, who, conn);
	rc = setup_alloc(path, srv, conn);
	if (rc) {
		srv_chunk_error(&path->chunks, rc, cause, sizeof(cause));
		snprintf(err, errlen, "cannot make a path: %s", cause);
		free(path->cons);
		srv_req_free(path);
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

	setup_queues(path->srv, con->cid, &path->chunks, path->service_recvs, &attr);
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
