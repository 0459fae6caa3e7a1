/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-nbd in the world: the NBD engine and its backend (src/nbd-relay/relay.c) on the loops
 * of a client, as gate.c puts them there.  NBD clients are on the host "localhost", which no fault
 * of the network reaches. */
#ifndef WORLD_GATE_H
#define WORLD_GATE_H

#include "nbd-server.h"
#include "sim-nbd.h"
#include "world.h"

struct world_gate;

/* Serve the exports of @c, which outlives the gate, on all of its loops, with @memory bytes for the
 * data of each loop.  If no request has more than WORLD_GATE_DATA_MAX bytes of data, less than
 * NBD_SERVER_MEMORY_MIN will do: so many times the largest request, for three connections' input
 * and a request. */
#define WORLD_GATE_DATA_MAX (64u << 10)
#define WORLD_GATE_REQUESTS_MIN 4u
struct world_gate *world_gate_start(struct world_client *c, size_t memory);
/* Start a client for gates, with @conf but its .wait, and wait until its device is open. */
struct world_client *world_gate_client(struct world *w, const struct world_client_conf *conf);
/* Connect @nbd to a loop by chance.  The handshake is still to come. */
void world_gate_connect(struct world_gate *g, struct sim_nbd *nbd, const struct sim_nbd_conf *conf);
/* Connections that are not gone. */
unsigned world_gate_count(const struct world_gate *g);
/* Requests in flight, of all connections of all loops. */
unsigned world_gate_inflight(const struct world_gate *g);
/* Has the gate of @nbd forgotten the connection?  Then nothing of it is in flight.  @nbd: struct
 * sim_nbd *, whose stream may have ended long before. */
bool world_gate_forgot(void *nbd);
/* As SIGTERM; returns when no connection is left. */
void world_gate_stop(struct world_gate *g);

#endif
