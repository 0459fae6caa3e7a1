/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of a connection (tcp-qp.c), as fabric.h has them: the send side, from work requests to
 * frames (tcp-tx.c), and the receive side, from a byte stream to placed data and completions
 * (tcp-rx.c).  Posts come from any thread, the rest from the polling one. */
#ifndef TCP_QP_H
#define TCP_QP_H

#include "tcp-conn.h"

#define TCP_QP_MAX_WR 32768u
#define TCP_QP_MAX_SGE 16u

int tcp_qp_create(struct fab_conn *conn, struct fab_pd *fpd, const struct fab_qp_attr *attr);
size_t tcp_qp_memory(const struct fab_qp_attr *attr);
/* Free the queues, if there are any: @c is of no pd any more. */
void tcp_qp_fini(struct tcp_conn *c);
int tcp_qp_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
int tcp_qp_arm(struct fab_conn *conn, short *events);
int tcp_qp_need_rearm(const struct fab_conn *conn);

/* ---- sending ---- */

int tcp_tx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
void tcp_tx_fini(struct tcp_conn *c);
/* Bytes that tcp_tx_init() allocates. */
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

/* ---- receiving ---- */

int tcp_rx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
void tcp_rx_fini(struct tcp_conn *c);
/* Bytes that tcp_rx_init() allocates. */
size_t tcp_rx_memory(const struct fab_qp_attr *attr);

/* A receive that cannot be taken fails the connection. */
int tcp_rx_post(struct fab_conn *conn, const struct ibv_recv_wr *wr);
/* Read and parse; up to @n completions.  tcp_conn_failed() tells of a failure.  rx->lock held. */
int tcp_rx_run(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: up to @n receives as flushed. */
int tcp_rx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* None is left: take none any more.  Returns false if there is one. */
bool tcp_rx_close(struct tcp_conn *c);

#endif
