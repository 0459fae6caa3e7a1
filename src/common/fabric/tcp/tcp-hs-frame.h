/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the handshake: CONNECT, ACCEPT, REJECT.  Any thread, one at a time for a
 * connection. */
#ifndef TCP_HS_FRAME_H
#define TCP_HS_FRAME_H

#include "tcp-conn.h"

/* Send a handshake frame, which a fresh socket takes whole.  Returns 0 or -errno. */
int tcp_hs_send(struct tcp_conn *c, enum tcp_frame_op op, uint8_t flags, const void *data,
		size_t len);
/* Read exactly a frame and not a byte more: the bytes behind belong to fab_poll().  Returns 0 with
 * @f, -EAGAIN when bytes are missing, or another -errno with the cause *@why: "": -errno says it;
 * NULL: the first byte is of another protocol. */
int tcp_hs_read(struct tcp_conn *c, struct tcp_frame *f, const char **why);
/* Send a REJECT in plain on @fd, which is no connection yet. */
void tcp_hs_send_refusal(int fd, const void *data, size_t len);

#endif
