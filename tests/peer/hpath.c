/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the connections and the memory of its paths.  What the server does not do in time, or what
 * the fabric refuses, ends the program. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hpath.h"

#define STAGING_LEN (8u << 20)
#define KEYS_LEN (HCONS_MAX * HRECVS * sizeof(struct rtrs_msg_rkey_rsp))
#define ANSWERS_LEN (HANSWERS * sizeof(struct hanswer))
#define MEM_LEN (HINFO_LEN + STAGING_LEN + HRESULT_LEN + KEYS_LEN)

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

/* ---- set-up ---- */

/* Little of this memory is used, and a random run makes many paths: what is not touched costs
 * nothing, in hpath_reset() neither. */
static void *zeroes(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(mem != MAP_FAILED);
	return mem;
}

void hpath_init(struct hpath *p, struct fab_cm *cm, const struct fab_addr *dst)
{
	memset(p, 0, sizeof(*p));
	p->cm = cm;
	p->dst = *dst;
	p->cid_num = 2;
	p->recon_cnt = 1;
	p->first_conn = true;
	p->mem = p->info_buf = zeroes(MEM_LEN);
	p->answers = zeroes(ANSWERS_LEN);
	p->result = p->mem + HINFO_LEN + STAGING_LEN;
	p->keys = (void *)(p->result + HRESULT_LEN);
	for (unsigned i = 0; i < HCONS_MAX; i++)
		p->cons[i].path = p;
}

void hpath_conn_req(const struct hpath *p, unsigned cid, struct rtrs_msg_conn_req *m)
{
	struct rtrs_conn_req req = { .cid = (uint16_t)cid, .cid_num = p->cid_num,
				     .recon_cnt = p->recon_cnt,
				     .flags = (p->first_conn ? RTRS_CONN_REQ_FIRST_CONN : 0) |
					      (p->hears ? RTRS_CONN_REQ_HEARS : 0) | p->lineage,
				     .auth = p->auth, .auth_version = p->auth_version };

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
	to = p->mem + HINFO_LEN + p->staged;
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
	HWAIT(p->info_done || p->refusal || hpath_any_closed(p));
	return p->info_done ? 0 : HCLOSED;
}

int hpath_info(struct hpath *p)
{
	struct rtrs_msg_info_req m;

	rtrs_info_req_encode(&m, p->name);
	if (p->hears)
		rtrs_info_req_hear(&m);
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
	expect(!madvise(p->answers, ANSWERS_LEN, MADV_DONTNEED));
	p->info_done = false;
}

void hpath_fini(struct hpath *p)
{
	hpath_reset(p);
	fab_dereg_mr(p->mr);
	fab_pd_destroy(p->pd);
	free(p->rbufs);
	munmap(p->mem, MEM_LEN);
	munmap(p->answers, ANSWERS_LEN);
}
