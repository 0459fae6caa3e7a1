/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the server's chunks, their windows and its connections; see device-rw.h. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "device-rw.h"
#include "rw-pattern.h"
#include "util.h"

static void sent(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
}

static struct ibv_send_wr new_wr(struct rw_server *s, enum ibv_wr_opcode opcode,
				 struct ibv_sge *sge)
{
	return (struct ibv_send_wr){ .wr_id = (uintptr_t)&s->sent, .opcode = opcode,
				     .sg_list = sge, .num_sge = sge ? 1 : 0 };
}

static void post_recv(struct rw_recv *r)
{
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&r->cqe };
	int rc = fab_post_recv(r->e->conn, &wr);

	check(rc == 0 || rc == -ENOTCONN);
}

static void chunk_post(struct rw_chunk *c)
{
	int rc = fab_post_send(c->on->conn, c->entry.first);

	c->entry.posted(&c->entry, rc);
	check(rc == 0 || rc == -ENOTCONN);
}

/* The message that tells the key, with the bind in front of it: one post.  @data NULL: no read. */
static void chunk_tell(struct rw_chunk *c, struct ibv_sge *data)
{
	struct rw_server *s = c->s;
	struct rw_answer a = { .i = c->i, .number = c->req.number,
			       .invalidated = c->req.need_inval };
	struct ibv_sge msg = region_sge(&s->out, c->i * RW_MESSAGE, sizeof(a));
	struct ibv_send_wr wr[3];
	struct frwr *w = frwr_at(s->pool, c->i);
	uint32_t old = c->handle.rkey;
	unsigned n = 0;

	check_eq(frwr_map(w, c->mr, (uintptr_t)c->mem, RW_CHUNK, FRWR_PEER_WRITES, &c->handle), 0);
	check(c->handle.rkey != old || s->pool->mode == FRWR_STATIC);
	a.chunk = c->handle;
	memcpy(s->out.mem + c->i * RW_MESSAGE, &a, sizeof(a));
	if (data) {
		wr[n] = new_wr(s, IBV_WR_RDMA_WRITE, data);
		wr[n].wr.rdma.remote_addr = c->req.to.addr;
		wr[n].wr.rdma.rkey = c->req.to.rkey;
		n++;
	}
	if (c->req.need_inval) {
		wr[n] = new_wr(s, IBV_WR_SEND_WITH_INV, NULL);
		wr[n++].invalidate_rkey = c->req.to.rkey;
	}
	wr[n++] = new_wr(s, IBV_WR_SEND, &msg);
	for (unsigned i = 0; i + 1 < n; i++)
		wr[i].next = &wr[i + 1];
	check_eq(frwr_fill_send(&c->entry, c->on->conn, w, &wr[0], &wr[n - 1]), 0);
	chunk_post(c);
}

/* Nobody can change the chunk any more. */
static void chunk_revoked(void *arg, int rc)
{
	struct rw_chunk *c = arg;
	struct rw_server *s = c->s;
	struct ibv_sge sge;

	if (rc)
		return;
	memcpy(&c->req, c->mem, sizeof(c->req));
	check(c->req.number && c->req.len <= SLOT);
	s->answered++;
	if (!c->req.read) {
		/* Behind it may be what a longer read left. */
		rw_pattern_check(c->mem + RW_MESSAGE, c->req.number, c->req.len, c->req.len);
		chunk_tell(c, NULL);
		return;
	}
	check_eq(c->req.to.len, c->req.len);
	rw_pattern_fill(c->mem + RW_MESSAGE, c->req.number, c->req.len);
	sge = (struct ibv_sge){ (uintptr_t)c->mem + RW_MESSAGE, c->req.len, c->mr->lkey };
	chunk_tell(c, &sge);
}

static void server_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct rw_recv *r = container_of(cqe, struct rw_recv, cqe);
	struct rw_server *s = r->owner;
	struct rw_chunk *c;
	int rc;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	check(be32toh(wc->imm_data) < RW_DEPTH);
	c = &s->chunk[be32toh(wc->imm_data)];
	post_recv(r);
	c->on = r->e;
	rc = frwr_fill_unmap(&c->entry, conn, frwr_at(s->pool, c->i), chunk_revoked, c);
	if (rc == 0)
		chunk_post(c);
	else if (rc == 1)
		chunk_revoked(c, 0);
	else
		check_eq(rc, -ENOTCONN);
}

/* ---- life ---- */

void rw_server_accept(struct rw_server *s, const struct fab_qp_attr *attr)
{
	struct rw_recv *r = s->recv[s->nconns];
	struct end *e;

	world_until(s->w, s->w->request);
	e = s->w->request;
	s->w->request = NULL;
	s->sent.done = sent;
	e->dispatches = true;
	end_create_qp(e, s->nconns ? s->e[0]->pd : NULL, attr);
	for (unsigned i = 0; i < MIN(RW_RECVS, attr->max_recv_wr); i++) {
		r[i] = (struct rw_recv){ .cqe.done = server_wc_recv, .e = e, .owner = s };
		post_recv(&r[i]);
	}
	s->e[s->nconns++] = e;
	check_eq(end_accept(e, NULL, 0), 0);
}

void rw_server_ready(struct rw_server *s, enum frwr_mode mode)
{
	int access = IBV_ACCESS_LOCAL_WRITE |
		     (mode == FRWR_STATIC ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_MW_BIND);
	struct fab_pd *pd = s->e[0]->pd;

	s->out = region_create(pd, (size_t)RW_DEPTH * RW_MESSAGE, 0);
	for (unsigned i = 0; i < RW_DEPTH; i++) {
		struct rw_chunk *c = &s->chunk[i];

		c->s = s;
		c->i = i;
		c->on = s->e[0];
		c->mem = calloc(1, RW_CHUNK);
		check(c->mem != NULL);
		c->mr = fab_reg_mr(pd, c->mem, RW_CHUNK, access);
		check(c->mr != NULL);
	}
	check_eq(frwr_pool_create(&s->pool, pd, mode, RW_DEPTH), 0);
	for (unsigned i = 0; i < RW_DEPTH; i++)
		chunk_tell(&s->chunk[i], NULL);
}

bool rw_server_drained(const struct rw_server *s)
{
	for (unsigned i = 0; i < s->nconns; i++) {
		if (!s->e[i]->drained)
			return false;
	}
	return true;
}

uint64_t rw_server_close(struct rw_server *s)
{
	uint64_t slowest = 0;

	check(rw_server_drained(s));
	frwr_pool_kill(s->pool);
	check_eq(frwr_pool_destroy(s->pool), 0);
	for (unsigned i = 0; i < RW_DEPTH; i++) {
		fab_dereg_mr(s->chunk[i].mr);
		free(s->chunk[i].mem);
	}
	region_destroy(&s->out);
	while (s->nconns) {
		uint64_t begin = clock_now_ms();

		end_free(s->e[--s->nconns]);
		slowest = MAX(slowest, clock_now_ms() - begin);
	}
	return slowest;
}
