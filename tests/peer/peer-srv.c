/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a listener, connections and their domain; the thread and the memory are the owner's. */
#include <errno.h>
#include <string.h>

#include "../thread/thread.h"
#include "peer-srv.h"
#include "rtrs-imm.h"
#include "util.h"

#define QUEUE 128

/* ---- answers ---- */

int peer_srv_control(const struct rtrs_req *req, const struct rnbd_dev_info *disk, uint8_t *data)
{
	const struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR };
	int type = rnbd_msg_type(req->usr, req->usr_len);

	if (type == RNBD_MSG_SESS_INFO)
		rnbd_sess_info_encode((struct rnbd_msg_sess_info *)data, RNBD_MSG_SESS_INFO_RSP,
				      &info);
	else if (type == RNBD_MSG_OPEN)
		rnbd_open_rsp_encode((struct rnbd_msg_open_rsp *)data, disk);
	return type;
}

struct rtrs_rsp peer_srv_rsp(struct peer_srv *s, const struct rtrs_req *req, unsigned buf,
			     int status)
{
	return (struct rtrs_rsp){
		.msg_id = buf,
		.status = status,
		.req = req,
		.data = { (uintptr_t)peer_srv_chunk(s, buf), req->data_len, s->own_mr->lkey },
	};
}

/* ---- what arrives ---- */

static void post_empty(struct peer_srv_con *con, unsigned n)
{
	const struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->recv_cqe };

	while (n--)
		fab_post_recv(con->fab, &wr);
}

static void on_info(struct peer_srv_con *con)
{
	struct peer_srv *s = con->srv;
	struct rtrs_region regions[PEER_SRV_DEPTH];
	unsigned n = s->ops->regions(con, regions);
	struct ibv_sge sge = { (uintptr_t)s->info_rsp, (uint32_t)rtrs_info_rsp_len(n),
			       s->own_mr->lkey };
	const struct ibv_send_wr wr = { .wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge,
					.num_sge = 1, .opcode = IBV_WR_SEND };

	con->info_seen = true;
	rtrs_info_rsp_encode((struct rtrs_msg_info_rsp *)s->info_rsp, regions, n);
	for (unsigned i = 0; i < PEER_SRV_CONS; i++) {
		if (s->cons[i].fab && s->cons[i].path == con->path && !s->cons[i].failed)
			post_empty(&s->cons[i], 2 * PEER_SRV_DEPTH);
	}
	fab_post_send(con->fab, &wr);
}

static void on_request(struct peer_srv_con *con, const struct ibv_wc *wc)
{
	struct peer_srv *s = con->srv;
	uint32_t buf, off, start, len;
	uint8_t copy[RTRS_HDR_MAX], *chunk;
	struct rtrs_req req;
	uint32_t wrote = wc->byte_len;
	const char *why;

	rtrs_imm_io_req_split(&s->geom, rtrs_imm_payload(wc->imm_data), &buf, &off);
	check(buf < PEER_SRV_DEPTH);
	chunk = peer_srv_chunk(s, buf);
	/* A digest behind the header is not looked at. */
	if (rtrs_req_extent(&s->geom, chunk, off, wrote, &start, &len, &why)) {
		wrote -= RTRS_DIGEST_LEN;
		check(!rtrs_req_extent(&s->geom, chunk, off, wrote, &start, &len, &why));
	}
	memcpy(copy, chunk + start, len);
	check(!rtrs_req_decode(&s->geom, copy, start, len, off, wrote, &req, &why));
	s->ops->request(con, &req, buf);
}

static void wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct peer_srv_con *con = container_of(cqe, struct peer_srv_con, recv_cqe);
	struct ibv_send_wr ack;
	unsigned type;

	if (wc->status != IBV_WC_SUCCESS) {
		con->failed = true;
		return;
	}
	if (!con->cid && !con->info_seen) {
		on_info(con);
		return;
	}
	post_empty(con, 1);
	type = rtrs_imm_type(wc->imm_data);
	if (type == RTRS_IO_REQ_IMM) {
		on_request(con, wc);
	} else if (type == RTRS_HB_MSG_IMM) {
		rtrs_wr_heartbeat(&ack, (uintptr_t)&con->send_cqe, RTRS_HB_ACK_IMM);
		fab_post_send(fab, &ack);
	} else if (type == RTRS_HB_ACK_IMM) {
		con->srv->nhb_acks++;
	}
}

static void wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		container_of(cqe, struct peer_srv_con, send_cqe)->failed = true;
}

/* ---- sessions and paths ---- */

static struct peer_srv_sess *sess_get(struct peer_srv *s, const struct rtrs_conn_req *req)
{
	struct peer_srv_sess *unused = NULL;

	for (unsigned i = 0; i < PEER_SRV_SESSIONS; i++) {
		struct peer_srv_sess *sess = &s->sessions[i];

		if (!sess->ncons)
			unused = sess;
		else if (!memcmp(sess->uuid, req->paths_uuid, sizeof(sess->uuid)))
			return sess;
	}
	check(unused && (req->flags & RTRS_CONN_REQ_FIRST_CONN));
	*unused = (struct peer_srv_sess){ 0 };
	memcpy(unused->uuid, req->paths_uuid, sizeof(unused->uuid));
	return unused;
}

static struct peer_srv_path *path_get(struct peer_srv *s, const struct rtrs_conn_req *req)
{
	struct peer_srv_path *unused = NULL;

	for (unsigned i = 0; i < PEER_SRV_PATHS; i++) {
		struct peer_srv_path *path = &s->paths[i];

		if (!path->ncons)
			unused = path;
		else if (path->recon_cnt == req->recon_cnt &&
			 !memcmp(path->uuid, req->sess_uuid, sizeof(path->uuid)))
			return path;
	}
	check(unused);
	*unused = (struct peer_srv_path){ .recon_cnt = req->recon_cnt, .sess = sess_get(s, req) };
	memcpy(unused->uuid, req->sess_uuid, sizeof(unused->uuid));
	return unused;
}

static void con_add(struct peer_srv_con *con, const struct rtrs_conn_req *req)
{
	con->path = path_get(con->srv, req);
	con->path->ncons++;
	con->path->sess->ncons++;
}

static void con_free(struct peer_srv_con *con)
{
	fab_conn_destroy(con->fab);
	con->fab = NULL;
	con->path->sess->ncons--;
	con->path->ncons--;
}

/* ---- connections ---- */

static void make_memory(struct peer_srv *s, struct fab_conn *fab)
{
	if (s->pd)
		return;
	check(!fab_pd_create(fab, &s->pd));
	s->own_mr = s->ops->memory(s);
	check(s->own_mr);
}

static void post_info_recv(struct peer_srv_con *con)
{
	struct ibv_sge sge = { (uintptr_t)con->info, sizeof(con->info), con->srv->own_mr->lkey };
	const struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->recv_cqe, .sg_list = &sge,
					.num_sge = 1 };

	check(!fab_post_recv(con->fab, &wr));
}

static void on_connect(struct peer_srv *s, const struct fab_event *ev)
{
	const struct fab_qp_attr attr = { .max_send_wr = QUEUE, .max_recv_wr = QUEUE,
					  .max_send_sge = 1 };
	struct rtrs_conn_rsp rsp = {
		.queue_depth = PEER_SRV_DEPTH, .max_io_size = s->geom.max_io_size - s->told_less,
		.max_hdr_size = PEER_SRV_HDR + s->told_less, .new_rkey = s->new_rkey,
	};
	struct peer_srv_con *con = s->cons;
	struct rtrs_msg_conn_rsp m;
	struct rtrs_conn_req req;
	const char *why;

	while (con->fab)
		check(++con < s->cons + PEER_SRV_CONS);
	check(!rtrs_conn_req_decode(ev->private_data, ev->private_data_len, &req, &why));
	make_memory(s, ev->conn);
	*con = (struct peer_srv_con){ .srv = s, .fab = ev->conn, .cid = req.cid };
	con->recv_cqe.done = wc_recv;
	con->send_cqe.done = wc_send;
	fab_conn_set_context(con->fab, con);
	con_add(con, &req);
	if (con->cid && s->asks_late)
		rsp.auth = RTRS_AUTHS_ASKS;
	check(!fab_create_qp(con->fab, s->pd, &attr));
	if (!con->cid) {
		s->lives++;
		post_info_recv(con);
	}
	rtrs_conn_rsp_encode(&m, &rsp);
	if (fab_accept(con->fab, &m, sizeof(m)))
		con_free(con);
}

void peer_srv_events(struct peer_srv *s)
{
	struct fab_event ev;

	while (fab_cm_get_event(s->cm, &ev) == 1) {
		if (ev.type == FAB_EVENT_CONNECT_REQUEST)
			on_connect(s, &ev);
		else if (ev.type == FAB_EVENT_DISCONNECTED)
			fab_disconnect(ev.conn);
	}
}

bool peer_srv_poll(struct peer_srv_con *con, short *events)
{
	for (;;) {
		int n = fab_dispatch(con->fab, QUEUE);

		if (n == -ENOTCONN) {
			con_free(con);
			return false;
		}
		if (!n && !fab_arm(con->fab, events))
			return true;
	}
}

/* ---- life ---- */

void peer_srv_start(struct peer_srv *s, const struct peer_srv_ops *ops, const struct fab_addr *addr,
		    uint8_t *chunks, uint32_t max_io)
{
	s->ops = ops;
	s->chunks = chunks;
	check(!rtrs_geom_init(&s->geom, PEER_SRV_DEPTH, max_io, PEER_SRV_HDR));
	check(!fab_cm_create(&(struct fab_cm_conf){ .provider = addr->provider }, &s->cm));
	check(!fab_listen(s->cm, addr, &s->listener));
}

void peer_srv_stop(struct peer_srv *s)
{
	for (unsigned i = 0; i < PEER_SRV_CONS; i++)
		check(!s->cons[i].fab);
	fab_dereg_mr(s->own_mr);
	fab_pd_destroy(s->pd);
	fab_listener_destroy(s->listener);
	fab_cm_destroy(s->cm);
}
