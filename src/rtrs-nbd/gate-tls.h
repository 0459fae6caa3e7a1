/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS for NBD clients.  Handshakes have a thread of their own, so that they hold up no IO; they are
 * bounded in number (unproven.h) and in time.  A client whose key or certificate is
 * replaced during its handshake does not get in. */
#ifndef GATE_TLS_H
#define GATE_TLS_H

#include <stdatomic.h>

#include "unproven.h"
#include "deal.h"
#include "fab-tls.h"
#include "loop.h"
#include "nbd-tls.h"

struct gate_tls {
	const struct fab_tls *creds;
	/* How often @creds have got other keys or certificates: raised behind that (gate-trust.h).
	 * Any thread. */
	_Atomic(uint64_t) epoch;
	struct loop *loop;		/* of handshakes; NULL: no TLS */
	struct unproven unproven;		/* the loop's, as all that follows */
	struct deal steps;		/* handshakes whose client waits for a step */
	struct loop_task step;		/* makes one of them */
};

/* TLS for the clients of one loop. */
struct gate_tls_port {
	struct nbd_tls nbd;
	struct gate_tls *tls;
	struct loop *loop;
};

/* Start the thread; without TLS (@creds is NULL) nothing starts.  @creds outlives @t.  Main thread;
 * 0 or -errno. */
int gate_tls_start(struct gate_tls *t, const struct fab_tls *creds);
/* End the thread.  All connections are gone.  Main thread. */
void gate_tls_stop(struct gate_tls *t);
/* Make @port, for the clients of @loop.  Returns the engine's view; NULL: there is no TLS. */
const struct nbd_tls *gate_tls_port_init(struct gate_tls_port *port, struct gate_tls *t,
					 struct loop *loop);

#endif
