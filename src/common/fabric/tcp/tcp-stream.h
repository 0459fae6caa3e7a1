/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a connection below its frames: the socket itself, or TLS on the socket (tcp-tls.h),
 * by GnuTLS or by the kernel.
 * Calls never block; threads as tcp-tls.h says. */
#ifndef TCP_STREAM_H
#define TCP_STREAM_H

#include <sys/socket.h>

#include "tcp-conn.h"
#include "tcp-tls.h"

/* Send bytes of @iov as sendmsg(2) does. */
static inline ssize_t tcp_stream_send(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };

	if (c->tls)
		return tcp_tls_send(c, iov, n);
	return sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send bytes that tcp_stream_send() has taken and kept.  0: none is left; or -1 with errno. */
static inline int tcp_stream_flush(struct tcp_conn *c)
{
	return c->tls ? tcp_tls_flush(c) : 0;
}

/* Receive bytes as recvmsg(2) does. */
static inline ssize_t tcp_stream_recv(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };

	if (c->tls)
		return tcp_tls_recv(c, iov, n);
	return recvmsg(c->fd, &msg, MSG_DONTWAIT);
}

/* True if bytes, or an end, wait where poll(2) does not see them. */
static inline bool tcp_stream_pending(const struct tcp_conn *c)
{
	return c->tls && tcp_tls_pending(c);
}

/* The cause of a failure of tcp_stream_recv() that errno does not tell; "": errno tells. */
static inline const char *tcp_stream_why(const struct tcp_conn *c)
{
	return c->tls ? tcp_tls_why(c) : "";
}

#endif
