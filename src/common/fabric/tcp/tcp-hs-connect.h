/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of connect(2).  The cm's thread, under cm->lock. */
#ifndef TCP_HS_CONNECT_H
#define TCP_HS_CONNECT_H

#include "fab-tls-stream.h"
#include "tcp-conn.h"

/* connect(2) of @c is over: note our own address.  0, or -errno with the cause @why: connect(2) has
 * failed, or a user listens there whom the cm does not trust. */
int tcp_hs_connected(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);

#endif
