/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS in the kernel (kTLS): after GnuTLS's handshake the kernel makes and opens the records.
 *
 * poll(2) sees all bytes that wait.  The kernels of Debian (6.1, 6.12) cannot change keys: a
 * KeyUpdate of the peer ends the receive side, and so do an alert and a bad record.  As
 * tcp_ktls_send() sends no KeyUpdate either, a key of AES-GCM ends with its budget.  The threads of
 * tcp-tls.h; owns nothing. */
#ifndef TCP_KTLS_H
#define TCP_KTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct gnutls_session_int;

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
 * The kernel has been asked what it has (fab-ktls.h), and loads nothing now.
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

#endif
