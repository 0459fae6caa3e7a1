/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS below the frames of a connection: a stream of records on its socket (fab-tls-stream.h), or
 * records that the kernel makes with the keys of the session (kTLS).
 *
 * Without the kernel bytes wait in the stream, where poll(2) does not see them.  A single thread
 * sends and a single thread receives at a time; both may run at once.  The lock of the stream,
 * innermost, keeps them apart.  An end of the stream, an alert or a bad record ends the receive
 * side for good. */
#ifndef TCP_TLS_H
#define TCP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "fab-tls-stream.h"
#include "tcp-conn.h"

struct gnutls_session_int;
struct tcp_tls;

/* Begin TLS on the socket of @c, as @tls says.  0 or -ENOMEM. */
int tcp_tls_create(struct tcp_conn *c, const struct fab_tls *tls);
/* Free the session of @c; without one: do nothing.  Nothing is sent. */
void tcp_tls_destroy(struct tcp_conn *c);
/* Free the session @t, which no connection has any more. */
void tcp_tls_free(struct tcp_tls *t);
/* The bytes of a connection with TLS. */
size_t tcp_tls_memory(void);

/* Go on with the handshake of @t.  0: done; -EAGAIN: call again when the socket has @events
 * (EPOLLIN, and EPOLLOUT if there is something to send); or -errno with the cause @why.  The peer
 * was told.  Any thread that has @t to itself, with the socket open. */
int tcp_tls_handshake(struct tcp_tls *t, uint32_t *events, char why[FAB_TLS_WHY_LEN]);
/* Give the keys to the kernel, if the end asks for that.  Call once, when the
 * handshake is done and before a byte is sent or received.  1: the kernel has them; 0: this session
 * goes on, for the reason @why, "": it was not asked; or -errno with the cause @why.  The cm's
 * thread. */
int tcp_tls_hand_over(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);
/* True if a byte of the peer was read. */
bool tcp_tls_heard(const struct tcp_conn *c);
/* Fill @id, which is empty: who the peer is.  After the handshake. */
void tcp_tls_identity(const struct tcp_conn *c, struct fab_identity *id);
/* fab_conn_trusted() of @c, which has TLS.  After the handshake; the cm's thread. */
bool tcp_tls_trusts(const struct tcp_conn *c);
/* Fill @out, which is zero, with bytes of this session alone.  After the handshake.  False:
 * GnuTLS has failed. */
bool tcp_tls_binding(const struct tcp_conn *c, uint8_t out[FAB_BINDING_LEN]);
/* The cipher and the identity of a session, for a log.  Returns @buf. */
const char *tcp_tls_describe(const struct tcp_conn *c, char *buf, size_t len);

/* As sendmsg(2): encrypt and send bytes of @iov, as many as have room.  Returns their number, or -1
 * with errno; EAGAIN: none has room.  Bytes that were taken are copied.  tx->lock held, or the
 * set-up's thread. */
ssize_t tcp_tls_send(struct tcp_conn *c, struct iovec *iov, unsigned n);
/* Send what was taken.  0: nothing is left; or -1 with errno. */
int tcp_tls_flush(struct tcp_conn *c);
/* Tell the peer that no more bytes follow. */
void tcp_tls_bye(struct tcp_conn *c);

/* As recvmsg(2).  Fewer bytes than @iov has room for: nothing waits here, or tcp_tls_pending().
 * 0: the peer has ended its stream. */
ssize_t tcp_tls_recv(struct tcp_conn *c, struct iovec *iov, unsigned n);
/* True if tcp_tls_recv() may have bytes, or an end, that the socket does not show.  The receiving
 * thread. */
bool tcp_tls_pending(const struct tcp_conn *c);
/* The cause of the last failure of tcp_tls_recv(), "": errno says it. */
const char *tcp_tls_why(const struct tcp_conn *c);

/* ---- TLS in the kernel (kTLS): tcp-ktls.c ----
 *
 * After GnuTLS's handshake the kernel makes and opens the records.  poll(2) sees all bytes that
 * wait.  The kernels of Debian (6.1, 6.12) cannot change keys: a KeyUpdate of the peer ends the
 * receive side, and so do an alert and a bad record.  As tcp_ktls_send() sends no KeyUpdate either,
 * a key of AES-GCM ends with its budget.  The same threads; owns nothing. */

/* Bytes that a key of AES-GCM may encrypt (RFC 8446, 5.5: 2^24.5 records of 2^14 bytes). */
#define TCP_KTLS_GCM_BYTES (1ull << 38)

/* The end of a receive side. */
struct tcp_ktls_end {
	bool ended;
	int error;			/* 0: the peer ended its stream */
	char *why;			/* the cause; "": @error says it */
	size_t why_len;
};

/* Give the kernel both keys of @session, whose handshake on the socket @fd has just ended: no byte
 * after it has been read, and all bytes of the handshake are in the socket.
 * The kernel has been asked what it has (fab-tls.h), and loads nothing now.
 * Returns 1; 0: the kernel takes no key, @session goes on, for the reason @why; or -errno: the
 * kernel took a single key, and the connection cannot go on. */
int tcp_ktls_start(int fd, struct gnutls_session_int *session, char *why, size_t len);

/* Send bytes of @iov as sendmsg(2) does.  @budget is the number of bytes that the key may still
 * encrypt; EKEYEXPIRED: none. */
ssize_t tcp_ktls_send(int fd, struct iovec *iov, unsigned n, uint64_t *budget);
/* Receive bytes as recvmsg(2) does.  0 or -1 with another errno than EAGAIN: @end has ended, and
 * the peer was told. */
ssize_t tcp_ktls_recv(int fd, struct iovec *iov, unsigned n, struct tcp_ktls_end *end);
/* Tell the peer that no more bytes follow. */
void tcp_ktls_bye(int fd);

/* ---- the bytes of a connection below its frames ----
 *
 * Of the socket itself, or of TLS on the socket, by GnuTLS or by the kernel.  Calls never block;
 * the same threads. */

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
