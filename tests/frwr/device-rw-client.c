/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the client's slots, its windows and its connections; see device-rw.h. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "device-rw.h"
#include "rw-pattern.h"
#include "util.h"

static void slot_start(struct rw_slot *s);

static void sent(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
}

/* Nothing that is repeatable may hang on the order of completions, so not rand(). */
static uint32_t next_random(struct rw_client *c)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->random >> 33);
}

static void post_recv(struct rw_client *c, struct rw_recv *r)
{
	struct ibv_sge sge = { (uintptr_t)r->buf, RW_MESSAGE, c->in.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&r->cqe, .sg_list = &sge, .num_sge = 1 };
	int rc = fab_post_recv(r->e->conn, &wr);

	check(rc == 0 || rc == -ENOTCONN);
}

static uint8_t *slot_mem(struct rw_slot *s)
{
	return s->c->arena.mem + s->i * SLOT;
}

/* Every post of a connection that has failed or drained is as good as one that was. */
static void slot_post(struct rw_slot *s, struct ibv_send_wr *wr)
{
	int rc = fab_post_send(s->on->conn, wr ? wr : s->entry.first);

	if (!wr)
		s->entry.posted(&s->entry, rc);
	check(rc == 0 || rc == -ENOTCONN);
}

static void slot_finish(struct rw_slot *s)
{
	struct rw_client *c = s->c;

	if (s->req.read) {
		check_eq(frwr_state(frwr_at(c->pool, s->i)), FRWR_FREE);
		rw_pattern_check(slot_mem(s), s->req.number, s->req.len, SLOT);
		c->reads++;
	}
	c->done++;
	s->req.number = 0;
	if (c->number < c->todo)
		slot_start(s);
}

static void slot_unmapped(void *arg, int rc)
{
	if (rc == 0)
		slot_finish(arg);
}

static void slot_answered(struct rw_slot *s, const struct rw_answer *a)
{
	struct frwr *w = frwr_at(s->c->pool, s->i);
	int rc;

	check_eq(a->number, s->req.number);
	check_eq(a->invalidated, s->req.need_inval);
	s->chunk = a->chunk;
	if (!s->req.read) {
		slot_finish(s);
		return;
	}
	rc = frwr_answered(w, a->invalidated);
	if (rc == 0)
		rc = frwr_fill_unmap(&s->entry, s->on->conn, w, slot_unmapped, s);
	if (rc == 0)
		slot_post(s, NULL);
	else if (rc == 1 || rc == -EALREADY)
		slot_finish(s);
	else
		check_eq(rc, -ENOTCONN);
}

/* The keys may come while the last connection is still being made: both are awaited. */
static void start_when_ready(struct rw_client *c)
{
	if (!c->pool || c->nkeys < RW_DEPTH)
		return;
	for (unsigned i = 0; i < RW_DEPTH && c->number < c->todo; i++)
		slot_start(&c->slot[i]);
}

static void client_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct rw_recv *r = container_of(cqe, struct rw_recv, cqe);
	struct rw_client *c = r->owner;
	struct rw_answer a;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	memcpy(&a, r->buf, sizeof(a));
	post_recv(c, r);
	if (wc->byte_len == 0) {
		check(frwr_wc_may_inv(wc));
		check(frwr_reminv(c->pool, conn, wc) != NULL);
		return;
	}
	check_eq(wc->byte_len, sizeof(a));
	check(a.i < RW_DEPTH);
	if (a.number) {
		slot_answered(&c->slot[a.i], &a);
		return;
	}
	c->slot[a.i].chunk = a.chunk;
	c->nkeys++;
	start_when_ready(c);
}

static void start_read(struct rw_slot *s, struct ibv_send_wr *wr)
{
	struct rw_client *c = s->c;
	struct frwr *w = frwr_at(c->pool, s->i);

	memset(slot_mem(s), 0, SLOT);
	check_eq(frwr_map(w, s->mr, (uintptr_t)slot_mem(s), s->req.len, FRWR_PEER_WRITES,
			  &s->req.to), 0);
	s->req.need_inval = c->pool->mode == FRWR_MW2 && s->req.number % 8;
	if (s->req.need_inval)
		check_eq(frwr_expect_reminv(w), 0);
	memcpy(c->out.mem + s->i * RW_CHUNK, &s->req, sizeof(s->req));
	check_eq(frwr_fill_send(&s->entry, s->on->conn, w, wr, wr), 0);
	slot_post(s, NULL);
}

static void start_write(struct rw_slot *s, struct ibv_send_wr *wr)
{
	uint8_t *out = s->c->out.mem + s->i * RW_CHUNK;

	memcpy(out, &s->req, sizeof(s->req));
	rw_pattern_fill(out + RW_MESSAGE, s->req.number, s->req.len);
	slot_post(s, wr);
}

/* The next request, on any connection. */
static void slot_start(struct rw_slot *s)
{
	struct rw_client *c = s->c;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&c->sent, .sg_list = sge,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };

	s->on = c->e[next_random(c) % c->nconns];
	s->req = (struct rw_request){ .number = ++c->number, .read = next_random(c) % 2,
				      .len = 512 + next_random(c) % (SLOT - 511) / 4 * 4 };
	sge[0] = region_sge(&c->out, s->i * RW_CHUNK, RW_MESSAGE);
	sge[1] = region_sge(&c->out, s->i * RW_CHUNK + RW_MESSAGE, s->req.len);
	wr.num_sge = s->req.read ? 1 : 2;
	wr.imm_data = htobe32(s->i);
	wr.wr.rdma.remote_addr = s->chunk.addr;
	wr.wr.rdma.rkey = s->chunk.rkey;
	if (s->req.read)
		start_read(s, &wr);
	else
		start_write(s, &wr);
}

/* ---- life ---- */

void rw_client_dial(struct rw_client *c, const struct fab_addr *to, const struct fab_qp_attr *attr)
{
	struct end *e = end_active(c->w, to, NULL);
	struct rw_recv *r = c->recv[c->nconns];

	c->sent.done = sent;
	e->dispatches = true;
	end_create_qp(e, c->nconns ? c->e[0]->pd : NULL, attr);
	if (!c->nconns)
		c->in = region_create(e->pd, (size_t)RW_CONNS * RW_RECVS * RW_MESSAGE,
				      IBV_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; i < MIN(RW_RECVS, attr->max_recv_wr); i++) {
		r[i] = (struct rw_recv){ .cqe.done = client_wc_recv, .e = e, .owner = c };
		r[i].buf = c->in.mem + (c->nconns * RW_RECVS + i) * RW_MESSAGE;
		post_recv(c, &r[i]);
	}
	c->e[c->nconns++] = e;
	check_eq(fab_connect(e->conn, NULL, 0), 0);
}

void rw_client_dialed(struct rw_client *c)
{
	world_until(c->w, c->e[c->nconns - 1]->established);
}

void rw_client_ready(struct rw_client *c, enum frwr_mode mode)
{
	int access = IBV_ACCESS_LOCAL_WRITE |
		     (mode == FRWR_STATIC ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_MW_BIND);
	struct fab_pd *pd = c->e[0]->pd;

	c->out = region_create(pd, (size_t)RW_DEPTH * RW_CHUNK, 0);
	c->arena.mem = calloc(RW_DEPTH, SLOT);
	check(c->arena.mem != NULL);
	for (unsigned i = 0; i < RW_DEPTH; i++) {
		struct rw_slot *s = &c->slot[i];

		s->c = c;
		s->i = i;
		if (mode != FRWR_REREG)
			s->mr = fab_reg_mr(pd, slot_mem(s), SLOT, access);
		check(s->mr || mode == FRWR_REREG);
	}
	check_eq(frwr_pool_create(&c->pool, pd, mode, RW_DEPTH), 0);
	start_when_ready(c);
}

bool rw_client_drained(const struct rw_client *c)
{
	for (unsigned i = 0; i < c->nconns; i++) {
		if (!c->e[i]->drained)
			return false;
	}
	return true;
}

uint64_t rw_client_close(struct rw_client *c)
{
	uint64_t slowest = 0;

	check(rw_client_drained(c));
	frwr_pool_kill(c->pool);
	check_eq(frwr_pool_destroy(c->pool), 0);
	for (unsigned i = 0; i < RW_DEPTH; i++)
		fab_dereg_mr(c->slot[i].mr);
	free(c->arena.mem);
	region_destroy(&c->in);
	region_destroy(&c->out);
	/* The first has the domain. */
	while (c->nconns) {
		uint64_t begin = clock_now_ms();

		end_free(c->e[--c->nconns]);
		slowest = MAX(slowest, clock_now_ms() - begin);
	}
	return slowest;
}
