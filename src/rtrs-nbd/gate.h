/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateway: clients are accepted on the service loop and served on the session's loops, which
 * take them in turns.  A client stays on its loop.  Main thread; functions that say so block. */
#ifndef GATE_H
#define GATE_H

#include "acceptor.h"
#include "clt-start.h"
#include "gate-export.h"
#include "gate-listen.h"
#include "gate-tls.h"

/* The clients of one loop. */
struct gate_loop {
	struct gate *gate;
	struct loop *loop;
	struct gate_exports exports;
	struct gate_tls_port tls;
	struct nbd_server *server;	/* NULL: none, or it has stopped; thread of the loop */
	unsigned unanswered;		/* requests that failed, when @server has stopped */
	struct loop_call *ending;	/* waits until @server has stopped, or NULL */
	struct loop_msg trust_msg;	/* gate-trust.h */
	struct loop_msg memory_msg;	/* gate.memory has changed */
};

/* The gateway that takes clients, for commands; NULL: none.  Service thread. */
struct gate_now {
	struct gate *gate;
};

struct gate {
	struct clt_start *start;
	struct gate_loop loops[CLT_RUN_LOOPS];	/* [nloops], 0 is the service loop */
	unsigned nloops;
	struct gate_listener {
		struct gate *gate;
		struct acceptor acceptor;
	} listeners[GATE_LISTEN_MAX];
	unsigned nlisteners;
	unsigned long long naccepted;
	struct gate_tls tls;
	struct gate_now *now;
	const struct gate_options *options;	/* the caller's; service thread */
	atomic_size_t memory;		/* of a loop */
};

/* Serve the clients that arrive at @l, from the exports of @start's session, which runs, on all of
 * its loops.  @o says what clients may do, and have of TLS and of memory, and outlives @g.  @now
 * names @g until gate_leave().  Blocks.  0 or -errno. */
int gate_start(struct gate *g, const struct gate_listen *l, struct clt_start *start,
	       const struct gate_options *o, struct gate_now *now);
/* Have the gateway of @now, if there is one, @memory bytes for data of its clients from now on.
 * Service thread. */
void gate_set_memory(const struct gate_now *now, uint64_t memory);
/* Accept no more, and have all clients leave.  Blocks until the clients of all loops do: from then
 * on no client hears of an error that the next server may not have. */
void gate_leave(struct gate *g);
/* After gate_leave(): answer what is in flight, and close all connections.  Blocks until all are
 * gone.  A round (gate-round.h) may still end after this call: @g stays until the loops have
 * ended. */
void gate_stop(struct gate *g);

#endif
