/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS under a connection of NBD: a stream of TLS (fab-tls-stream.h) as the engine's (nbd-tls.h).
 * The set-up is one thread's, the stream is another's afterwards; never two at once. */
#ifndef GATE_STREAM_H
#define GATE_STREAM_H

#include "fab-tls-stream.h"
#include "fabric.h"
#include "nbd-tls.h"

struct gate_stream;

/* Begin TLS, as @tls says, at the socket @fd, which stays the caller's.  NULL: no memory. */
struct gate_stream *gate_stream_create(const struct fab_tls *tls, int fd);
/* Free @s; NULL: do nothing.  Nothing is sent. */
void gate_stream_destroy(struct gate_stream *s);
/* Go on with the handshake.  0: done; -EAGAIN: call again when the socket has *@events, of poll(2);
 * or -errno with the cause @why, of which the client was told. */
int gate_stream_handshake(struct gate_stream *s, short *events, char why[FAB_TLS_WHY_LEN]);
/* Write to @buf the cipher and who the client is, for a log.  After the handshake. */
void gate_stream_describe(const struct gate_stream *s, char *buf, size_t len);
/* @s as the engine's.  After the handshake. */
struct nbd_stream *gate_stream_nbd(struct gate_stream *s);
/* The cipher of @s, which is a gate_stream_nbd(), and who the client is, as the handshake has shown.
 * Constant; lives as long as @s. */
const struct fab_identity *gate_stream_identity(const struct nbd_stream *s);

#endif
