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
/* True if the peer of the active side has answered its hello in plain: the connection goes on
 * without TLS.  Before each step of TLS's handshake. */
bool tcp_hs_tls_answered(struct tcp_conn *c);
/* TLS's handshake is done.  A failure has the cause @why. */
int tcp_hs_tls_done(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);

#endif
