/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS under a connection of NBD: a stream of TLS (fab-tls-stream.h) as the engine's (nbd-tls.h).
 * The set-up is one thread's, the stream is another's afterwards; never two at once. */
#ifndef GATE_STREAM_H
#define GATE_STREAM_H

#include "fab-tls-stream.h"
#include "fabric.h"
#include "nbd-tls.h"

struct gate_stream;

/* Begin TLS, as @tls says, at the socket @fd, which stays the caller's.  @epoch counts how often
 * the credentials of @tls were replaced before this call.  NULL: no memory. */
struct gate_stream *gate_stream_create(const struct fab_tls *tls, int fd, uint64_t epoch);
/* Free @s; NULL: do nothing.  Nothing is sent. */
void gate_stream_destroy(struct gate_stream *s);
/* Go on with the handshake.  0: done; -EAGAIN: call again when the socket has *@events, of poll(2);
 * or -errno with the cause @why, of which the client was told. */
int gate_stream_handshake(struct gate_stream *s, short *events, char why[FAB_TLS_WHY_LEN]);
/* Write to @buf the cipher and who the client is, for a log.  After the handshake. */
void gate_stream_describe(const struct gate_stream *s, char *buf, size_t len);
/* @s as the engine's.  After the handshake. */
struct nbd_stream *gate_stream_nbd(struct gate_stream *s);
/* The cipher of @s, which is a gate_stream_nbd(), and who the client is, as the handshake has
 * shown.  Constant; lives as long as @s. */
const struct fab_identity *gate_stream_identity(const struct nbd_stream *s);
/* True if @s, a gate_stream_nbd(), was made or found good with the credentials of @epoch.  The
 * thread that has @s. */
bool gate_stream_is_checked(const struct nbd_stream *s, uint64_t epoch);
/* Would the credentials that the end has by now, those of @epoch or newer ones, let the client of
 * @s in?  False: @why says what has become of the client's key or certificate.  Costs the
 * verification of a certificate.  As gate_stream_is_checked(). */
bool gate_stream_check(struct nbd_stream *s, uint64_t epoch, char why[FAB_TLS_WHY_LEN]);

#endif
