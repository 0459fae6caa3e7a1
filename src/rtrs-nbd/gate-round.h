/* SPDX-License-Identifier: BSD-3-Clause */
/* A round: each loop of the gateway runs a function on its thread, between its other work, and the
 * service loop hears when all loops have.  Connections live on their loops, so whoever lists or
 * ends some goes round. */
#ifndef GATE_ROUND_H
#define GATE_ROUND_H

struct gate;
struct gate_loop;

struct gate_round_ops {
	/* Thread of the loop of @l, number @i of the gateway.  l->server is NULL if the loop has
	 * stopped to serve. */
	void (*ask)(struct gate_loop *l, unsigned i, void *arg);
	/* All loops have run ask(), and what they wrote is seen.  Service thread. */
	void (*done)(void *arg);
};

/* Begin a round through the loops of @g, which serves; @ops and @arg live until done().  Several
 * rounds may be under way: each loop takes them in the order of their begin.  0, or -ENOMEM and
 * neither function runs.  Service thread; done() does not run inside this call. */
int gate_round_start(struct gate *g, const struct gate_round_ops *ops, void *arg);

#endif
