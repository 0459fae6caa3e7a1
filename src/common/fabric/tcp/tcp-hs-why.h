/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a handshake has failed, in words for a log.  The cm's thread, under cm->lock. */
#ifndef TCP_HS_WHY_H
#define TCP_HS_WHY_H

#include "tcp-conn.h"
#include "tcp-tls.h"

/* Describe in @why the peer of @c, which speaks another protocol: the protocol, if known by its
 * first bytes; the first line, if text (HTTP, SSH, SMTP); or the first bytes.  @c is at its end, so
 * more than a frame may be read. */
void tcp_hs_why_said(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);
/* The cause when the deadline of @c has passed. */
const char *tcp_hs_why_silent(const struct tcp_conn *c);
/* The cause when the peer has closed the connection. */
const char *tcp_hs_why_closed(const struct tcp_conn *c);

#endif
