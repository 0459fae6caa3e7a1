/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of a connection, and the poll that drives both directions, as fabric.h has them. */
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

#endif
