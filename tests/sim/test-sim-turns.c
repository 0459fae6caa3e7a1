/* SPDX-License-Identifier: BSD-3-Clause */
/* Nobody waits behind a greedy neighbour: clients that never end, of an export with a limit at the
 * server, and a client of another export of the same session, whose requests are answered while
 * those of the greedy ones wait.  Judged by the order of the answers.  Through rtrs-nbd, and as the
 * plugin's threads. */
#include <stdlib.h>

#include "dev-req.h"
#include "nbd-priv.h"
#include "sim-fiber.h"
#include "world-gate.h"

#define LEN 4096u
#define ROUNDS 50u			/* requests of the client that asks */
#define GREEDY_MAX 64u

static struct world *w;
static struct world_client *c;
static struct world_gate *gate;
static struct sim_disk *disk1;

/* "disk0" has @iops, 0: no limit; "disk1" has none. */
static void limit(uint64_t iops)
{
	static const char *const names[] = { "disk0", "disk1" };
	static struct conf_export exports[ARRAY_SIZE(names)];
	char err[EXPORT_LIFE_ERR];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		exports[i].spec.name = exports[i].spec.path = names[i];
	exports[0].limits.rate[LIMIT_IOPS] = iops;
	CHECK(world_server_change(w, exports, ARRAY_SIZE(names), err) == 0);
}

static void begin(unsigned queue_depth)
{
	w = world_create(1);
	disk1 = sim_disk_create("disk1", WORLD_DISK_SIZE);
	world_server_start(w, SERVER(.queue_depth = queue_depth));
	limit(1);
}

static void end(void)
{
	world_destroy(w);
	sim_disk_destroy(disk1);
}

/* ---- through rtrs-nbd ---- */

struct greedy {
	struct sim_nbd nbd;
	struct sim_fiber *fiber;
	unsigned depth;
	uint64_t ended;			/* requests */
	bool stop;
	struct sim_nbd_req reqs[NBD_CONN_IOS];
	uint8_t buf[LEN];		/* nobody looks into it */
};

static uint64_t ended_of(const struct greedy *g, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += g[i].ended;
	return sum;
}

static void greedy_starts(struct greedy *g, struct sim_nbd_req *req)
{
	*req = (struct sim_nbd_req){ .cmd = NBD_CMD_READ, .len = LEN, .buf = g->buf };
	sim_nbd_start(&g->nbd, req);
}

/* One more request for each that ends. */
static void never_ends(void *arg)
{
	struct greedy *g = arg;
	unsigned left = g->depth;

	for (unsigned i = 0; i < g->depth; i++)
		greedy_starts(g, &g->reqs[i]);
	while (left) {
		struct sim_nbd_req *req = sim_nbd_first(&g->nbd);

		sim_nbd_wait(req);
		CHECK(req->fate == SIM_NBD_ANSWERED && req->status == 0);
		g->ended++;
		if (g->stop)
			left--;
		else
			greedy_starts(g, req);
	}
}

static void connect_to(struct sim_nbd *nbd, const char *export)
{
	struct sim_nbd_conf conf = sim_nbd_defaults;

	conf.export_name = export;
	world_gate_connect(gate, nbd, &conf);
	CHECK(sim_run_until(sim_nbd_opened, nbd, 10000));
	CHECK(nbd->state == SIM_NBD_SERVED);
}

static void leave(struct sim_nbd *nbd)
{
	sim_nbd_disc(nbd);
	CHECK(sim_run_until(sim_nbd_over, nbd, 10000));
	sim_nbd_fini(nbd);
}

static bool is_done(void *fiber)
{
	return sim_fiber_done(fiber);
}

/* A read. */
struct asking {
	struct sim_nbd *nbd;
	struct sim_nbd_req req;
	uint8_t buf[LEN];
};

static void ask(void *arg)
{
	struct asking *a = arg;

	a->req = (struct sim_nbd_req){ .cmd = NBD_CMD_READ, .len = LEN, .buf = a->buf };
	sim_nbd_start(a->nbd, &a->req);
	sim_nbd_wait(&a->req);
}

static void is_answered(struct sim_nbd *nbd)
{
	static struct asking a;
	struct sim_fiber *fiber;

	a.nbd = nbd;
	fiber = sim_fiber_start(ask, &a);

	CHECK(sim_run_until(is_done, fiber, 100000));
	CHECK(a.req.fate == SIM_NBD_ANSWERED && a.req.status == 0);
	sim_fiber_free(fiber);
}

/* @n connections of @depth reads each.  The other client asks again and again while they go on. */
static void gateway(unsigned n, unsigned depth, unsigned queue_depth)
{
	struct greedy *g = calloc(n, sizeof(*g));
	struct sim_nbd asks, late;

	CHECK(g);
	begin(queue_depth);
	c = world_gate_client(w, &world_client_defaults);
	gate = world_gate_start(c, NBD_SERVER_MEMORY_MIN);
	connect_to(&asks, "disk1");
	for (unsigned i = 0; i < n; i++) {
		connect_to(&g[i].nbd, "disk0");
		g[i].depth = depth;
		g[i].fiber = sim_fiber_start(never_ends, &g[i]);
	}
	world_run_ms(w, 50);
	CHECK(world_gate_inflight(gate) == n * depth);
	for (unsigned i = 0; i < ROUNDS; i++)
		is_answered(&asks);
	/* A client that comes later does not wait, either, for its OPEN or for its first read. */
	connect_to(&late, "disk1");
	for (unsigned i = 0; i < ROUNDS; i++)
		is_answered(&late);
	/* All of these reads, one after the other, took less time than three of the greedy ones. */
	CHECK(ended_of(g, n) < 3);
	limit(0);
	for (unsigned i = 0; i < n; i++)
		g[i].stop = true;
	for (unsigned i = 0; i < n; i++) {
		CHECK(sim_run_until(is_done, g[i].fiber, 100000));
		sim_fiber_free(g[i].fiber);
		leave(&g[i].nbd);
	}
	leave(&asks);
	leave(&late);
	world_gate_stop(gate);
	end();
	free(g);
}

SIM_TEST(gateway)
{
	gateway(1, NBD_CONN_IOS, 128);
	gateway(1, 8, 4);
	gateway(2, NBD_CONN_IOS, 128);
	gateway(8, NBD_CONN_IOS, 128);
	gateway(GREEDY_MAX, 16, 512);
}

/* ---- the plugin's way: a thread for each request ---- */

static struct dev_open_req second;

static void second_opened(struct dev_open_req *req)
{
	req->name = NULL;
}

static bool second_is_open(void *arg)
{
	return !second.name;
}

SIM_TEST(threads)
{
	struct world_io *greedy[256], *io;
	struct dev_handle other;

	begin(128);
	c = world_client_opens(w, &world_client_defaults);
	second = (struct dev_open_req){ .name = "disk1", .mode = RNBD_ACCESS_RW,
					.done = second_opened };
	dev_open_start(world_client_clt(c), &second);
	CHECK(sim_run_until(second_is_open, NULL, 1000) && !second.status);
	dev_handle_init(&other, second.dev);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		greedy[i] = world_io_start(c, RNBD_OP_READ, 0, LEN, 0, false);
	world_run_ms(w, 50);
	for (unsigned i = 0; i < ROUNDS; i++) {
		enum rnbd_io_op op = i % 3 ? RNBD_OP_READ : RNBD_OP_WRITE;

		io = world_io_start_by(c, &other, op, 0, LEN, 0, false);
		CHECK(world_io_end(io, 0, 900) == 0);
	}
	CHECK(!greedy[1]->done && !greedy[255]->done);
	limit(0);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		CHECK(world_io_end(greedy[i], 0, 10000) == 0);
	dev_handle_fini(&other);
	dev_close(second.dev);
	end();
}
