/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns an NBD server for each loop of the client, in place of gate.c, which has listening sockets
 * and waits for threads. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "clt-loop.h"
#include "gate-export.h"
#include "sim-wait.h"
#include "world-gate.h"

#define STOP_MS 600000			/* far above any fault of a test */

struct world_gate_loop {
	struct gate_exports exports;
	struct nbd_server *server;
	enum { GATE_LOOP_RUNS, GATE_LOOP_STOPPED } state;
};

struct world_gate {
	struct clt_conf conf;
	struct world_gate_loop loops[WORLD_LOOPS];
	unsigned nloops, naccepted;
};

const struct clt_wait_ops *world_gate_wait(void)
{
	static struct clt_wait_ops ops;

	ops = clt_loop_wait;
	ops.event = sim_wait_event;
	return &ops;
}

struct world_gate *world_gate_start(struct world_client *c)
{
	struct world_gate *g = calloc(1, sizeof(*g));
	struct loop *const *loops = world_client_loops(c, &g->nloops);

	assert(g);
	g->conf = (struct clt_conf){ .server = "srv", .mode = RNBD_ACCESS_RW };
	for (unsigned i = 0; i < g->nloops; i++) {
		struct world_gate_loop *l = &g->loops[i];
		const struct nbd_server_conf conf = {
			.memory = NBD_SERVER_MEMORY_MIN,
			.backend = &gate_backend,
			.arg = &l->exports,
		};

		gate_exports_init(&l->exports, loops[i], world_client_clt(c), &g->conf, false);
		CHECK(nbd_server_create(&l->server, loops[i], &conf) == 0);
	}
	return g;
}

void world_gate_connect(struct world_gate *g, struct sim_nbd *nbd, const struct sim_nbd_conf *conf)
{
	struct sim_host *host = sim_host_find("localhost");
	struct sim_place before = sim_enter(host, host->epoch);
	int fd = sim_nbd_open(nbd, conf);
	char name[32];

	sim_leave(before);
	snprintf(name, sizeof(name), "client %u", ++g->naccepted);
	CHECK(nbd_server_add(g->loops[g->naccepted % g->nloops].server, fd, name) == 0);
}

unsigned world_gate_count(const struct world_gate *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->nloops; i++)
		n += nbd_server_count(g->loops[i].server);
	return n;
}

static void loop_stopped(void *arg)
{
	((struct world_gate_loop *)arg)->state = GATE_LOOP_STOPPED;
}

static bool all_stopped(void *arg)
{
	const struct world_gate *g = arg;

	for (unsigned i = 0; i < g->nloops; i++) {
		if (g->loops[i].state != GATE_LOOP_STOPPED)
			return false;
	}
	return true;
}

void world_gate_stop(struct world_gate *g)
{
	for (unsigned i = 0; i < g->nloops; i++)
		nbd_server_stop(g->loops[i].server, loop_stopped, &g->loops[i]);
	CHECK(sim_run_until(all_stopped, g, STOP_MS));
	for (unsigned i = 0; i < g->nloops; i++)
		nbd_server_destroy(g->loops[i].server);
	free(g);
}
