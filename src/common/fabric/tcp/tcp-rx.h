/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive side: a byte stream to placed data and completions, and the ring of posted receives.  Posts come
 * from any thread, the rest from the polling one. */
#ifndef TCP_RX_H
#define TCP_RX_H

#include "tcp-conn.h"

int tcp_rx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
void tcp_rx_fini(struct tcp_conn *c);
/* What tcp_rx_init() allocates. */
size_t tcp_rx_memory(const struct fab_qp_attr *attr);

/* A receive that cannot be taken fails the connection. */
int tcp_rx_post(struct fab_conn *conn, const struct ibv_recv_wr *wr);
/* Read and parse; up to @n completions.  A failure is in c->failed afterwards.  rx->lock held. */
int tcp_rx_run(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: up to @n receives as flushed. */
int tcp_rx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* None is left: take none any more.  Returns false if there is one. */
bool tcp_rx_close(struct tcp_conn *c);

#endif
