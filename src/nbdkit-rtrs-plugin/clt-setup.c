/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the connections of a path, one after another (doc/protocol.md 1.6), and exchanges INFO (2.4,
 * 2.5).  Service thread only.  Everything that goes wrong is clt_path_fail(); what was made until
 * then is destroyed in clt_setup_release(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clt-path-priv.h"
#include "log.h"

/* What one request at a time needs: on connection 0 a user message, a heartbeat and the answer to one, and one to
 * spare; data and header of a WRITE. */
#define MIN_QUEUE 4u
#define MIN_SGE 2u

/* ---- one connection ---- */

static const char *why_not(const struct clt_con *con, int err)
{
	const char *cause = con->created ? fab_conn_cause(con->fab) : "";

	return *cause ? cause : strerror(-err);
}

void clt_setup_con(struct clt_path *path)
{
	struct clt_con *con = &path->cons[path->next_cid];
	int r;

	r = fab_conn_create(path->cm, con, &con->fab);
	if (r == 0) {
		con->created = true;
		r = fab_resolve(con->fab, path->src.len ? &path->src : NULL, &path->dst);
	}
	if (r < 0)
		clt_path_fail(path, r, "%s", why_not(con, r));
}

/* What the device of @con can do, and what that means for READs. */
static int setup_mode(struct clt_con *con, char *why, size_t len)
{
	struct clt_path *path = con->path;
	bool direct, bounce, rereg;
	int r = frwr_query(con->fab, path->pd, &path->caps);

	if (r < 0)
		return r;
	frwr_lessons_apply(path->sess->lessons, &path->caps);
	direct = path->caps.dev.rereg_mr && fab_pd_local_dma_lkey(path->pd, &path->dma_lkey);
	r = clt_reg_pick(path->sess->registration, &path->caps, direct, why, len);
	if (r < 0)
		return r;
	path->mode = (enum frwr_mode)r;
	snprintf(path->mode_why, sizeof(path->mode_why), "%s", why);
	*why = '\0';
	/* Written only at first: owners of requests read them. */
	bounce = !direct || path->mode == FRWR_STATIC;
	if (bounce != path->bounce)
		path->bounce = bounce;
	rereg = path->mode == FRWR_REREG;
	if (rereg != path->rereg)
		path->rereg = rereg;
	return 0;
}

/* With the first connection of an attempt, or of all where the domain is kept. */
static int setup_pd(struct clt_con *con, char *why, size_t len)
{
	struct clt_path *path = con->path;
	int r = fab_pd_create(con->fab, &path->pd);

	if (r < 0)
		return r;
	r = setup_mode(con, why, len);
	if (r < 0) {
		fab_pd_destroy(path->pd);
		path->pd = NULL;
	}
	return r;
}

static int setup_qp(struct clt_con *con, char *why, size_t len)
{
	struct clt_path *path = con->path;
	struct fab_device_attr dev;
	struct fab_qp_attr qp = {
		.max_send_wr = 2 * RTRS_SERVICE_CON_DEPTH + 2,
		.max_recv_wr = 2 * RTRS_SERVICE_CON_DEPTH + 2,
		.max_send_sge = MIN_SGE,
	};
	int r;

	r = fab_query_device(con->fab, &dev);
	if (r < 0)
		return r;
	if (dev.max_qp_wr < MIN_QUEUE || dev.max_sge < MIN_SGE) {
		snprintf(why, len, "the device is too small: queues of %u requests with %u pieces, and "
			 "%u with %u are the least", dev.max_qp_wr, dev.max_sge, MIN_QUEUE, MIN_SGE);
		return -EOPNOTSUPP;
	}
	r = path->pd ? 0 : setup_pd(con, why, len);
	if (r < 0)
		return r;
	path->max_qp_wr = dev.max_qp_wr;
	if (con->cid) {
		qp.max_send_wr = MAX(4 * path->depth + 1, path->window_send_wr);
		qp.max_recv_wr = 3 * path->depth + 1;
	}
	qp.max_send_wr = MIN(qp.max_send_wr, dev.max_qp_wr);
	qp.max_recv_wr = MIN(qp.max_recv_wr, dev.max_qp_wr);
	return fab_create_qp(con->fab, path->pd, &qp);
}

static void setup_resolved(struct clt_con *con)
{
	struct clt_path *path = con->path;
	struct rtrs_conn_req req = {
		.cid = (uint16_t)con->cid,
		.cid_num = (uint16_t)path->ncons,
		.recon_cnt = (uint16_t)path->life,
		.first_conn = true,
	};
	struct rtrs_msg_conn_req msg;
	char why[256] = "";
	int r;

	memcpy(req.sess_uuid, path->uuid, sizeof(req.sess_uuid));
	memcpy(req.paths_uuid, path->sess->uuid, sizeof(req.paths_uuid));
	rtrs_conn_req_encode(&msg, &req);
	r = setup_qp(con, why, sizeof(why));
	if (r == 0)
		r = fab_connect(con->fab, &msg, sizeof(msg));
	if (r < 0)
		clt_path_fail(path, r, "connection %u: %s", con->cid, *why ? why : strerror(-r));
}

/* What connection 0 told holds for the path. */
static int setup_geometry(struct clt_con *con, const struct rtrs_conn_rsp *rsp, const char **why)
{
	struct clt_path *path = con->path;
	struct fab_addr local, peer;
	char l[FAB_ADDR_STRLEN], p[FAB_ADDR_STRLEN];
	int r;

	r = rtrs_geom_init(&path->geom, rsp->queue_depth, rsp->max_io_size, rsp->max_hdr_size);
	if (r < 0) {
		*why = "impossible queue depth or sizes";
		return -EPROTO;
	}
	path->new_rkey = rsp->new_rkey;
	/* An answer and what invalidates a key may come for each request. */
	path->depth = MIN(path->geom.queue_depth, MAX(path->max_qp_wr / 2, 2u) - 1);
	if (path->bounce)
		path->depth = MIN(path->depth, (unsigned)CLT_ARENA_SLOTS);
	path->depth = clt_reg_depth(&path->caps, path->mode, path->depth, &path->window_send_wr);
	if (!path->depth) {
		*why = "the device is too small for memory windows: registration=static does without";
		return -EOPNOTSUPP;
	}
	r = clt_sess_geometry(path->sess, &path->geom, path->depth, why);
	if (r < 0)
		return r;
	*why = "no memory";
	path->rbufs = calloc(path->geom.queue_depth, sizeof(*path->rbufs));
	if (!path->rbufs)
		return -ENOMEM;
	r = clt_mem_attach(path);
	if (r < 0)
		return r;
	fab_conn_addrs(con->fab, &local, &peer);
	snprintf(path->name, sizeof(path->name), "path %s@%s",
		 fab_addr_format(&local, l, sizeof(l)), fab_addr_format(&peer, p, sizeof(p)));
	return 0;
}

static void setup_established(struct clt_con *con, const struct fab_event *ev)
{
	struct clt_path *path = con->path;
	struct rtrs_conn_rsp rsp;
	const char *why = "";
	int r;

	con->established = true;
	r = rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, false, &rsp, &why);
	if (r == 0 && rsp.status) {
		r = rsp.status;
		why = strerror(-r);
	}
	if (r == 0 && con->cid == 0)
		r = setup_geometry(con, &rsp, &why);
	if (r < 0) {
		clt_path_fail(path, r, "connection %u: %s", con->cid, why);
		return;
	}
	if (con->cid == 0)
		clt_con0_service(path);
	if (++path->next_cid < path->ncons)
		clt_path_event(path, CLT_EV_CON_UP);
	else
		clt_path_event(path, CLT_EV_ALL_UP);
}

static void setup_rejected(struct clt_con *con, const struct fab_event *ev)
{
	struct rtrs_conn_rsp rsp;
	const char *why;
	int r;

	r = rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, true, &rsp, &why);
	if (r < 0)
		clt_path_fail(con->path, -ECONNREFUSED, "connection %u was refused (%s)", con->cid,
			      why);
	else
		clt_path_fail(con->path, rsp.status, "connection %u was refused: %s", con->cid,
			      strerror(-rsp.status));
}

static void setup_event(struct clt_path *path, const struct fab_event *ev)
{
	struct clt_con *con = ev->conn ? fab_conn_context(ev->conn) : NULL;

	if (!con || con->path != path)
		return;
	if (atomic_load(&path->failing) ||
	    (path->state == CLT_CLOSING && ev->type != FAB_EVENT_DISCONNECTED)) {
		/* Too late; but it is open and must drain like the others. */
		if (ev->type == FAB_EVENT_ESTABLISHED) {
			con->established = true;
			fab_disconnect(con->fab);
		}
		return;
	}
	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		setup_resolved(con);
		return;
	case FAB_EVENT_ESTABLISHED:
		setup_established(con, ev);
		return;
	case FAB_EVENT_REJECTED:
		setup_rejected(con, ev);
		return;
	case FAB_EVENT_UNREACHABLE:
		clt_path_fail(path, ev->status, "%s", why_not(con, ev->status));
		return;
	case FAB_EVENT_DISCONNECTED:
		if (ev->status)
			clt_path_fail(path, ev->status, "connection %u: %s", con->cid,
				      why_not(con, ev->status));
		else
			clt_path_fail(path, -ECONNRESET, "connection %u was closed by the server",
				      con->cid);
		return;
	case FAB_EVENT_CONNECT_REQUEST:
	case FAB_EVENT_LISTENER_GONE:
		return;			/* we do not listen */
	}
}

bool clt_setup_cm_ready(struct loop_watch *watch)
{
	struct clt_path *path = container_of(watch, struct clt_path, cm_watch);
	struct fab_event ev;
	int r;

	while ((r = fab_cm_get_event(path->cm, &ev)) > 0)
		setup_event(path, &ev);
	if (r < 0)
		clt_path_fail(path, r, "connection manager: %s", strerror(-r));
	return false;
}

/* ---- INFO ---- */

static void info_wc_send(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct clt_path *path = container_of(cqe, struct clt_path, info_send_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		clt_path_fail(path, -ECONNRESET, "connection 0: %s", fab_conn_cause(conn));
}

static void info_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct clt_path *path = container_of(cqe, struct clt_path, info_recv_cqe);
	const char *why = "";
	int r;

	if (wc->status != IBV_WC_SUCCESS) {
		clt_path_fail(path, -ECONNRESET, "connection 0: %s", fab_conn_cause(conn));
		return;
	}
	if (path->state != CLT_INFO)
		return;			/* closing */
	r = wc->opcode == IBV_WC_RECV ? 0 : -EPROTO;
	if (r < 0)
		why = "an immediate instead of INFO_RSP";
	else
		r = rtrs_info_rsp_decode(path->info_rsp, wc->byte_len, &path->geom, path->rbufs,
					 &why);
	if (r < 0) {
		clt_path_fail(path, r, "bad INFO_RSP: %s", why);
		return;
	}
	for (unsigned i = 0; i < path->ncons; i++) {
		unsigned n = i ? 2 * path->depth : 2 * RTRS_SERVICE_CON_DEPTH;

		r = clt_rx_post(&path->cons[i], MIN(n, path->max_qp_wr));
		if (r < 0) {
			clt_mem_fail(path, r);
			return;
		}
	}
	clt_path_event(path, CLT_EV_INFO_RSP);
}

void clt_setup_info(struct clt_path *path)
{
	size_t len = rtrs_info_rsp_len(path->geom.queue_depth);
	struct rtrs_msg_info_req *req;
	struct clt_con *con = &path->cons[0];
	struct ibv_sge sge;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED };
	int r;

	if (clt_key_open(path) < 0)
		return;
	path->info_rsp = calloc(1, len + sizeof(*req));
	path->info_mr = path->info_rsp ? fab_reg_mr(path->pd, path->info_rsp, len + sizeof(*req),
						    IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!path->info_mr) {
		clt_mem_fail(path, -errno);
		return;
	}
	path->info_recv_cqe.done = info_wc_recv;
	path->info_send_cqe.done = info_wc_send;
	rwr.wr_id = (uintptr_t)&path->info_recv_cqe;
	swr.wr_id = (uintptr_t)&path->info_send_cqe;

	sge = (struct ibv_sge){ (uintptr_t)path->info_rsp, (uint32_t)len, path->info_mr->lkey };
	r = fab_post_recv(con->fab, &rwr);
	if (r == 0) {
		req = (struct rtrs_msg_info_req *)((uint8_t *)path->info_rsp + len);
		rtrs_info_req_encode(req, path->sess->name);
		sge = (struct ibv_sge){ (uintptr_t)req, sizeof(*req), path->info_mr->lkey };
		r = fab_post_send(con->fab, &swr);
	}
	if (r < 0)
		clt_path_fail(path, -ECONNRESET, "connection 0: %s", fab_conn_cause(con->fab));
	clt_con0_service(path);
}

/* ---- the end of an attempt ---- */

static void release_con(struct clt_con *con)
{
	loop_unwatch(&con->watch);
	if (con->created)
		fab_conn_destroy(con->fab);
	if (con->recvs_mr)
		fab_dereg_mr(con->recvs_mr);
	free(con->recvs);
	con->fab = NULL;
	con->recvs_mr = NULL;
	con->recvs = NULL;
	con->created = con->established = con->drained = false;
}

void clt_setup_release(struct clt_path *path)
{
	/* ORDER: a device may wait long for a queue pair that has a window (frwr.h). */
	clt_key_close(path, false);
	for (unsigned i = 0; i < path->ncons; i++)
		release_con(&path->cons[i]);
	clt_key_close(path, true);
	if (path->info_mr)
		fab_dereg_mr(path->info_mr);
	path->info_mr = NULL;
	free(path->info_rsp);
	path->info_rsp = NULL;
	free(path->rbufs);
	path->rbufs = NULL;
	if (path->bounce && path->pd) {
		clt_mem_detach(path);
		fab_pd_destroy(path->pd);
		path->pd = NULL;
	}
}
