/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS for NBD clients.  The steps of a handshake are jobs of a worker (worker.h), so that they hold
 * up no IO; each loop has a worker.  Handshakes are bounded in number (unproven.h) and in time.  A
 * client whose key or certificate is replaced during its handshake does not get in. */
#ifndef GATE_TLS_H
#define GATE_TLS_H

#include <stdatomic.h>

#include "fab-tls.h"
#include "loop.h"
#include "nbd-tls.h"
#include "unproven.h"
#include "worker.h"

struct gate_tls {
	const struct fab_tls *creds;	/* NULL: no TLS */
	/* How often @creds have got other keys or certificates: raised behind that (gate-trust.h).
	 * Any thread. */
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

#endif
