/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns an NBD server for each loop of the client, in place of gate.c, which has listening sockets
 * and waits for threads. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbd-priv.h"
#include "relay.h"
#include "sim-wait.h"
#include "world-gate.h"

#define STOP_MS 600000			/* far above any fault of a test */
#define OPEN_MS 60000

struct world_gate_loop {
	struct relay relay;
	struct nbd_server *server;
	enum { GATE_LOOP_RUNS, GATE_LOOP_STOPPED } state;
};

struct world_gate {
	struct list link;		/* gates */
	struct clt_conf conf;
	struct world_gate_loop loops[WORLD_LOOPS];
	unsigned nloops;
};

static struct list gates = LIST_INIT(gates);
static unsigned naccepted;		/* by all gates, ever */

static void name_of(unsigned number, char name[32])
{
	snprintf(name, 32, "client %u", number);
}

struct world_client *world_gate_client(struct world *w, const struct world_client_conf *conf)
{
	struct world_client_conf waits = *conf;
	struct world_client *c;

	waits.wait = sim_wait_loops();
	c = world_client_start(w, &waits);
	CHECK(world_wait_open(c, OPEN_MS) == 0);
	return c;
}

struct world_gate *world_gate_start(struct world_client *c, size_t memory)
{
	struct world_gate *g = calloc(1, sizeof(*g));
	struct loop *const *loops = world_client_loops(c, &g->nloops);

	assert(g);
	list_init(&g->link);
	list_add_tail(&gates, &g->link);
	g->conf = (struct clt_conf){ .server = "srv", .mode = RNBD_ACCESS_RW };
	for (unsigned i = 0; i < g->nloops; i++) {
		struct world_gate_loop *l = &g->loops[i];
		const struct nbd_server_conf conf = {
			.memory = memory,
			.backend = &relay_backend,
			.arg = &l->relay,
			.guests = NBD_GUESTS,
			.net_guests = NBD_NET_GUESTS,
		};

		relay_init(&l->relay, loops[i], world_client_clt(c), &g->conf, false);
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
	nbd->number = ++naccepted;
	name_of(nbd->number, name);
	sim_fd_use();
	CHECK(nbd_server_add(g->loops[sim_rand(g->nloops)].server, fd, name,
			     NBD_NET_LOCAL) == 0);
	sim_fd_used();
}

static bool server_has(const struct nbd_server *server, const char *name)
{
	const struct nbd_conn *conn;

	list_for_each(conn, &server->conns, link) {
		if (!strcmp(conn->name, name))
			return true;
	}
	return false;
}

bool world_gate_forgot(void *arg)
{
	const struct sim_nbd *nbd = arg;
	const struct world_gate *g;
	char name[32];

	name_of(nbd->number, name);
	list_for_each(g, &gates, link) {
		for (unsigned i = 0; i < g->nloops; i++) {
			if (server_has(g->loops[i].server, name))
				return false;
		}
	}
	return true;
}

unsigned world_gate_count(const struct world_gate *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->nloops; i++)
		n += nbd_server_count(g->loops[i].server);
	return n;
}

unsigned world_gate_inflight(const struct world_gate *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->nloops; i++)
		n += g->loops[i].server->nios;
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
	sim_fd_use();
	for (unsigned i = 0; i < g->nloops; i++)
		nbd_server_stop(g->loops[i].server, loop_stopped, &g->loops[i]);
	sim_fd_used();
	CHECK(sim_run_until(all_stopped, g, STOP_MS));
	for (unsigned i = 0; i < g->nloops; i++)
		nbd_server_destroy(g->loops[i].server);
	list_del(&g->link);
	free(g);
}
