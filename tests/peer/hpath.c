/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the connections, the memory and the keys of its paths.  What the server does not do in time, or what
 * the fabric refuses, ends the program. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hpath.h"
#include "rtrs-imm.h"
#include "rtrs-wr.h"

#define INFO_LEN (1u << 20)
#define STAGING_LEN (8u << 20)
#define KEYS_LEN (HCONS_MAX * HRECVS * sizeof(struct rtrs_msg_rkey_rsp))
#define MEM_LEN (INFO_LEN + STAGING_LEN + HRESULT_LEN + KEYS_LEN)
#define CON0_RECVS 1024

static const char *outcome_name(int outcome)
{
	static char text[64];

	if (outcome == HCLOSED)
		return "path closed";
	if (outcome == HANY)
		return "an answer or the end of the path";
	snprintf(text, sizeof(text), "%s (%d)", outcome ? strerror(-outcome) : "success", outcome);
	return text;
}

void expect_outcome(int got, int want)
{
	char text[64];

	if (got == want || want == HANY)
		return;
	snprintf(text, sizeof(text), "%s", outcome_name(got));
	die("%s, expected: %s", text, outcome_name(want));
}

/* ---- events and completions ---- */

/* What any of its connections is told holds for the path. */
static void take_geometry(struct hpath *p, const struct fab_event *ev)
{
	const char *why;

	if (rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, false, &p->rsp, &why))
		die("accepted with %zu bytes: %s", ev->private_data_len, why);
	expect(!p->rsp.status && rtrs_info_rsp_len(p->rsp.queue_depth) <= INFO_LEN);
	expect(!rtrs_geom_init(&p->geom, p->rsp.queue_depth, p->rsp.max_io_size,
			       p->rsp.max_hdr_size));
	if (!p->rbufs)
		p->rbufs = calloc(p->rsp.queue_depth, sizeof(*p->rbufs));
	expect(p->rbufs);
}

void hpath_event(const struct fab_event *ev)
{
	struct hcon *con = fab_conn_context(ev->conn);
	struct rtrs_conn_rsp rsp;
	const char *why;

	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		con->state = H_RESOLVED;
		break;
	case FAB_EVENT_ESTABLISHED:
		con->state = H_UP;
		take_geometry(con->path, ev);
		break;
	case FAB_EVENT_REJECTED:
		con->state = H_REFUSED;
		if (rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, true, &rsp, &why))
			die("rejected with %zu bytes: %s", ev->private_data_len, why);
		con->status = rsp.status;
		break;
	case FAB_EVENT_UNREACHABLE:
		con->state = H_UNREACHABLE;
		con->status = ev->status;
		break;
	case FAB_EVENT_DISCONNECTED:
		fab_disconnect(ev->conn);
		break;
	default:
		die("event %d for a client", ev->type);
	}
}

static struct rtrs_msg_rkey_rsp *key_recv(struct hpath *p, unsigned cid, unsigned turn)
{
	return &p->keys[cid * HRECVS + turn % HRECVS];
}

static void post_recvs(struct hpath *p, unsigned cid, unsigned n)
{
	struct hcon *con = &p->cons[cid];

	while (n--) {
		struct ibv_sge sge = { (uintptr_t)key_recv(p, cid, con->recvs_posted++),
				       sizeof(struct rtrs_msg_rkey_rsp), p->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = (uintptr_t)con, .sg_list = &sge,
					  .num_sge = p->rsp.new_rkey ? 1 : 0 };

		if (fab_post_recv(con->conn, &wr))
			return;		/* the connection has failed: polling tells */
	}
}

static void heartbeat(struct hpath *p, unsigned cid)
{
	struct ibv_send_wr wr;

	rtrs_wr_heartbeat(&wr, (uintptr_t)&p->cons[cid], RTRS_HB_ACK_IMM);
	if (!p->mute)
		fab_post_send(p->cons[cid].conn, &wr);
}

static void answer_arrived(struct hpath *p, unsigned cid, __be32 imm,
			   const struct rtrs_msg_rkey_rsp *key)
{
	struct hanswer *answer;
	uint32_t msg_id;
	const char *why;
	int status;

	rtrs_imm_io_rsp_split(rtrs_imm_payload(imm), &msg_id, &status);
	if (msg_id >= HANSWERS)
		die("an answer to message %u", msg_id);
	answer = &p->answers[msg_id];
	answer->n++;
	answer->cid = cid;
	answer->type = rtrs_imm_type(imm);
	answer->status = status;
	answer->after_inv = p->cons[cid].ninv > 0;
	p->cons[cid].ninv = 0;
	if (!!key != p->rsp.new_rkey || msg_id >= p->geom.queue_depth)
		die("an answer to message %u with%s a key", msg_id, key ? "" : "out");
	answer->old_rkey = p->rbufs[msg_id].rkey;
	if (key && rtrs_rkey_rsp_decode(key, sizeof(*key), &p->geom, msg_id,
					&p->rbufs[msg_id].rkey, &why))
		die("RKEY_RSP: %s", why);
}

/* @key: what came with it, or NULL. */
static void con_immediate(struct hpath *p, unsigned cid, __be32 imm,
			  const struct rtrs_msg_rkey_rsp *key)
{
	switch (rtrs_imm_type(imm)) {
	case RTRS_IO_RSP_IMM:
	case RTRS_IO_RSP_W_INV_IMM:
		answer_arrived(p, cid, imm, key);
		break;
	case RTRS_HB_MSG_IMM:
		p->hb_msgs++;
		heartbeat(p, cid);
		break;
	case RTRS_HB_ACK_IMM:
		p->hb_acks++;
		break;
	default:
		die("immediate %#x from the server", be32toh(imm));
	}
	post_recvs(p, cid, 1);
}

static void info_arrived(struct hpath *p, uint32_t len)
{
	const char *why;

	if (p->info_done)
		die("a second SEND from the server");
	if (rtrs_info_rsp_decode(p->info_buf, len, &p->geom, p->rbufs, &why))
		die("INFO_RSP: %s", why);
	p->info_done = true;
	for (unsigned cid = 0; cid < p->cid_num && cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP)
			post_recvs(p, cid, cid ? 2 * p->geom.queue_depth : CON0_RECVS);
	}
}

static void con_completion(struct hpath *p, unsigned cid, const struct ibv_wc *wc)
{
	const struct rtrs_msg_rkey_rsp *key;

	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		key = key_recv(p, cid, p->cons[cid].recvs_met++);
		if (wc->opcode != IBV_WC_RECV)
			key = NULL;
		else if (wc->byte_len != sizeof(*key))
			die("%u bytes with an immediate", wc->byte_len);
		con_immediate(p, cid, wc->imm_data, key);
	} else if (wc->opcode == IBV_WC_RECV && (wc->wc_flags & IBV_WC_WITH_INV)) {
		p->cons[cid].recvs_met++;
		p->cons[cid].ninv++;
		post_recvs(p, cid, 1);
	} else if (wc->opcode == IBV_WC_RECV) {
		info_arrived(p, wc->byte_len);
	}
}

bool hpath_poll(struct hcon *con)
{
	struct ibv_wc wc[16];
	int n = fab_poll(con->conn, wc, ARRAY_SIZE(wc));

	if (n == -ENOTCONN) {
		con->state = H_CLOSED;
		return true;
	}
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			con_completion(con->path, (unsigned)(con - con->path->cons), &wc[i]);
	}
	return n > 0;
}

/* ---- set-up ---- */

void hpath_init(struct hpath *p, struct fab_cm *cm, const struct fab_addr *dst)
{
	memset(p, 0, sizeof(*p));
	p->cm = cm;
	p->dst = *dst;
	p->cid_num = 2;
	p->recon_cnt = 1;
	p->first_conn = true;
	p->mem = p->info_buf = calloc(1, MEM_LEN);
	expect(p->mem);
	p->result = p->mem + INFO_LEN + STAGING_LEN;
	p->keys = (void *)(p->result + HRESULT_LEN);
	for (unsigned i = 0; i < HCONS_MAX; i++)
		p->cons[i].path = p;
}

void hpath_conn_req(const struct hpath *p, unsigned cid, struct rtrs_msg_conn_req *m)
{
	struct rtrs_conn_req req = { .cid = (uint16_t)cid, .cid_num = p->cid_num,
				     .recon_cnt = p->recon_cnt, .first_conn = p->first_conn };

	memcpy(req.sess_uuid, p->sess_uuid, RTRS_UUID_LEN);
	memcpy(req.paths_uuid, p->paths_uuid, RTRS_UUID_LEN);
	rtrs_conn_req_encode(m, &req);
}

void hpath_connect_start(struct hpath *p, unsigned cid, const void *pdata, size_t len)
{
	struct hcon *con = &p->cons[cid];
	struct fab_qp_attr attr = { .max_send_sge = 1 };
	struct fab_device_attr dev;

	expect(cid < HCONS_MAX && !con->conn);
	con->state = H_NONE;
	expect(!fab_conn_create(p->cm, con, &con->conn));
	expect(!fab_resolve(con->conn, &p->src, &p->dst));
	HWAIT(con->state != H_NONE);
	if (con->state != H_RESOLVED)
		die("the server's address cannot be resolved: %s", strerror(-con->status));
	if (!p->pd) {
		expect(!fab_pd_create(con->conn, &p->pd));
		p->mr = fab_reg_mr(p->pd, p->mem, MEM_LEN,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | p->access);
		expect(p->mr);
	}
	expect(!fab_query_device(con->conn, &dev));
	attr.max_send_wr = MIN(1024u, dev.max_qp_wr);
	attr.max_recv_wr = MIN((uint32_t)HRECVS, dev.max_qp_wr);
	expect(!fab_create_qp(con->conn, p->pd, &attr));
	expect(!fab_connect(con->conn, pdata, len));
}

int hpath_connect_end(struct hpath *p, unsigned cid)
{
	struct hcon *con = &p->cons[cid];

	HWAIT(con->state != H_RESOLVED);
	if (con->state == H_UNREACHABLE)
		die("no answer to a connection request: %s", strerror(-con->status));
	if (con->state == H_REFUSED) {
		fab_conn_destroy(con->conn);
		con->conn = NULL;
		return con->status;
	}
	return 0;
}

int hpath_connect_with(struct hpath *p, unsigned cid, const void *pdata, size_t len)
{
	hpath_connect_start(p, cid, pdata, len);
	return hpath_connect_end(p, cid);
}

int hpath_connect(struct hpath *p, unsigned cid)
{
	struct rtrs_msg_conn_req m;

	hpath_conn_req(p, cid, &m);
	return hpath_connect_with(p, cid, &m, sizeof(m));
}

void hpath_connect_all(struct hpath *p)
{
	for (unsigned cid = 0; cid < p->cid_num; cid++)
		expect_outcome(hpath_connect(p, cid), 0);
}

/* ---- posting ---- */

static struct ibv_sge stage(struct hpath *p, const void *bytes, size_t len)
{
	uint8_t *to;

	expect(len <= STAGING_LEN);
	if (p->staged + len > STAGING_LEN)
		p->staged = 0;
	to = p->mem + INFO_LEN + p->staged;
	if (len)
		memcpy(to, bytes, len);
	p->staged += len;
	return (struct ibv_sge){ (uintptr_t)to, (uint32_t)len, p->mr->lkey };
}

void hpath_send(struct hpath *p, unsigned cid, const void *bytes, size_t len)
{
	struct ibv_sge sge = stage(p, bytes, len);
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&p->cons[cid], .opcode = IBV_WR_SEND,
				  .sg_list = &sge, .num_sge = len ? 1 : 0 };

	/* An error says that the connection has failed, which polling will tell. */
	fab_post_send(p->cons[cid].conn, &wr);
}

void hwrite_fill(struct hwrite *w, struct hpath *p, unsigned cid, const void *bytes, size_t len,
		 uint64_t addr, uint32_t rkey, bool with_imm, uint32_t imm)
{
	w->sge = stage(p, bytes, len);
	w->wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)&p->cons[cid],
		.opcode = with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.sg_list = &w->sge,
		.num_sge = len ? 1 : 0,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};
	if (with_imm)
		w->wr.imm_data = htobe32(imm);
}

void hpath_write(struct hpath *p, unsigned cid, const void *bytes, size_t len, uint64_t addr,
		 uint32_t rkey, bool with_imm, uint32_t imm)
{
	struct hwrite w;

	hwrite_fill(&w, p, cid, bytes, len, addr, rkey, with_imm, imm);
	fab_post_send(p->cons[cid].conn, &w.wr);
}

/* ---- INFO ---- */

void hpath_post_info_recv(struct hpath *p)
{
	struct ibv_sge sge = { (uintptr_t)p->info_buf,
			       (uint32_t)rtrs_info_rsp_len(p->geom.queue_depth), p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&p->cons[0], .sg_list = &sge, .num_sge = 1 };

	expect(!fab_post_recv(p->cons[0].conn, &wr));
}

bool hpath_any_closed(const struct hpath *p)
{
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_CLOSED)
			return true;
	}
	return false;
}

int hpath_wait_info(struct hpath *p)
{
	HWAIT(p->info_done || hpath_any_closed(p));
	return p->info_done ? 0 : HCLOSED;
}

int hpath_info(struct hpath *p)
{
	struct rtrs_msg_info_req m;

	rtrs_info_req_encode(&m, p->name);
	hpath_post_info_recv(p);
	hpath_send(p, 0, &m, sizeof(m));
	return hpath_wait_info(p);
}

void hpath_up(struct hpath *p)
{
	hpath_connect_all(p);
	expect_outcome(hpath_info(p), 0);
}

/* ---- outcomes ---- */

int hpath_wait_answer(struct hpath *p, uint32_t msg_id)
{
	const struct hanswer *a = &p->answers[msg_id];

	HWAIT(a->n >= a->posted || hpath_any_closed(p));
	return a->n >= a->posted ? a->status : HCLOSED;
}

static bool all_closed(const struct hpath *p)
{
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP || p->cons[cid].state == H_RESOLVED)
			return false;
	}
	return true;
}

void hpath_wait_closed(struct hpath *p)
{
	HWAIT(all_closed(p));
}

void hpath_close(struct hpath *p)
{
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP)
			fab_disconnect(p->cons[cid].conn);
	}
	hpath_wait_closed(p);
}

void hpath_reset(struct hpath *p)
{
	hpath_close(p);
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].conn)
			fab_conn_destroy(p->cons[cid].conn);
		p->cons[cid] = (struct hcon){ .path = p };
	}
	memset(p->answers, 0, sizeof(p->answers));
	p->info_done = false;
}

void hpath_fini(struct hpath *p)
{
	hpath_reset(p);
	fab_dereg_mr(p->mr);
	fab_pd_destroy(p->pd);
	free(p->rbufs);
	free(p->mem);
}
