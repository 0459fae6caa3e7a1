/* SPDX-License-Identifier: BSD-3-Clause */
/* Work request chains.  Owns nothing: fills structs of the caller, which the caller posts.  Runs on
 * the caller's thread; cannot fail. */
#include <assert.h>
#include <string.h>

#include "rtrs-imm.h"
#include "rtrs-wr.h"

void rtrs_wr_request(struct rtrs_wr_req *w, uint64_t wr_id, bool signaled,
		     const struct rtrs_geom *g, uint32_t buf_id, const struct rtrs_rbuf *chunk,
		     const struct rtrs_req *req, const struct ibv_sge *data,
		     const struct ibv_sge *hdr)
{
	bool is_write = req->dir == RTRS_DIR_WRITE;
	int n = 0;

	assert(data ? is_write && data->length && data->length == req->data_len :
		      !is_write || !req->data_len);
	if (data)
		w->sge[n++] = *data;
	w->sge[n++] = *hdr;
	memset(&w->wr, 0, sizeof(w->wr));
	w->wr.wr_id = wr_id;
	w->wr.sg_list = w->sge;
	w->wr.num_sge = n;
	w->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	/* A request without data is small, so its messages are sent inline. */
	w->wr.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) | (data ? 0 : IBV_SEND_INLINE);
	w->wr.imm_data = rtrs_imm_io_req(g, buf_id, req->data_len + req->usr_len);
	/* a READ leaves its result area alone */
	w->wr.wr.rdma.remote_addr = chunk->addr + (is_write ? 0 : req->data_len);
	w->wr.wr.rdma.rkey = chunk->rkey;
}

/* A chain under construction: the head, and the place of the next link. */
struct chain {
	struct ibv_send_wr *head, **tail;
};

static void chain_add(struct chain *c, struct ibv_send_wr *wr)
{
	*c->tail = wr;
	while (wr->next)
		wr = wr->next;
	c->tail = &wr->next;
}

static struct ibv_send_wr *rsp_next(struct rtrs_wr_rsp *w, uint64_t wr_id, enum ibv_wr_opcode op)
{
	struct ibv_send_wr *wr = &w->wr[w->n++];

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wr_id;
	wr->opcode = op;
	return wr;
}

static struct ibv_send_wr *rsp_data(struct rtrs_wr_rsp *w, uint64_t wr_id,
				    const struct rtrs_rsp *rsp)
{
	struct ibv_send_wr *wr = rsp_next(w, wr_id, IBV_WR_RDMA_WRITE);

	assert(rsp->data.length && rsp->data.length == rsp->req->desc.len);
	w->sge[0] = rsp->data;
	wr->sg_list = &w->sge[0];
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = rsp->req->desc.addr;
	wr->wr.rdma.rkey = rsp->req->desc.key;
	return wr;
}

static struct ibv_send_wr *rsp_inval(struct rtrs_wr_rsp *w, uint64_t wr_id,
				     const struct rtrs_rsp *rsp)
{
	struct ibv_send_wr *wr = rsp_next(w, wr_id, IBV_WR_SEND_WITH_INV);

	wr->invalidate_rkey = rsp->req->desc.key;
	return wr;
}

static struct ibv_send_wr *rsp_imm(struct rtrs_wr_rsp *w, uint64_t wr_id,
				   const struct rtrs_rsp *rsp, bool inval)
{
	struct ibv_send_wr *wr = rsp_next(w, wr_id, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (rsp->new_rkey) {
		assert(rsp->rkey_rsp.length == sizeof(struct rtrs_msg_rkey_rsp));
		wr->opcode = IBV_WR_SEND_WITH_IMM;
		w->sge[1] = rsp->rkey_rsp;
		wr->sg_list = &w->sge[1];
		wr->num_sge = 1;
	}
	wr->imm_data = rtrs_imm_io_rsp(rsp->msg_id, rsp->status, inval);
	wr->send_flags = wr->num_sge ? IBV_SEND_INLINE : 0;
	return wr;
}

struct ibv_send_wr *rtrs_wr_response(struct rtrs_wr_rsp *w, uint64_t wr_id,
				     const struct rtrs_rsp *rsp)
{
	bool has_desc = rsp->req->dir == RTRS_DIR_READ && rsp->req->has_desc;
	bool inval = has_desc && rsp->req->need_inval;
	bool data = has_desc && !rsp->status;
	struct ibv_send_wr *rearm = rsp->new_rkey ? rsp->rearm : NULL;
	struct chain c = { .tail = &c.head };

	/* ORDER: the rows of doc/protocol.md 3.4.  A key is re-armed behind the data that is read
	 * from its chunk; without data the client's own key is given back first. */
	w->n = 0;
	if (data)
		chain_add(&c, rsp_data(w, wr_id, rsp));
	if (rearm && data)
		chain_add(&c, rearm);
	if (inval)
		chain_add(&c, rsp_inval(w, wr_id, rsp));
	if (rearm && !data)
		chain_add(&c, rearm);
	chain_add(&c, rsp_imm(w, wr_id, rsp, inval));
	return c.head;
}

void rtrs_wr_heartbeat(struct ibv_send_wr *wr, uint64_t wr_id, enum rtrs_imm_type type)
{
	assert(type == RTRS_HB_MSG_IMM || type == RTRS_HB_ACK_IMM);
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wr_id;
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = rtrs_imm_pack(type, 0);
}
