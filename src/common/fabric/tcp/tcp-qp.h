/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of a connection (tcp-qp.c), as fabric.h has them.  The send side turns work requests
 * into frames (tcp-tx.c); the receive side turns a byte stream into placed data and completions
 * (tcp-rx.c).  Any thread posts; the polling thread calls the rest. */
#ifndef TCP_QP_H
#define TCP_QP_H

#include "tcp-conn.h"

#define TCP_QP_MAX_WR 32768u
#define TCP_QP_MAX_SGE 16u

/* Make both rings, and add the connection to the pd. */
int tcp_qp_create(struct fab_conn *conn, struct fab_pd *fpd, const struct fab_qp_attr *attr);
/* The bytes of a connection with its rings. */
size_t tcp_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr);
/* Free the queues, if @c has queues, and take @c out of its pd. */
void tcp_qp_fini(struct tcp_conn *c);
/* Write, read and take completions; drain a failed connection. */
int tcp_qp_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
/* POLLIN, and POLLOUT while the socket is full. */
int tcp_qp_arm(struct fab_conn *conn, short *events);
/* Compare with the events of the last tcp_qp_arm(). */
int tcp_qp_need_rearm(const struct fab_conn *conn);

/* ---- sending ---- */

/* Allocate the send ring.  -ENOMEM: call tcp_tx_fini() all the same. */
int tcp_tx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
/* Free the send ring. */
void tcp_tx_fini(struct tcp_conn *c);
/* Bytes that tcp_tx_init() allocates. */
size_t tcp_tx_memory(const struct fab_qp_attr *attr);

/* Post a chain, and write as much as the socket takes. */
int tcp_tx_post(struct fab_conn *conn, const struct ibv_send_wr *wr);
/* True if no request waits to be written, and no completion to be polled. */
static inline bool tcp_tx_idle(const struct tcp_conn *c)
{
	return !atomic_load_explicit(&c->tx.blocked, memory_order_relaxed) &&
	       !atomic_load_explicit(&c->tx.ndone, memory_order_relaxed);
}
/* Write waiting requests, and take up to @n completions. */
int tcp_tx_poll(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: take completions not yet taken, then all other requests as flushed. */
int tcp_tx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Refuse further posts, if no request is left to flush.  Returns false if a request is left. */
bool tcp_tx_close(struct tcp_conn *c);

/* ---- receiving ---- */

/* Allocate staging and the receive ring.  -ENOMEM: call tcp_rx_fini() all the same. */
int tcp_rx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
/* Free staging and ring, and drop a placement in progress. */
void tcp_rx_fini(struct tcp_conn *c);
/* Bytes that tcp_rx_init() allocates. */
size_t tcp_rx_memory(const struct fab_qp_attr *attr);

/* Post receives.  A receive that cannot be taken fails the connection. */
int tcp_rx_post(struct fab_conn *conn, const struct ibv_recv_wr *wr);
/* Read and parse; returns up to @n completions.  After a failure tcp_conn_failed() is true.
 * rx->lock held. */
int tcp_rx_run(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: take up to @n receives as flushed. */
int tcp_rx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Refuse further receives, if no receive is left to flush.  Returns false if a receive is left. */
bool tcp_rx_close(struct tcp_conn *c);

#endif
