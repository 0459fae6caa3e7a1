/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS in the handshake.  The cm's thread, under cm->lock.
 *
 * Calls return 0: go on as c->hs says now; -EAGAIN: call again when the socket is ready; or another
 * -errno: the set-up has failed. */
#ifndef TCP_HS_TLS_H
#define TCP_HS_TLS_H

#include "tcp-conn.h"
#include "tcp-tls.h"

/* Decide by a stranger's first byte. */
int tcp_hs_tls_begin(struct tcp_conn *c);
/* Begin the handshake of TLS. */
int tcp_hs_tls_start(struct tcp_conn *c);
/* Read a hello of TLS that is refused, and answer. */
int tcp_hs_tls_refuse(struct tcp_conn *c);
/* Go on with the handshake of TLS.  -EAGAIN: when the socket has @events; a failure has the cause
 * @why. */
int tcp_hs_tls_step(struct tcp_conn *c, uint32_t *events, char why[FAB_TLS_WHY_LEN]);

#endif
