/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateway: clients are accepted and served, on the session's loop.  Main thread; functions that
 * say so block. */
#ifndef GATE_H
#define GATE_H

#include <semaphore.h>

#include "gate-export.h"
#include "gate-listen.h"

struct gate {
	struct loop *loop;
	struct gate_exports exports;
	struct nbd_server *server;
	struct gate_listener {
		struct gate *gate;
		struct loop_watch watch;
	} listeners[GATE_LISTEN_MAX];
	unsigned nlisteners;
	struct loop_timer again;	/* to accept, when descriptors were short */
	unsigned long long naccepted;
	struct loop_msg start_msg, stop_msg;
	size_t memory;
	sem_t told;
	int status;
};

/* Serve the clients that arrive at @l, from the exports of @clt.  @readonly: they may only read.
 * @memory: bytes for their data.  Blocks.  0 or -errno. */
int gate_start(struct gate *g, const struct gate_listen *l, struct client *clt,
	       const struct clt_conf *conf, bool readonly, size_t memory);
/* Accept no more, answer what is in flight, and close all connections.  Blocks until all are
 * gone. */
void gate_stop(struct gate *g);

#endif
