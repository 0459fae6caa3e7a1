/* SPDX-License-Identifier: BSD-3-Clause */
/* What the states of a handshake (tcp-hs.c) do.  The cm's thread, under cm->lock, but for frames:
 * any thread, one at a time for a connection.
 *
 * In the order in which it happens: connect(2) ends; a side with TLS looks at the first byte of the
 * peer, and has the steps of TLS made (tcp-aside.c); CONNECT goes, and ACCEPT or REJECT comes.
 * Possible failures: nobody listens, the peer speaks another protocol or no TLS, it says nothing,
 * or it goes: tcp_hs_why_*() has the words. */
#ifndef TCP_HS_FRAME_H
#define TCP_HS_FRAME_H

#include "fab-tls-stream.h"
#include "tcp-conn.h"
#include "tcp-tls.h"

/* ---- frames: CONNECT, ACCEPT, REJECT ---- */

/* Send a handshake frame, which a fresh socket takes whole.  Returns 0 or -errno. */
int tcp_hs_send(struct tcp_conn *c, enum tcp_frame_op op, uint8_t flags, const void *data,
		size_t len);
/* Read exactly a frame and not a byte more: the bytes behind belong to fab_poll().  Returns 0 with
 * @f, -EAGAIN when bytes are missing, or another -errno with the cause *@why: "": -errno says it;
 * NULL: the first byte is of another protocol. */
int tcp_hs_read(struct tcp_conn *c, struct tcp_frame *f, const char **why);
/* Send a REJECT in plain on @fd, which is no connection yet. */
void tcp_hs_send_refusal(int fd, const void *data, size_t len);

/* ---- the end of connect(2) ---- */

/* connect(2) of @c is over: note our own address.  0, or -errno with the cause @why: connect(2) has
 * failed, or a user listens there whom the cm does not trust. */
int tcp_hs_connected(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);

/* ---- why a handshake has failed, in words for a log ---- */

/* Describe in @why the peer of @c, which speaks another protocol: the protocol, if known by its
 * first bytes; the first line, if text (HTTP, SSH, SMTP); or the first bytes.  @c is at its end, so
 * more than a frame may be read. */
void tcp_hs_why_said(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);
/* The cause when the deadline of @c has passed. */
const char *tcp_hs_why_silent(const struct tcp_conn *c);
/* The cause when the peer has closed the connection. */
const char *tcp_hs_why_closed(const struct tcp_conn *c);

/* ---- TLS ----
 *
 * Calls that return an error return -EAGAIN: call again when the socket is ready; or another
 * -errno: the set-up has failed. */

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
