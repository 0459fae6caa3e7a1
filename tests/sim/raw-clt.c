/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one path of a test's own.  One thread; an actor of its host polls it.  It ends when the test
 * says so; a lost connection is noted and told, never repaired. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "raw-clt.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"
#include "sim-test.h"

#define WAIT_MS 60000

/* ---- completions ---- */

static void wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		container_of(cqe, struct raw_con, send_cqe)->failed = true;
}

static void post_empty(struct raw_con *con, unsigned n)
{
	struct ibv_sge sge = { .length = sizeof(con->rkeys[0]) };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->recv_cqe };

	if (con->clt->rsp.new_rkey) {
		sge.lkey = con->clt->mr->lkey;
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	while (n--) {
		sge.addr = (uintptr_t)&con->rkeys[con->nposted++ % RAW_RECVS];
		fab_post_recv(con->fab, &wr);
	}
}

/* @rkey_rsp: what it carried, or NULL. */
static void got_answer(struct raw_con *con, unsigned type, uint32_t payload,
		       const struct rtrs_msg_rkey_rsp *rkey_rsp)
{
	struct raw_clt *c = con->clt;
	const char *why;
	uint32_t msg_id;
	int status;

	rtrs_imm_io_rsp_split(payload, &msg_id, &status);
	CHECK(msg_id < RAW_BUFS && !c->answers[msg_id].done && c->rsp.new_rkey == !!rkey_rsp);
	c->answers[msg_id] = (struct raw_rsp){
		.done = true, .type = type, .status = status,
		.cid = (unsigned)(con - c->cons), .after_inv = con->ninv > 0,
		.old_rkey = c->rbufs[msg_id].rkey,
	};
	if (rkey_rsp)
		CHECK(rtrs_rkey_rsp_decode(rkey_rsp, sizeof(*rkey_rsp), &c->geom, msg_id,
					   &c->rbufs[msg_id].rkey, &why) == 0);
	con->ninv = 0;
}

static void wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct raw_con *con = container_of(cqe, struct raw_con, recv_cqe);
	struct raw_clt *c = con->clt;
	const struct rtrs_msg_rkey_rsp *rkey_rsp = NULL;
	struct rtrs_msg_rkey_rsp msg;
	struct ibv_send_wr ack;
	unsigned type;

	if (wc->status != IBV_WC_SUCCESS) {
		con->failed = true;
		return;
	}
	if (!c->info_done) {
		const char *why;

		CHECK(rtrs_info_rsp_decode(c->info_rsp, wc->byte_len, &c->geom, c->rbufs, &why) == 0);
		c->info_done = true;
		return;
	}
	msg = con->rkeys[con->nmet++ % RAW_RECVS];
	post_empty(con, 1);
	if (wc->opcode == IBV_WC_RECV && (wc->wc_flags & IBV_WC_WITH_IMM)) {
		CHECK(wc->byte_len == sizeof(msg));
		rkey_rsp = &msg;
	} else if (wc->opcode == IBV_WC_RECV) {
		CHECK(wc->wc_flags & IBV_WC_WITH_INV);
		con->ninv++;
		return;
	}
	type = rtrs_imm_type(wc->imm_data);
	if (type == RTRS_IO_RSP_IMM || type == RTRS_IO_RSP_W_INV_IMM)
		got_answer(con, type, rtrs_imm_payload(wc->imm_data), rkey_rsp);
	if (type == RTRS_HB_MSG_IMM && !c->mute) {
		rtrs_wr_heartbeat(&ack, (uintptr_t)&con->send_cqe, RTRS_HB_ACK_IMM);
		fab_post_send(fab, &ack);
		c->nhb++;
	}
}

/* ---- the actor ---- */

static void con_event(struct raw_clt *c, const struct fab_event *ev)
{
	struct raw_con *con = fab_conn_context(ev->conn);
	const char *why;

	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		con->status = 2;
		break;
	case FAB_EVENT_ESTABLISHED:
		CHECK(rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, false, &c->rsp,
					   &why) == 0);
		con->up = true;
		con->status = c->rsp.status;
		break;
	case FAB_EVENT_REJECTED:
		CHECK(rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, true, &c->rsp,
					   &why) == 0);
		con->status = c->rsp.status;
		con->failed = true;
		break;
	case FAB_EVENT_UNREACHABLE:
		con->status = -ECONNRESET;
		con->failed = true;
		break;
	case FAB_EVENT_DISCONNECTED:
		fab_disconnect(ev->conn);
		con->failed = true;
		break;
	default:
		CHECK(!"event for a passive side");
	}
}

static void con_poll(struct raw_con *con)
{
	short events;

	while (!con->drained) {
		int n = fab_dispatch(con->fab, 64);

		if (n == -ENOTCONN)
			con->drained = con->failed = true;
		else if (n == 0 && fab_arm(con->fab, &events) == 0)
			break;
	}
}

static void raw_run(struct sim_actor *a)
{
	struct raw_clt *c = container_of(a, struct raw_clt, actor);
	struct fab_event ev;

	while (fab_cm_get_event(c->cm, &ev) == 1)
		con_event(c, &ev);
	for (unsigned i = 0; i < RAW_CONS; i++) {
		if (c->cons[i].up)
			con_poll(&c->cons[i]);
	}
}

static bool raw_ready(struct sim_actor *a)
{
	struct raw_clt *c = container_of(a, struct raw_clt, actor);

	if (sim_fd_ready(fab_cm_fd(c->cm)))
		return true;
	for (unsigned i = 0; i < RAW_CONS; i++) {
		if (c->cons[i].up && !c->cons[i].drained && sim_fd_ready(fab_conn_fd(c->cons[i].fab)))
			return true;
	}
	return false;
}

/* ---- life ---- */

void raw_clt_init(struct raw_clt *c, const char *host, uint8_t path, uint8_t sess, unsigned ncons)
{
	struct sim_host *h = sim_host_find(host);
	struct sim_place before = sim_enter(h, h->epoch);

	assert(ncons <= RAW_CONS);
	memset(c, 0, sizeof(*c));
	CHECK(fab_cm_create(&(struct fab_cm_conf){ .provider = &fab_sim }, &c->cm) == 0);
	c->req.cid_num = (uint16_t)ncons;
	c->req.recon_cnt = 1;
	c->req.first_conn = true;
	memset(c->req.sess_uuid, path, RTRS_UUID_LEN);
	memset(c->req.paths_uuid, sess, RTRS_UUID_LEN);
	c->actor.ready = raw_ready;
	c->actor.run = raw_run;
	sim_actor_add(&c->actor);
	sim_leave(before);
}

static bool con_settled(void *arg)
{
	const struct raw_con *con = arg;

	return con->up || con->failed;
}

static bool con_resolved(void *arg)
{
	const struct raw_con *con = arg;

	return con->status == 2 || con->failed;
}

static bool con_over(void *arg)
{
	const struct raw_con *con = arg;

	return !con->up || con->drained;
}

/* ORDER: windows go when the connections have drained and before they are destroyed. */
void raw_clt_hang_up(struct raw_clt *c)
{
	for (unsigned i = 0; i < RAW_CONS; i++) {
		struct raw_con *con = &c->cons[i];

		if (!con->fab)
			continue;
		if (con->up) {
			short events;

			fab_disconnect(con->fab);
			if (!con->drained)
				fab_arm(con->fab, &events);
		}
		CHECK(sim_run_until(con_over, con, WAIT_MS));
	}
	for (unsigned i = 0; i < RAW_BUFS; i++) {
		CHECK(fab_dealloc_mw(c->windows[i]) == 0);
		c->windows[i] = NULL;
	}
	for (unsigned i = 0; i < RAW_CONS; i++) {
		fab_conn_destroy(c->cons[i].fab);
		memset(&c->cons[i], 0, sizeof(c->cons[i]));
	}
	c->info_done = false;
}

void raw_clt_fini(struct raw_clt *c)
{
	raw_clt_hang_up(c);
	fab_dereg_mr(c->mr);
	fab_pd_destroy(c->pd);
	fab_cm_destroy(c->cm);
	sim_actor_del(&c->actor);
}

static void con_create_qp(struct raw_clt *c, struct raw_con *con)
{
	struct fab_qp_attr attr = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2 };

	if (!c->pd) {
		CHECK(fab_pd_create(con->fab, &c->pd) == 0);
		c->mr = fab_reg_mr(c->pd, c, sizeof(*c),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_MW_BIND);
		CHECK(c->mr);
	}
	CHECK(fab_create_qp(con->fab, c->pd, &attr) == 0);
}

/* What is sent once all but this has been done. */
static void con_request(struct raw_clt *c, struct raw_con *con)
{
	struct rtrs_msg_conn_req m;
	struct ibv_sge sge;
	struct ibv_recv_wr info = {
		.wr_id = (uintptr_t)&con->recv_cqe, .sg_list = &sge, .num_sge = 1,
	};

	if (con == &c->cons[0]) {
		sge = (struct ibv_sge){ .addr = (uintptr_t)c->info_rsp,
					.length = sizeof(c->info_rsp), .lkey = c->mr->lkey };
		CHECK(fab_post_recv(con->fab, &info) == 0);
	}
	c->req.cid = (uint16_t)(con - c->cons);
	rtrs_conn_req_encode(&m, &c->req);
	CHECK(fab_connect(con->fab, &m, sizeof(m)) == 0);
}

int raw_clt_connect(struct raw_clt *c, unsigned cid)
{
	struct raw_con *con = &c->cons[cid];
	struct fab_addr to = sim_addr("srv", RTRS_PORT);
	int status;

	con->clt = c;
	con->recv_cqe.done = wc_recv;
	con->send_cqe.done = wc_send;
	CHECK(fab_conn_create(c->cm, con, &con->fab) == 0);
	CHECK(fab_resolve(con->fab, NULL, &to) == 0);
	CHECK(sim_run_until(con_resolved, con, WAIT_MS) && !con->failed);
	con_create_qp(c, con);
	con_request(c, con);
	CHECK(sim_run_until(con_settled, con, WAIT_MS));
	status = con->status;
	if (!con->up) {
		fab_conn_destroy(con->fab);
		memset(con, 0, sizeof(*con));
	} else if (!cid) {
		CHECK(c->rsp.queue_depth <= RAW_BUFS);
		CHECK(rtrs_geom_init(&c->geom, c->rsp.queue_depth, c->rsp.max_io_size,
				     c->rsp.max_hdr_size) == 0);
	}
	return status;
}

bool raw_clt_lost(struct raw_clt *c)
{
	for (unsigned i = 0; i < RAW_CONS; i++) {
		if (c->cons[i].up && c->cons[i].failed)
			return true;
	}
	return false;
}

static bool info_settled(void *arg)
{
	struct raw_clt *c = arg;

	return c->info_done || raw_clt_lost(c);
}

int raw_clt_info(struct raw_clt *c, const char *name)
{
	struct ibv_sge sge = { .addr = (uintptr_t)c->info, .length = sizeof(c->info),
			       .lkey = c->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&c->cons[0].send_cqe, .sg_list = &sge,
				  .num_sge = 1, .opcode = IBV_WR_SEND };
	short events;

	rtrs_info_req_encode((struct rtrs_msg_info_req *)c->info, name);
	CHECK(fab_arm(c->cons[0].fab, &events) == 0);
	CHECK(fab_post_send(c->cons[0].fab, &wr) == 0);
	CHECK(sim_run_until(info_settled, c, WAIT_MS));
	if (!c->info_done)
		return -ECONNRESET;
	for (unsigned i = 0; i < c->req.cid_num; i++) {
		post_empty(&c->cons[i], RAW_RECVS);
		if (fab_arm(c->cons[i].fab, &events))
			CHECK(!"nothing can have come yet");
	}
	return 0;
}

/* ---- requests ---- */

static void fill_bind(struct raw_clt *c, unsigned buf, uint32_t len, struct ibv_send_wr *bind)
{
	struct ibv_mw *mw = c->windows[buf];

	if (!mw)
		mw = c->windows[buf] = fab_alloc_mw(c->pd, IBV_MW_TYPE_2);
	CHECK(mw && !sim_mw_bound(mw));
	*bind = (struct ibv_send_wr){
		.wr_id = (uintptr_t)&c->cons[0].send_cqe,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = { .mr = c->mr, .addr = (uintptr_t)c->data[buf], .length = len,
				       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
		},
	};
}

void raw_clt_submit(struct raw_clt *c, unsigned cid, unsigned buf, enum rtrs_dir dir,
		    const void *usr, uint16_t usr_len, uint32_t data_len, bool need_inval)
{
	struct rtrs_req req = {
		.dir = dir, .data_len = data_len, .usr_len = usr_len,
		.has_desc = dir == RTRS_DIR_READ && data_len, .need_inval = need_inval,
		.desc = { .addr = (uintptr_t)c->data[buf], .key = c->mr->rkey, .len = data_len },
	};
	struct ibv_sge data = { .addr = (uintptr_t)c->data[buf], .length = data_len,
				.lkey = c->mr->lkey };
	struct ibv_sge hdr = { .addr = (uintptr_t)c->hdr[buf], .lkey = c->mr->lkey };
	struct ibv_send_wr bind, *head;
	struct rtrs_wr_req w;

	memcpy(c->hdr[buf], usr, usr_len);
	if (need_inval) {
		fill_bind(c, buf, data_len, &bind);
		req.desc.key = bind.bind_mw.rkey;
	}
	hdr.length = (uint32_t)rtrs_req_encode(&req, c->hdr[buf]);
	rtrs_wr_request(&w, (uintptr_t)&c->cons[cid].send_cqe, false, &c->geom, buf,
			&c->rbufs[buf], &req,
			dir == RTRS_DIR_WRITE && data_len ? &data : NULL, &hdr);
	head = &w.wr;
	if (need_inval) {
		bind.next = &w.wr;
		head = &bind;
	}
	memset(&c->answers[buf], 0, sizeof(c->answers[buf]));
	CHECK(fab_post_send(c->cons[cid].fab, head) == 0);
	if (need_inval)
		c->windows[buf]->rkey = bind.bind_mw.rkey;
}

struct wait {
	struct raw_clt *c;
	unsigned buf;
};

static bool answered(void *arg)
{
	const struct wait *w = arg;

	return w->c->answers[w->buf].done || raw_clt_lost(w->c);
}

bool raw_clt_wait(struct raw_clt *c, unsigned buf, uint64_t ms)
{
	struct wait w = { .c = c, .buf = buf };

	sim_run_until(answered, &w, ms);
	return c->answers[buf].done;
}

void raw_clt_io_start(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op,
		      uint64_t sector, uint32_t len, bool need_inval)
{
	struct rnbd_io io = { .op = op, .sector = sector, .bi_size = len };
	enum rtrs_dir dir = op == RNBD_OP_READ || op == RNBD_OP_FLUSH ? RTRS_DIR_READ :
									RTRS_DIR_WRITE;
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	raw_clt_submit(c, cid, buf, dir, &m, sizeof(m),
		       op == RNBD_OP_READ || op == RNBD_OP_WRITE ? len : 0, need_inval);
}

int raw_clt_io(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op, uint64_t sector,
	       uint32_t len, bool need_inval)
{
	raw_clt_io_start(c, cid, buf, op, sector, len, need_inval);
	if (!raw_clt_wait(c, buf, WAIT_MS))
		return -ECONNRESET;
	return c->answers[buf].status;
}

int raw_clt_open(struct raw_clt *c, const char *name, enum rnbd_access_mode mode)
{
	struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR };
	struct rnbd_msg_sess_info sess;
	struct rnbd_msg_open open;
	int status = 0;

	for (unsigned i = 0; i < c->req.cid_num && !status; i++)
		status = raw_clt_connect(c, i);
	if (!status)
		status = raw_clt_info(c, name);
	if (status)
		return status;
	rnbd_sess_info_encode(&sess, RNBD_MSG_SESS_INFO, &info);
	raw_clt_submit(c, 0, 0, RTRS_DIR_READ, &sess, sizeof(sess), sizeof(sess), false);
	if (!raw_clt_wait(c, 0, WAIT_MS))
		return -ECONNRESET;
	CHECK(rnbd_open_encode(&open, "disk0", mode) == 0);
	raw_clt_submit(c, 0, 0, RTRS_DIR_READ, &open, sizeof(open),
		       sizeof(struct rnbd_msg_open_rsp), false);
	if (!raw_clt_wait(c, 0, WAIT_MS))
		return -ECONNRESET;
	return c->answers[0].status;
}
