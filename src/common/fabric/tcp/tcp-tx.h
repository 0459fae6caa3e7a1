/* SPDX-License-Identifier: BSD-3-Clause */
/* The send side: work requests to frames.  Posts come from any thread, the rest from the polling one. */
#ifndef TCP_TX_H
#define TCP_TX_H

#include "tcp-conn.h"

int tcp_tx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
void tcp_tx_fini(struct tcp_conn *c);
/* What tcp_tx_init() allocates. */
size_t tcp_tx_memory(const struct fab_qp_attr *attr);

int tcp_tx_post(struct fab_conn *conn, const struct ibv_send_wr *wr);
/* Nothing waits to be written or polled. */
static inline bool tcp_tx_idle(const struct tcp_conn *c)
{
	return !atomic_load_explicit(&c->tx.blocked, memory_order_relaxed) &&
	       !atomic_load_explicit(&c->tx.ndone, memory_order_relaxed);
}
/* Write what waits, take up to @n completions. */
int tcp_tx_poll(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: completions not yet taken, then everything else as flushed. */
int tcp_tx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Nothing is left to flush: take nothing any more.  Returns false if there is. */
bool tcp_tx_close(struct tcp_conn *c);

#endif
