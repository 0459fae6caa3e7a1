/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS in the handshake.  The cm's thread, under cm->lock.
 *
 * Calls that return an error return -EAGAIN: call again when the socket is ready; or another
 * -errno: the set-up has failed. */
#ifndef TCP_HS_TLS_H
#define TCP_HS_TLS_H

#include "tcp-conn.h"
#include "tcp-tls.h"

/* Look at an unproven peer's first byte.  Returns the event (enum tcp_event) that the byte is, or
 * -errno. */
int tcp_hs_tls_look(struct tcp_conn *c);
/* Read the begin of a hello of TLS.  1: tcp_hs_tls_skip() reads the rest; 0: this is no TLS; or
 * -errno. */
int tcp_hs_tls_hello(struct tcp_conn *c);
/* Read the rest of a hello of TLS, and answer that TLS is off.  0 or -errno. */
int tcp_hs_tls_skip(struct tcp_conn *c);
/* True if the peer of the active side has answered its hello in plain.  Before each step of TLS's
 * handshake. */
bool tcp_hs_tls_answered(struct tcp_conn *c);
/* TLS's handshake is done.  0, or -errno with the cause @why. */
int tcp_hs_tls_done(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);

#endif
