/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of bytes as records of TLS on a socket: a session of GnuTLS.
 *
 * Bytes wait in two places that poll(2) does not see: what was read and is not decrypted or not
 * taken yet (fab_tls_stream_pending()), and what was encrypted and is not in the socket yet
 * (fab_tls_stream_unsent()).
 *
 * Nothing blocks.  The stream has no lock: one thread at a time.  An owner that sends on one thread
 * and receives on another locks around each call: a KeyUpdate that is received concerns the sender,
 * too.  Calls that need no lock say so. */
#ifndef FAB_TLS_STREAM_H
#define FAB_TLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "fab-tls.h"

struct fab_tls_stream;

#define FAB_TLS_WHY_LEN 200

/* Begin TLS, as @tls says, on the socket @fd, which stays the caller's.  @address is the peer's, as
 * fab_tls_session() has it.  @exact: until fab_tls_stream_read_ahead() read no byte that GnuTLS
 * does not ask for.  NULL: no memory. */
struct fab_tls_stream *fab_tls_stream_create(const struct fab_tls *tls, int fd,
					     const char *address, bool exact);
/* A peer whose first byte is @byte, of no record of TLS, speaks in plain: its bytes stay in the
 * socket, and the handshake goes no further. */
void fab_tls_stream_leave(struct fab_tls_stream *s, uint8_t byte);
/* Free @s; NULL: do nothing.  Nothing is sent. */
void fab_tls_stream_destroy(struct fab_tls_stream *s);
/* The bytes of a stream. */
size_t fab_tls_stream_memory(void);

/* Go on with the handshake.  0: done; -EAGAIN: call again when the socket has bytes, or room for
 * what is unsent; or another -errno with the cause @why, of which the peer was told. */
int fab_tls_stream_handshake(struct fab_tls_stream *s, char why[FAB_TLS_WHY_LEN]);
/* From now on read ahead.  After the handshake. */
void fab_tls_stream_read_ahead(struct fab_tls_stream *s);
/* True if a byte of the peer was read. */
bool fab_tls_stream_heard(const struct fab_tls_stream *s);
/* The session of @s, and its end, for fab-tls.h and for what GnuTLS alone knows: the caller neither
 * sends nor receives with the session, and does not free it. */
struct gnutls_session_int *fab_tls_stream_session(const struct fab_tls_stream *s);
const struct fab_tls_end *fab_tls_stream_end(const struct fab_tls_stream *s);

/* As sendmsg(2): encrypt bytes of @iov, as many as have room; the records wait in @s.  Returns
 * their number, or -1 with errno; EAGAIN: none has room. */
ssize_t fab_tls_stream_send(struct fab_tls_stream *s, const struct iovec *iov, size_t n);
/* Write the records that wait.  Returns the bytes that are left because the socket is full, or
 * -errno. */
int fab_tls_stream_flush(struct fab_tls_stream *s);
/* The bytes that wait to be written. */
size_t fab_tls_stream_unsent(const struct fab_tls_stream *s);
/* Take the word that no bytes follow, to be flushed.  Without room: do nothing. */
void fab_tls_stream_bye(struct fab_tls_stream *s);

/* Bytes to receive: @iov of @n elements is the caller's to set, the rest begins as zero. */
struct fab_tls_take {
	const struct iovec *iov;
	size_t n;
	size_t at;			/* in the first element */
	size_t got;
	bool begun;
};

/* Receive bytes of one record, so that others can have the stream between two.  False: all places
 * have bytes, or no bytes are there now, or the receive side has ended. */
bool fab_tls_stream_take(struct fab_tls_stream *s, struct fab_tls_take *take);
/* The result of @take when it is over, as of recvmsg(2).  0: the peer has ended its stream, and
 * said so.  The receiving thread, without a lock. */
ssize_t fab_tls_stream_taken(const struct fab_tls_stream *s, const struct fab_tls_take *take);
/* True if bytes, or an end, wait that the socket does not show.  The receiving thread, without a
 * lock. */
bool fab_tls_stream_pending(const struct fab_tls_stream *s);
/* The cause for which the receive side has ended or a record was not sent; "": errno says it.  The
 * receiving thread, without a lock if the receive side has ended. */
const char *fab_tls_stream_why(const struct fab_tls_stream *s);

#endif
