/* SPDX-License-Identifier: BSD-3-Clause */
/* Random runs of rtrs-nbd: a seed makes a world, NBD connections, their requests, and faults on
 * both sides.  NBD clients read slowly, send in pieces, are cut at any byte, leave with requests in
 * flight, and come again; the gate is stopped and another takes over; and the network, the server
 * and its storage fail as in test-sim-random.c.  The history judges each answer, and the disk.
 *
 * One seed of MANY_EACH has clients with more requests in flight than a connection may have, and
 * requests of many parts, on a larger disk.
 *
 * SIM_SEEDS, SIM_SEED and SIM_SECONDS as in test-sim-random.c (100 seeds). */
#include <stdlib.h>

#include "nbd-priv.h"
#include "nbd-work.h"
#include "random-faults.h"
#include "sim-fiber.h"
#include "world-gate.h"

#define MANY_EACH 32u
#define MAX_WORKERS 10u			/* of a connection, each with a request in flight */
#define PATIENCE_MS 300000		/* after the last fault */

/* An NBD client, with one connection after the other. */
struct guest {
	struct nbd_user by;
	struct sim_nbd nbd;
	struct sim_fiber *fiber;
	unsigned lives;			/* connections to come */
	unsigned most, least;		/* sectors of a request */
	bool many;			/* of the connection: one worker, many requests */
	struct guest_worker {
		struct sim_fiber *fiber;
		struct nbd_work work;
	} workers[MAX_WORKERS];
	unsigned nworkers;
};

/* What a kind of seeds has. */
struct kind {
	unsigned sectors;		/* of the disk */
	unsigned area;			/* sectors in use, so that requests meet */
	unsigned many;			/* permille of connections with many requests */
	uint32_t data_max;		/* bytes of a request */
};

static const struct kind few = { WORLD_DISK_SIZE / RNBD_SECTOR_SIZE, 256, 0, WORLD_GATE_DATA_MAX };
static const struct kind many = { 4096, 4096, 700, 1u << 20 };

static struct world *w;
static const struct kind *kind;
static struct world_gate *gate;		/* NULL: the next is not there yet */
static struct guest guests[HISTORY_USERS];

/* ---- requests ---- */

/* Choose how long requests are.  A connection in small pieces has small requests.  Several that fit
 * into a block of input fill it; large ones of one length have memory ahead of them. */
static void random_lens(struct guest *g)
{
	static const struct {
		unsigned least, most;
	} lens[] = { { 1, 8 }, { 1, 8 }, { 1, 96 }, { 16, 56 }, { 80, 80 } };
	uint32_t piece = g->nbd.conf.stream.piece;
	unsigned i = piece && piece < 1000 ? 0 : sim_rand(ARRAY_SIZE(lens));

	g->least = lens[i].least;
	g->most = lens[i].most;
}

/* ---- connections ---- */

static void random_stream(struct sim_stream_conf *conf)
{
	static const uint32_t pieces[] = { 0, 0, 0, 40, 1000, 10000, 10000 };

	*conf = sim_stream_defaults;
	conf->piece = pieces[sim_rand(ARRAY_SIZE(pieces))];
	if (sim_chance(500))
		conf->rest_us = sim_rand(conf->piece ? 500 : 5000);
	if (sim_chance(300))
		conf->buffer = 4096;
	if (sim_chance(150))
		conf->send_max = sim_rand(20000);
	if (sim_chance(150))
		conf->receive_max = sim_rand(20000);
	conf->half = sim_chance(300);
}

/* A stream of megabytes is not cut in so small pieces, and not near its begin. */
static void stream_for_many(struct sim_stream_conf *conf)
{
	if (conf->piece && conf->piece < 10000)
		conf->piece *= 100;
	if (conf->send_max != UINT64_MAX)
		conf->send_max *= 200;
	if (conf->receive_max != UINT64_MAX)
		conf->receive_max *= 100;
}

static void random_conf(struct sim_nbd_conf *conf)
{
	*conf = sim_nbd_defaults;
	conf->headers = (enum nbd_headers)sim_rand(3);
	if (conf->headers != NBD_HEADERS_EXTENDED && sim_chance(300))
		conf->option = SIM_NBD_EXPORT_NAME;
	conf->status = conf->headers != NBD_HEADERS_SIMPLE && sim_chance(700);
	random_stream(&conf->stream);
}

static bool workers_done(void *arg)
{
	const struct guest *g = arg;

	for (unsigned i = 0; i < g->nworkers; i++) {
		if (!sim_fiber_done(g->workers[i].fiber))
			return false;
	}
	return true;
}

static struct nbd_work *worker_work(struct guest *g, unsigned i)
{
	struct nbd_work *work = &g->workers[i].work;

	*work = (struct nbd_work){ .by = &g->by, .area = kind->area };
	return work;
}

static void start_few(struct guest *g)
{
	random_lens(g);
	g->nworkers = 1 + sim_rand(sim_chance(700) ? MAX_WORKERS / 2 : MAX_WORKERS);
	for (unsigned i = 0; i < g->nworkers; i++) {
		struct nbd_work *work = worker_work(g, i);

		work->least = g->least;
		work->most = g->most;
		work->ops = 1 + sim_rand(10);
		g->workers[i].fiber = sim_fiber_start(nbd_work_one_by_one, work);
	}
}

static void start_many(struct guest *g)
{
	struct nbd_work *work = worker_work(g, 0);

	g->nworkers = 1;
	work->depth = NBD_CONN_IOS + 1 + sim_rand(NBD_WORK_DEPTH - NBD_CONN_IOS);
	work->ops = work->depth + sim_rand(work->depth / 2);
	g->workers[0].fiber = sim_fiber_start(nbd_work_many, work);
}

static void guest_works(struct guest *g)
{
	if (g->many)
		start_many(g);
	else
		start_few(g);
	/* Requests may be in flight at the end. */
	if (sim_chance(300))
		nbd_work_rest(200000);
	else
		sim_fiber_wait(workers_done, g);
	if (sim_chance(200))
		sim_stream_close(&g->nbd.stream);
	else
		sim_nbd_disc(&g->nbd);
	sim_fiber_wait(workers_done, g);
	for (unsigned i = 0; i < g->nworkers; i++)
		sim_fiber_free(g->workers[i].fiber);
}

static bool gate_is_there(void *arg)
{
	return gate;
}

static void live(void *arg)
{
	struct guest *g = arg;
	struct sim_nbd_conf conf;

	while (g->lives--) {
		random_conf(&conf);
		g->many = kind->many && sim_chance(kind->many);
		if (g->many)
			stream_for_many(&conf.stream);
		sim_fiber_wait(gate_is_there, NULL);
		world_gate_connect(gate, &g->nbd, &conf);
		sim_fiber_wait(sim_nbd_opened, &g->nbd);
		history_new_user(g->by.h, g->by.user);
		if (g->nbd.state == SIM_NBD_SERVED)
			guest_works(g);
		sim_fiber_wait(sim_nbd_over, &g->nbd);
		sim_nbd_fini(&g->nbd);
	}
}

static bool guests_done(void *arg)
{
	for (unsigned i = 0; i < HISTORY_USERS; i++) {
		if (!sim_fiber_done(guests[i].fiber))
			return false;
	}
	return true;
}

static void guests_come(const struct random_faults *f, bool lenient)
{
	for (unsigned i = 0; i < HISTORY_USERS; i++) {
		struct guest *g = &guests[i];

		g->by = (struct nbd_user){
			.nbd = &g->nbd, .h = f->h, .user = i, .lenient = lenient,
			.flushes_fua = f->server.no_fua,
			.block = f->server.block_size / RNBD_SECTOR_SIZE,
		};
		g->lives = 1 + sim_rand(3);
		g->fiber = sim_fiber_start(live, g);
	}
}

/* ---- one run ---- */

/* At times so little that connections wait for each other's. */
static size_t random_memory(void)
{
	if (sim_chance(500))
		return NBD_SERVER_MEMORY_MIN;
	return WORLD_GATE_REQUESTS_MIN * kind->data_max + sim_rand(8) * kind->data_max;
}

/* A new rtrs-nbd takes over. */
static void gate_upgrade(struct world_client *c)
{
	struct world_gate *old = gate;

	world_note(w, "the gate stops");
	for (unsigned i = 0; i < HISTORY_USERS; i++)
		sim_nbd_excuse(&guests[i].nbd);
	gate = NULL;
	world_gate_stop(old);
	gate = world_gate_start(c, random_memory());
}

static void random_gate(struct random_faults *f, bool lenient)
{
	struct world_client_conf conf;

	random_server(&f->server, f->npaths);
	f->server.no_fua = sim_chance(250);
	f->server.block_size = sim_chance(250) ? 4096 : 512;
	random_delays(f->w, f->npaths);
	random_client(&conf, f->npaths, lenient);
	conf.nloops = 1 + sim_rand(conf.connections);
	sim_disk_resize(world_disk(f->w), kind->sectors * RNBD_SECTOR_SIZE);
	world_server_start(f->w, &f->server);
	f->client = world_gate_client(f->w, &conf);
	gate = world_gate_start(f->client, random_memory());
}

static void finish(const struct random_faults *f)
{
	const char *why;

	random_heal(f);
	if (!sim_run_until(guests_done, NULL, PATIENCE_MS))
		sim_test_failed(__FILE__, __LINE__, "a guest never ends");
	for (unsigned i = 0; i < HISTORY_USERS; i++)
		sim_fiber_free(guests[i].fiber);
	world_gate_stop(gate);
	world_client_stop(f->w, f->client);
	world_run_ms(f->w, 1000);
	why = history_check(f->h, sim_disk_content(world_disk(f->w)));
	if (why)
		sim_test_failed("history", 0, why);
}

static void run_seed(uint64_t seed)
{
	struct random_faults f = { .w = w = world_create(seed) };
	bool lenient = sim_chance(200);
	unsigned nfaults = sim_rand(10);

	kind = seed % MANY_EACH ? &few : &many;
	sim_shuffle(true);
	f.npaths = sim_chance(500) ? 1 : 2 + sim_rand(WORLD_PATHS - 1);
	f.h = history_create(kind->sectors);
	random_gate(&f, lenient);
	guests_come(&f, lenient);
	while (nfaults-- && !guests_done(NULL)) {
		world_run_ms(w, sim_rand(100));
		if (sim_chance(150))
			gate_upgrade(f.client);
		else
			random_fault(&f);
	}
	finish(&f);
	history_destroy(f.h);
	world_destroy(w);
}

int main(void)
{
	sim_offer_from_env();
	sim_test_seeds("", 100, run_seed);
	return 0;
}
