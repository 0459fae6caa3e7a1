/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS for NBD clients.  The steps of a handshake are jobs of a worker (worker.h), so that they hold
 * up no IO; each loop has a worker.  Handshakes are bounded in number (unproven.h) and in time.  A
 * client whose key or certificate is replaced during its handshake does not get in. */
#ifndef GATE_TLS_H
#define GATE_TLS_H

#include <stdatomic.h>

#include "fab-tls-stream.h"
#include "fab-tls.h"
#include "fabric.h"
#include "loop.h"
#include "nbd-tls.h"
#include "unproven.h"
#include "worker.h"

struct gate_stream;

struct gate_tls {
	const struct fab_tls *creds;	/* NULL: no TLS */
	/* How often @creds have got other keys or certificates: raised behind that
	 * (gate_clients_revoke()).  Any thread. */
	_Atomic(uint64_t) epoch;
};

/* TLS for the clients of one loop.  Thread of the loop. */
struct gate_tls_port {
	struct nbd_tls nbd;
	struct gate_tls *tls;		/* NULL: no TLS */
	struct loop *loop;
	struct worker worker;		/* for steps */
	struct unproven unproven;	/* handshakes */
};

/* Make @port, for the clients of @loop, one of @nloops that share the limits.  @tls and its @creds
 * outlive it.  Returns the engine's view; NULL: there is no TLS. */
const struct nbd_tls *gate_tls_port_init(struct gate_tls_port *port, struct gate_tls *tls,
					 struct loop *loop, unsigned nloops);
/* End the thread.  All connections are gone.  A port of zeroes has nothing to end.  Main thread. */
void gate_tls_port_fini(struct gate_tls_port *port);

/* ---- gate-stream.c ----
 * TLS under a connection of NBD: a stream of TLS (fab-tls-stream.h) as the engine's (nbd-tls.h).
 * The set-up is one thread's, the stream is another's afterwards; never two at once. */

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
