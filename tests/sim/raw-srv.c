/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns connections of any number of lives of one client's path, and chunks with a region each.  One
 * thread; an actor of its host.  A connection ends drained; nothing here is repaired. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "raw-srv.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"
#include "sim-test.h"

#define CHUNK_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* ---- RNBD ---- */

static int sess_info(uint8_t *chunk)
{
	struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR };

	rnbd_sess_info_encode((struct rnbd_msg_sess_info *)chunk, RNBD_MSG_SESS_INFO_RSP, &info);
	return 0;
}

static int open_disk(struct raw_srv *s, uint8_t *chunk)
{
	struct rnbd_dev_info info = {
		.nsectors = RAW_SRV_DISK / RNBD_SECTOR_SIZE,
		.max_hw_sectors = RAW_SRV_IO / RNBD_SECTOR_SIZE,
		.physical_block_size = RNBD_SECTOR_SIZE,
		.logical_block_size = RNBD_SECTOR_SIZE,
		.max_segments = 1,
		.fua = true,
		.writeback = true,
	};

	rnbd_open_rsp_encode((struct rnbd_msg_open_rsp *)chunk, &info);
	s->nopens++;
	return 0;
}

static int do_io(struct raw_srv *s, const struct rtrs_req *req, uint8_t *chunk)
{
	struct rnbd_io io;
	int rc = rnbd_io_decode(req->usr, req->usr_len, req->data_len, req->dir == RTRS_DIR_READ, &io);

	if (rc)
		return rc;
	s->nrequests++;
	s->ops |= 1u << io.op;
	if (!range_ok(io.sector * RNBD_SECTOR_SIZE, io.bi_size, RAW_SRV_DISK))
		return -EIO;
	if (io.op == RNBD_OP_READ)
		memcpy(chunk, s->disk + io.sector * RNBD_SECTOR_SIZE, io.bi_size);
	else if (io.op == RNBD_OP_WRITE)
		memcpy(s->disk + io.sector * RNBD_SECTOR_SIZE, chunk, io.bi_size);
	return 0;
}

/* ---- answers ---- */

static void answer(struct raw_srv_con *con, const struct rtrs_req *req, unsigned msg_id, int status)
{
	struct raw_srv *s = con->srv;
	unsigned buf = msg_id % RAW_SRV_DEPTH;
	struct rtrs_rsp rsp = {
		.msg_id = msg_id, .status = status, .new_rkey = s->new_rkey, .req = req,
		.data = { .addr = (uintptr_t)s->chunks[buf], .length = req->data_len,
			  .lkey = s->own_mr->lkey },
		.rkey_rsp = { .addr = (uintptr_t)&s->key_rsp[buf],
			      .length = sizeof(s->key_rsp[buf]), .lkey = s->own_mr->lkey },
	};
	struct rtrs_wr_rsp w;

	fab_post_send(con->fab, rtrs_wr_response(&w, (uintptr_t)&con->send_cqe, &rsp));
}

/* The answer to a READ, that invalidates its key @times and says that it did or did not. */
static void answer_read(struct raw_srv_con *con, const struct rtrs_req *req, unsigned buf,
			unsigned times, bool says)
{
	struct raw_srv *s = con->srv;
	struct rtrs_req plain = *req;
	struct rtrs_rsp rsp = {
		.msg_id = buf, .req = &plain,
		.data = { .addr = (uintptr_t)s->chunks[buf], .length = req->data_len,
			  .lkey = s->own_mr->lkey },
	};
	struct rtrs_wr_rsp w;
	struct ibv_send_wr *wr, again;

	plain.need_inval = times;
	wr = rtrs_wr_response(&w, (uintptr_t)&con->send_cqe, &rsp);
	w.wr[w.n - 1].imm_data = rtrs_imm_io_rsp(buf, 0, says);
	if (times == 2) {
		again = w.wr[w.n - 2];
		w.wr[w.n - 2].next = &again;
	}
	fab_post_send(con->fab, wr);
}

static void write_late(struct raw_srv_con *con, unsigned buf)
{
	struct raw_srv *s = con->srv;
	struct ibv_sge sge = { .addr = (uintptr_t)s->chunks[buf], .length = s->last.len,
			       .lkey = s->own_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = s->last.addr, .rkey = s->last.key },
	};

	fab_post_send(con->fab, &wr);
}

static void send_imm(struct raw_srv_con *con, __be32 imm)
{
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = imm,
	};

	fab_post_send(con->fab, &wr);
}

static void send_key(struct raw_srv_con *con, unsigned buf, uint32_t len, bool with_imm)
{
	struct raw_srv *s = con->srv;
	struct ibv_sge sge = { .addr = (uintptr_t)&s->key_rsp[buf], .length = len,
			       .lkey = s->own_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge, .num_sge = len ? 1 : 0,
		.opcode = with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = rtrs_imm_io_rsp(buf, 0, false),
	};

	fab_post_send(con->fab, &wr);
}

static struct raw_srv_con *other_con(struct raw_srv_con *con)
{
	for (unsigned i = 0; i < RAW_SRV_CONS; i++) {
		struct raw_srv_con *o = &con->srv->cons[i];

		if (o->fab && !o->failed && o->cid && o->cid != con->cid)
			return o;
	}
	return NULL;
}

/* @req was executed with @status; its chunk's key is alive again. */
static void answer_badly(struct raw_srv_con *con, const struct rtrs_req *req, unsigned buf,
			 int status)
{
	struct raw_srv *s = con->srv;
	enum raw_evil evil = s->evil;

	s->evil = RAW_GOOD;
	switch (evil) {
	case RAW_UNKNOWN_ID:
		send_imm(con, rtrs_imm_io_rsp(RAW_SRV_DEPTH + 5, 0, false));
		return;
	case RAW_IDLE_ID:
		send_imm(con, rtrs_imm_io_rsp((buf + 1) % RAW_SRV_DEPTH, 0, false));
		return;
	case RAW_TWICE:
		answer(con, req, buf, status);
		answer(con, req, buf, status);
		return;
	case RAW_OTHER_CON:
		answer(other_con(con), req, buf, status);
		return;
	case RAW_UNKNOWN_IMM:
		send_imm(con, rtrs_imm_pack(5, buf));
		return;
	case RAW_ODD_STATUS:
		answer(con, req, buf, -511);
		return;
	case RAW_PLAIN_SEND:
		send_key(con, buf, 0, false);
		return;
	case RAW_INVAL_LIE:
		answer_read(con, req, buf, 0, true);
		return;
	case RAW_INVAL_SILENT:
		answer_read(con, req, buf, 1, false);
		return;
	case RAW_INVAL_TWICE:
		answer_read(con, req, buf, 2, true);
		return;
	case RAW_LATE_WRITE:
		write_late(con, buf);
		answer(con, req, buf, status);
		return;
	case RAW_KEY_WRONG_BUF:
		s->key_rsp[buf].buf_id = le16_put((uint16_t)((buf + 1) % RAW_SRV_DEPTH));
		send_key(con, buf, sizeof(s->key_rsp[buf]), true);
		return;
	case RAW_KEY_WRONG_TYPE:
		s->key_rsp[buf].type = le16_put(RTRS_MSG_INFO_RSP);
		send_key(con, buf, sizeof(s->key_rsp[buf]), true);
		return;
	case RAW_KEY_SHORT:
		send_key(con, buf, 4, true);
		return;
	case RAW_KEY_MISSING:
		send_imm(con, rtrs_imm_io_rsp(buf, status, false));
		return;
	case RAW_GOOD:
		break;
	}
	CHECK(!"no such thing to do");
}

/* The chunk under a fresh key. */
static void chunk_open(struct raw_srv *s, unsigned buf)
{
	fab_dereg_mr(s->mrs[buf]);
	s->mrs[buf] = fab_reg_mr(s->pd, s->chunks[buf], RAW_SRV_CHUNK, CHUNK_RIGHTS);
	CHECK(s->mrs[buf]);
}

static void rearm_key(struct raw_srv *s, unsigned buf)
{
	if (!s->new_rkey)
		return;
	if (!s->same_key)
		chunk_open(s, buf);
	rtrs_rkey_rsp_encode(&s->key_rsp[buf], (uint16_t)buf, s->mrs[buf]->rkey);
}

static void on_request(struct raw_srv_con *con, const struct ibv_wc *wc)
{
	struct raw_srv *s = con->srv;
	uint32_t buf, off, start, len;
	uint8_t copy[RTRS_HDR_MAX];
	struct rtrs_req req;
	const char *why;
	int type, status;

	rtrs_imm_io_req_split(&s->geom, rtrs_imm_payload(wc->imm_data), &buf, &off);
	CHECK(buf < RAW_SRV_DEPTH);
	if (s->new_rkey && !s->same_key) {
		fab_dereg_mr(s->mrs[buf]);
		s->mrs[buf] = NULL;
		s->nrevoked++;
	}
	CHECK(rtrs_req_extent(&s->geom, s->chunks[buf], off, wc->byte_len, &start, &len, &why) == 0);
	memcpy(copy, s->chunks[buf] + start, len);
	CHECK(rtrs_req_decode(&s->geom, copy, start, len, off, wc->byte_len, &req, &why) == 0);
	s->nasked += req.need_inval;
	if (req.dir == RTRS_DIR_READ && req.has_desc && !s->evil)
		s->last = req.desc;
	if (s->no_inval)
		req.need_inval = false;
	type = rnbd_msg_type(req.usr, req.usr_len);
	if (type == RNBD_MSG_SESS_INFO)
		status = sess_info(s->chunks[buf]);
	else if (type == RNBD_MSG_OPEN)
		status = open_disk(s, s->chunks[buf]);
	else if (type == RNBD_MSG_IO)
		status = do_io(s, &req, s->chunks[buf]);
	else
		status = 0;
	rearm_key(s, buf);
	if (type == RNBD_MSG_IO && s->evil)
		answer_badly(con, &req, buf, status);
	else
		answer(con, &req, buf, status);
}

/* ---- set-up ---- */

static void post_empty(struct raw_srv_con *con, unsigned n)
{
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->recv_cqe };

	while (n--)
		fab_post_recv(con->fab, &wr);
}

static void on_info(struct raw_srv_con *con)
{
	struct raw_srv *s = con->srv;
	struct rtrs_region regions[RAW_SRV_DEPTH];
	struct ibv_sge sge = { .addr = (uintptr_t)s->info_rsp, .length = sizeof(s->info_rsp),
			       .lkey = s->own_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge,
				  .num_sge = 1, .opcode = IBV_WR_SEND };

	con->info_seen = true;
	for (unsigned i = 0; i < RAW_SRV_DEPTH; i++) {
		chunk_open(s, i);
		regions[i] = (struct rtrs_region){ .addr = (uintptr_t)s->chunks[i],
						   .key = s->mrs[i]->rkey, .len = RAW_SRV_CHUNK };
	}
	rtrs_info_rsp_encode((struct rtrs_msg_info_rsp *)s->info_rsp, regions, RAW_SRV_DEPTH);
	for (unsigned i = 0; i < RAW_SRV_CONS; i++) {
		if (s->cons[i].fab && !s->cons[i].failed)
			post_empty(&s->cons[i], 2 * RAW_SRV_DEPTH);
	}
	fab_post_send(con->fab, &wr);
}

static void wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct raw_srv_con *con = container_of(cqe, struct raw_srv_con, recv_cqe);
	struct ibv_send_wr ack;
	unsigned type;

	if (wc->status != IBV_WC_SUCCESS) {
		con->failed = true;
		return;
	}
	if (con->cid == 0 && !con->info_seen) {
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

void raw_srv_heartbeat(struct raw_srv *s)
{
	struct ibv_send_wr wr;

	for (unsigned i = 0; i < RAW_SRV_CONS; i++) {
		struct raw_srv_con *con = &s->cons[i];

		if (!con->fab || con->failed || con->cid)
			continue;
		rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_MSG_IMM);
		fab_post_send(con->fab, &wr);
	}
}

static void wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		container_of(cqe, struct raw_srv_con, send_cqe)->failed = true;
}

static void make_memory(struct raw_srv *s, struct fab_conn *fab)
{
	if (s->pd)
		return;
	CHECK(fab_pd_create(fab, &s->pd) == 0);
	s->own_mr = fab_reg_mr(s->pd, s, sizeof(*s), IBV_ACCESS_LOCAL_WRITE);
	CHECK(s->own_mr);
}

static void on_connect(struct raw_srv *s, const struct fab_event *ev)
{
	struct fab_qp_attr attr = { .max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 1 };
	struct rtrs_conn_rsp rsp = {
		.queue_depth = RAW_SRV_DEPTH, .max_io_size = RAW_SRV_IO,
		.max_hdr_size = RAW_SRV_CHUNK - RAW_SRV_IO, .new_rkey = s->new_rkey,
	};
	struct raw_srv_con *con = s->cons;
	struct rtrs_msg_conn_rsp m;
	struct rtrs_conn_req req;
	struct ibv_sge sge;
	struct ibv_recv_wr info = { .sg_list = &sge, .num_sge = 1 };
	const char *why;

	while (con->fab)
		con++;
	assert(con < s->cons + RAW_SRV_CONS);
	CHECK(rtrs_conn_req_decode(ev->private_data, ev->private_data_len, &req, &why) == 0);
	make_memory(s, ev->conn);
	*con = (struct raw_srv_con){ .srv = s, .fab = ev->conn, .cid = req.cid };
	con->recv_cqe.done = wc_recv;
	con->send_cqe.done = wc_send;
	fab_conn_set_context(con->fab, con);
	CHECK(fab_create_qp(con->fab, s->pd, &attr) == 0);
	sge = (struct ibv_sge){ .addr = (uintptr_t)con->info, .length = sizeof(con->info),
				.lkey = s->own_mr->lkey };
	info.wr_id = (uintptr_t)&con->recv_cqe;
	if (!con->cid)
		CHECK(fab_post_recv(con->fab, &info) == 0);
	rtrs_conn_rsp_encode(&m, &rsp);
	CHECK(fab_accept(con->fab, &m, sizeof(m)) == 0);
}

/* ---- the actor ---- */

static void con_poll(struct raw_srv_con *con)
{
	short events;

	for (;;) {
		int n = fab_dispatch(con->fab, 64);

		if (n == -ENOTCONN) {
			fab_conn_destroy(con->fab);
			con->fab = NULL;
			return;
		}
		if (n == 0 && fab_arm(con->fab, &events) == 0)
			return;
	}
}

static void raw_run(struct sim_actor *a)
{
	struct raw_srv *s = container_of(a, struct raw_srv, actor);
	struct fab_event ev;

	while (fab_cm_get_event(s->cm, &ev) == 1) {
		if (ev.type == FAB_EVENT_CONNECT_REQUEST)
			on_connect(s, &ev);
		else if (ev.type == FAB_EVENT_DISCONNECTED)
			fab_disconnect(ev.conn);
	}
	for (unsigned i = 0; i < RAW_SRV_CONS; i++) {
		if (s->cons[i].fab)
			con_poll(&s->cons[i]);
	}
}

static bool raw_ready(struct sim_actor *a)
{
	struct raw_srv *s = container_of(a, struct raw_srv, actor);

	if (sim_fd_ready(fab_cm_fd(s->cm)))
		return true;
	for (unsigned i = 0; i < RAW_SRV_CONS; i++) {
		if (s->cons[i].fab && sim_fd_ready(fab_conn_fd(s->cons[i].fab)))
			return true;
	}
	return false;
}

void raw_srv_start(struct raw_srv *s, bool new_rkey)
{
	struct fab_addr addr = sim_addr("srv", RTRS_PORT);
	struct sim_host *h = sim_host_find("srv");
	struct sim_place before = sim_enter(h, h->epoch);

	memset(s, 0, sizeof(*s));
	s->new_rkey = new_rkey;
	CHECK(rtrs_geom_init(&s->geom, RAW_SRV_DEPTH, RAW_SRV_IO, RAW_SRV_CHUNK - RAW_SRV_IO) == 0);
	CHECK(fab_cm_create(&(struct fab_cm_conf){ .provider = &fab_sim }, &s->cm) == 0);
	CHECK(fab_listen(s->cm, &addr, &s->listener) == 0);
	s->actor.ready = raw_ready;
	s->actor.run = raw_run;
	sim_actor_add(&s->actor);
	sim_leave(before);
}

void raw_srv_stop(struct raw_srv *s)
{
	for (unsigned i = 0; i < RAW_SRV_CONS; i++)
		CHECK(!s->cons[i].fab);
	for (unsigned i = 0; i < RAW_SRV_DEPTH; i++)
		fab_dereg_mr(s->mrs[i]);
	fab_dereg_mr(s->own_mr);
	fab_pd_destroy(s->pd);
	fab_listener_destroy(s->listener);
	fab_cm_destroy(s->cm);
	sim_actor_del(&s->actor);
}
