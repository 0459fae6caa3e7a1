/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of posted receives.
 *
 * Owns what tcp_rx_init() has allocated for it.  Producers, on any thread, under rx->post_lock; the consumer
 * (tcp-rx.c, and the flush here) under rx->lock.  A receive that cannot be taken fails the connection.  Ends when a
 * failed connection has flushed them all and tcp_rq_close() finds none left. */
#include <errno.h>

#include "tcp-priv.h"

static const char *rq_push(struct tcp_conn *c, const struct ibv_recv_wr *wr, int *err)
{
	struct tcp_rx *rx = &c->rx;
	uint32_t tail = atomic_load_explicit(&rx->rq_tail, memory_order_relaxed);
	struct tcp_rqe *rqe = &rx->ring[tail & rx->mask];

	*err = -ENOMEM;
	if (tail - atomic_load_explicit(&rx->rq_head, memory_order_acquire) == rx->depth)
		return "receive queue overflow";
	*err = -EINVAL;
	for (int i = 0; i < wr->num_sge; i++) {
		struct ibv_sge *sge =
			&rx->sges[(size_t)(tail & rx->mask) * FAB_RECV_SGE_MAX + (unsigned)i];

		*sge = wr->sg_list[i];
		if (sge->length && !tcp_lkey_ok(c->pd, &wr->sg_list[i], IBV_ACCESS_LOCAL_WRITE, &sge->addr))
			return "receive with a local key that does not cover its element";
	}
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	atomic_store_explicit(&rx->rq_tail, tail + 1, memory_order_release);
	return NULL;
}

int tcp_rq_post(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	struct tcp_conn *c = tcp_conn(conn);
	const char *why = NULL;
	int rc = -ENOTCONN;

	if (!c->pd)
		return -EINVAL;
	pthread_mutex_lock(&c->rx.post_lock);
	if (!c->rx.closed) {
		for (rc = 0; wr && !why; wr = wr->next)
			why = rq_push(c, wr, &rc);
		if (!why)
			rc = 0;
	}
	pthread_mutex_unlock(&c->rx.post_lock);
	if (why)
		tcp_conn_fail(c, 0, "%s", why);
	return rc;
}

int tcp_rq_flush(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_rx *rx = &c->rx;
	const struct tcp_rqe *rqe;
	const struct ibv_sge *sges;
	int got = 0;

	pthread_mutex_lock(&rx->lock);
	tcp_rx_drop(c, NULL);
	while (got < n && (rqe = tcp_rq_first(rx, &sges))) {
		wc[got++] = (struct ibv_wc){ .wr_id = rqe->wr_id, .status = IBV_WC_WR_FLUSH_ERR,
					     .qp_num = c->qp_num };
		tcp_rq_pop(rx);
	}
	pthread_mutex_unlock(&rx->lock);
	return got;
}

bool tcp_rq_close(struct tcp_conn *c)
{
	struct tcp_rx *rx = &c->rx;
	bool empty;

	pthread_mutex_lock(&rx->post_lock);
	empty = atomic_load(&rx->rq_head) == atomic_load(&rx->rq_tail);
	if (empty)
		rx->closed = true;
	pthread_mutex_unlock(&rx->post_lock);
	return empty;
}
