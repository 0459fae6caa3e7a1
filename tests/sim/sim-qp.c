/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the queues of a simulated connection: what is posted, in transfer and completed.  One
 * thread; everything but posts and polls happens in events.  Ends when flushed and polled empty.  A
 * request that fails completes with its status, fails the connection, and the rest is flushed
 * later. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim-fab-priv.h"

/* Nothing posted is left but what waits to be polled. */
static bool qp_is_flushed(const struct sim_conn *c)
{
	return c->flushed && list_empty(&c->sq) && list_empty(&c->rq);
}

static void cq_push(struct sim_conn *c, const struct ibv_wc *wc)
{
	struct sim_cq_entry *e = malloc(sizeof(*e));

	assert(e);
	e->wc = *wc;
	/* Nothing but these two is to be relied upon. */
	if (wc->status != IBV_WC_SUCCESS) {
		memset(&e->wc, 0xA5, sizeof(e->wc));
		e->wc.wr_id = wc->wr_id;
		e->wc.status = wc->status;
	}
	list_add_tail(&c->cq, &e->link);
	if (c->armed) {
		c->armed = false;
		c->readable = true;
	}
}

static void send_complete(struct sim_conn *c, struct sim_send *s, enum ibv_wc_status status)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	};
	struct ibv_wc wc = {
		.wr_id = s->wr.wr_id, .status = status, .opcode = opcodes[s->wr.opcode],
	};

	if (c->tx_next == s)
		c->tx_next = NULL;
	list_del(&s->link);
	c->nsq--;
	if (status != IBV_WC_SUCCESS || (s->wr.send_flags & IBV_SEND_SIGNALED))
		cq_push(c, &wc);
	free(s);
}

static void recv_complete(struct sim_conn *c, struct sim_recv *r, const struct ibv_wc *wc)
{
	list_del(&r->link);
	c->nrq--;
	cq_push(c, wc);
	free(r);
}

/* Complete those at the head that are done. */
static void sends_retire(struct sim_conn *c)
{
	while (!list_empty(&c->sq)) {
		struct sim_send *s = list_entry(c->sq.next, struct sim_send, link);

		if (!s->done)
			return;
		send_complete(c, s, IBV_WC_SUCCESS);
	}
}

static void qp_flush(struct sim_event *ev)
{
	struct sim_conn *c = container_of(ev, struct sim_conn, flush);

	c->flushed = true;
	c->rx = NULL;
	while (!list_empty(&c->sq))
		send_complete(c, list_entry(c->sq.next, struct sim_send, link),
			      IBV_WC_WR_FLUSH_ERR);
	while (!list_empty(&c->rq)) {
		struct sim_recv *r = list_entry(c->rq.next, struct sim_recv, link);
		struct ibv_wc wc = { .wr_id = r->wr.wr_id, .status = IBV_WC_WR_FLUSH_ERR };

		recv_complete(c, r, &wc);
	}
	/* "Drained" is to be heard of even if nothing was posted. */
	if (c->armed) {
		c->armed = false;
		c->readable = true;
	}
}

/* ---- sending ---- */

static void tx_kick(struct sim_conn *c)
{
	if (c->state == SIM_UP && c->tx_next && list_empty(&c->tx.link))
		sim_event_at(&c->tx, sim_now_us() + 1 + sim_rand(10));
}

static void tx_advance(struct sim_conn *c)
{
	struct list *next = c->tx_next->link.next;

	c->tx_next = next == &c->sq ? NULL : list_entry(next, struct sim_send, link);
	c->tx_off = 0;
}

/* Copy [off, off + len) of the gather list.  Text why not, or NULL. */
static const char *gather(const struct sim_conn *c, const struct sim_send *s, uint32_t off,
			  uint32_t len, uint8_t *to)
{
	for (int i = 0; i < s->wr.num_sge && len; i++) {
		const struct ibv_sge *sge = &s->sge[i];
		const char *why = sim_lkey_check(c, sge, 0);
		uint32_t n;

		if (why)
			return why;
		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		n = MIN(len, sge->length - off);
		memcpy(to, sim_key_mem(sge->lkey, sge->addr + off), n);
		to += n;
		len -= n;
		off = 0;
	}
	return NULL;
}

static const char *tx_local(struct sim_conn *c, struct sim_send *s)
{
	const char *why = s->bad;

	if (!why)
		why = s->wr.opcode == IBV_WR_BIND_MW ? sim_mw_bind(c, &s->wr) :
						       sim_mw_invalidate(c, s->wr.invalidate_rkey);
	if (why)
		return why;
	tx_advance(c);
	s->done = true;
	sends_retire(c);
	return NULL;
}

/* Send the next piece. */
static const char *tx_piece(struct sim_conn *c, struct sim_send *s)
{
	uint32_t len = MIN(s->len - c->tx_off, SIM_MTU);
	struct sim_wire *w = sim_wire_new(c, SIM_WIRE_DATA, len);
	const char *why = gather(c, s, c->tx_off, len, w->data);

	if (why) {
		free(w);
		return why;
	}
	w->seq = s->seq;
	w->opcode = s->wr.opcode;
	w->imm = s->wr.imm_data;
	if (s->wr.opcode == IBV_WR_SEND_WITH_INV)
		w->inv_rkey = s->wr.invalidate_rkey;
	w->rkey = s->wr.wr.rdma.rkey;
	w->raddr = s->wr.wr.rdma.remote_addr + c->tx_off;
	w->total = s->len;
	w->off = c->tx_off;
	c->tx_off += len;
	if (c->tx_off == s->len)
		tx_advance(c);
	sim_wire_send(c, w);
	return NULL;
}

static void qp_tx(struct sim_event *ev)
{
	struct sim_conn *c = container_of(ev, struct sim_conn, tx);
	struct sim_send *s = c->tx_next;
	bool local = s->wr.opcode == IBV_WR_BIND_MW || s->wr.opcode == IBV_WR_LOCAL_INV;
	const char *why = local ? tx_local(c, s) : tx_piece(c, s);

	if (!why) {
		tx_kick(c);
		return;
	}
	send_complete(c, s, s->wr.opcode == IBV_WR_BIND_MW   ? IBV_WC_MW_BIND_ERR :
			    s->wr.opcode == IBV_WR_LOCAL_INV ? IBV_WC_LOC_QP_OP_ERR :
							       IBV_WC_LOC_PROT_ERR);
	sim_conn_fail(c, true, "%s", why);
}

void sim_qp_ack(struct sim_conn *c, const struct sim_wire *w)
{
	struct sim_send *s;

	list_for_each(s, &c->sq, link) {
		if (s->seq == w->seq)
			s->done = true;
	}
	sends_retire(c);
}

void sim_qp_nak(struct sim_conn *c, const struct sim_wire *w)
{
	struct sim_send *s, *tmp;

	list_for_each_safe(s, tmp, &c->sq, link) {
		if (s->seq == w->seq) {
			send_complete(c, s, w->status);
			break;
		}
	}
	sim_conn_fail(c, false, "peer refused a request: %s", (const char *)w->data);
}

/* ---- receiving ---- */

static void rx_refuse(struct sim_conn *c, const struct sim_wire *w, enum ibv_wc_status status,
		      const char *why)
{
	uint32_t len = (uint32_t)strlen(why) + 1;
	struct sim_wire *nak = sim_wire_new(c, SIM_WIRE_NAK, len);

	nak->seq = w->seq;
	nak->status = status;
	memcpy(nak->data, why, len);
	sim_wire_send(c, nak);
	sim_conn_fail(c, false, "%s", why);
}

static bool is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

/* Scatter into the receive buffer.  Text why not, or NULL. */
static const char *scatter(struct sim_conn *c, struct sim_recv *r, const struct sim_wire *w)
{
	uint32_t off = w->off, len = w->len;
	const uint8_t *from = w->data;

	for (int i = 0; i < r->wr.num_sge && len; i++) {
		const struct ibv_sge *sge = &r->sge[i];
		const char *why = sim_lkey_check(c, sge, IBV_ACCESS_LOCAL_WRITE);
		uint32_t n;

		if (why)
			return why;
		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		n = MIN(len, sge->length - off);
		memcpy(sim_key_mem(sge->lkey, sge->addr + off), from, n);
		from += n;
		len -= n;
		off = 0;
	}
	return len ? "longer than the posted receive" : NULL;
}

/* One piece of a message.  False: refused, @c has failed. */
static bool rx_place(struct sim_conn *c, const struct sim_wire *w)
{
	const char *why;

	if (is_send(w->opcode)) {
		if (!w->off)
			c->rx = list_empty(&c->rq) ? NULL :
						     list_entry(c->rq.next, struct sim_recv, link);
		if (!c->rx) {
			rx_refuse(c, w, IBV_WC_RNR_RETRY_EXC_ERR, "no receive is posted");
			return false;
		}
		why = scatter(c, c->rx, w);
		if (why) {
			struct ibv_wc wc = { .wr_id = c->rx->wr.wr_id,
					     .status = IBV_WC_LOC_LEN_ERR };

			recv_complete(c, c->rx, &wc);
			rx_refuse(c, w, IBV_WC_REM_INV_REQ_ERR, why);
		}
		return !why;
	}
	if (!w->total)
		return true;
	/* The whole range with the first piece, and each piece again: the key may be dead now. */
	why = sim_rkey_check(c, w->rkey, w->raddr, w->off ? w->len : w->total);
	if (!w->off)
		c->rx_closings = sim_key_closings(w->rkey);
	else if (!why && c->rx_closings != sim_key_closings(w->rkey))
		why = "a remote key that was closed meanwhile";
	if (why) {
		rx_refuse(c, w, IBV_WC_REM_ACCESS_ERR, why);
		return false;
	}
	sim_key_written(w->rkey);
	memcpy(sim_key_mem(w->rkey, w->raddr), w->data, w->len);
	return true;
}

/* The last piece is placed: what the receiver is told. */
static bool rx_finish(struct sim_conn *c, const struct sim_wire *w)
{
	bool with_imm = w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
		w->opcode == IBV_WR_SEND_WITH_IMM;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .byte_len = w->total };
	struct sim_recv *r;
	const char *why;

	if (w->opcode == IBV_WR_RDMA_WRITE)
		return true;
	if (list_empty(&c->rq)) {
		rx_refuse(c, w, IBV_WC_RNR_RETRY_EXC_ERR, "no receive is posted");
		return false;
	}
	r = list_entry(c->rq.next, struct sim_recv, link);
	wc.wr_id = r->wr.wr_id;
	wc.opcode = is_send(w->opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	if (with_imm) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = w->imm;
	}
	if (w->opcode == IBV_WR_SEND_WITH_INV) {
		why = sim_mw_invalidate(c, w->inv_rkey);
		if (why) {
			wc.status = IBV_WC_REM_INV_REQ_ERR;
			c->rx = NULL;
			recv_complete(c, r, &wc);
			rx_refuse(c, w, IBV_WC_REM_INV_REQ_ERR, why);
			return false;
		}
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = w->inv_rkey;
	}
	c->rx = NULL;
	recv_complete(c, r, &wc);
	return true;
}

void sim_qp_data(struct sim_conn *c, const struct sim_wire *w)
{
	struct sim_wire *ack;

	if (!rx_place(c, w))
		return;
	if (w->off + w->len != w->total)
		return;
	if (!rx_finish(c, w))
		return;
	ack = sim_wire_new(c, SIM_WIRE_ACK, 0);
	ack->seq = w->seq;
	sim_wire_send(c, ack);
}

/* ---- what the user calls ---- */

int sim_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr)
{
	struct sim_conn *c = to_conn(conn);

	assert(c->state == SIM_RESOLVED || c->state == SIM_REQUESTED || c->state == SIM_FAILED);
	if (attr->max_send_wr > SIM_MAX_QP_WR || attr->max_recv_wr > SIM_MAX_QP_WR ||
	    attr->max_send_sge > SIM_MAX_SGE)
		return -EINVAL;
	c->pd = container_of(pd, struct sim_pd, base);
	assert(c->pd->host == c->host);
	c->attr = *attr;
	return 0;
}

static bool send_valid(const struct sim_conn *c, const struct ibv_send_wr *wr)
{
	bool local = wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW;

	for (int i = 0; !local && i < wr->num_sge; i++) {
		if (sim_lkey_check(c, &wr->sg_list[i], 0))
			return false;
	}
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return wr->num_sge >= 0 && (unsigned)wr->num_sge <= c->attr.max_send_sge;
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
		return true;
	default:
		return false;
	}
}

static void send_add(struct sim_conn *c, const struct ibv_send_wr *wr)
{
	struct sim_send *s = calloc(1, sizeof(*s));

	assert(s);
	s->wr = *wr;
	s->wr.next = NULL;
	s->seq = ++c->seq;
	if (wr->opcode != IBV_WR_LOCAL_INV && wr->opcode != IBV_WR_BIND_MW) {
		for (int i = 0; i < wr->num_sge; i++) {
			s->sge[i] = wr->sg_list[i];
			s->len += wr->sg_list[i].length;
		}
	}
	s->wr.sg_list = s->sge;
	/* What is posted to a failed connection only flushes. */
	if (wr->opcode == IBV_WR_BIND_MW && c->state == SIM_UP)
		s->bad = sim_mw_post(c, wr);
	list_add_tail(&c->sq, &s->link);
	c->nsq++;
	if (!c->tx_next) {
		c->tx_next = s;
		c->tx_off = 0;
	}
}

/* What was posted to a failed connection flushes like the rest. */
static void post_done(struct sim_conn *c)
{
	if (c->state == SIM_FAILED)
		sim_event_at(&c->flush, sim_now_us() + 1 + sim_rand(10));
	else
		tx_kick(c);
}

int sim_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	struct sim_conn *c = to_conn(conn);

	assert(c->pd);
	if (c->drained)
		return -ENOTCONN;
	for (; wr; wr = wr->next) {
		if (!send_valid(c, wr) || (c->state != SIM_UP && c->state != SIM_FAILED)) {
			sim_conn_fail(c, true, "post of a malformed or untimely send");
			return -EINVAL;
		}
		if (sim_mw_refused(c, wr)) {
			sim_conn_fail(c, true, "the device refused a memory window");
			return -EOPNOTSUPP;
		}
		if (c->nsq == c->attr.max_send_wr) {
			sim_conn_fail(c, true, "send queue of %u is full", c->nsq);
			return -ENOMEM;
		}
		send_add(c, wr);
	}
	post_done(c);
	return 0;
}

int sim_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	struct sim_conn *c = to_conn(conn);

	assert(c->pd);
	if (c->drained)
		return -ENOTCONN;
	for (; wr; wr = wr->next) {
		struct sim_recv *r;

		if (c->nrq == c->attr.max_recv_wr) {
			sim_conn_fail(c, true, "receive queue of %u is full", c->nrq);
			return -ENOMEM;
		}
		assert(wr->num_sge <= SIM_MAX_SGE);
		r = calloc(1, sizeof(*r));
		assert(r);
		r->wr = *wr;
		for (int i = 0; i < wr->num_sge; i++)
			r->sge[i] = wr->sg_list[i];
		list_add_tail(&c->rq, &r->link);
		c->nrq++;
	}
	post_done(c);
	return 0;
}

bool sim_sends_left(const struct fab_conn *conn)
{
	return !list_empty(&to_conn(conn)->sq);
}

int sim_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	struct sim_conn *c = to_conn(conn);
	int got = 0;

	assert(c->pd);
	c->readable = false;
	/* As on tcp: what came after a poll that saw everything shows up behind fab_arm(). */
	if (c->exhausted)
		return 0;
	while (got < n && !list_empty(&c->cq)) {
		struct list *l = list_pop(&c->cq);

		wc[got++] = list_entry(l, struct sim_cq_entry, link)->wc;
		free(list_entry(l, struct sim_cq_entry, link));
	}
	if (!got && qp_is_flushed(c)) {
		c->drained = true;
		return -ENOTCONN;
	}
	c->exhausted = got < n && !c->flushed;
	return got;
}

int sim_arm(struct fab_conn *conn, short *events)
{
	struct sim_conn *c = to_conn(conn);

	c->exhausted = false;
	/* Drained is something to hear of again and again: a caller may not have seen it yet,
	 * behind the completions of one fab_dispatch(). */
	if (!list_empty(&c->cq) || qp_is_flushed(c))
		return 1;
	c->armed = true;
	*events = POLLIN;
	return 0;
}

int sim_need_rearm(const struct fab_conn *conn)
{
	return 0;
}

static short qp_fd_ready(void *arg)
{
	const struct sim_conn *c = arg;

	return c->readable ? POLLIN : 0;
}

void sim_qp_init(struct sim_conn *c)
{
	list_init(&c->sq);
	list_init(&c->rq);
	list_init(&c->cq);
	sim_event_init(&c->tx, qp_tx);
	sim_event_init(&c->flush, qp_flush);
	c->base.fd = sim_fd_open(qp_fd_ready, c);
}

void sim_qp_vanish(struct sim_conn *c)
{
	struct list *l;

	sim_event_cancel(&c->tx);
	sim_event_cancel(&c->flush);
	while ((l = list_pop(&c->sq)))
		free(list_entry(l, struct sim_send, link));
	while ((l = list_pop(&c->rq)))
		free(list_entry(l, struct sim_recv, link));
	c->tx_next = NULL;
	c->rx = NULL;
	c->flushed = true;
}

void sim_qp_fini(struct sim_conn *c)
{
	struct list *l;

	sim_qp_vanish(c);
	while ((l = list_pop(&c->cq)))
		free(list_entry(l, struct sim_cq_entry, link));
	sim_fd_close(c->base.fd);
}
