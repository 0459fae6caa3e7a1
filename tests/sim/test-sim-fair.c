/* SPDX-License-Identifier: BSD-3-Clause */
/* Two clients with the same load get the same from a thread of the server, within a tenth, where
 * they want more than it has: private memory for what is with the storage.  Whoever comes later
 * gets it, too. */
#include "dev-req.h"
#include "world.h"

#define DEPTH 64u			/* of each: together twice the private memory */
#define LEN 4096u
#define SLOW_US 5000u			/* for the storage, so that memory is what they wait for */

struct load {
	struct world_client *client;
	enum rnbd_io_op op;
	struct sim_fiber *fibers[DEPTH];
	unsigned begun;			/* fibers */
	uint64_t done;			/* IOs */
	bool stop;
};

static struct world *w;

static void work(void *arg)
{
	struct load *l = arg;
	struct dev_handle *h = world_client_handle(l->client);
	uint64_t off = (uint64_t)l->begun++ * LEN;
	static uint8_t buf[LEN];	/* nobody looks into it */

	while (!l->stop) {
		CHECK((l->op == RNBD_OP_READ ? dev_call_read(h, buf, LEN, off) :
					       dev_call_write(h, buf, LEN, off, false)) == 0);
		l->done++;
	}
}

static void load_open(struct load *l, const char *host, enum rnbd_io_op op)
{
	struct world_client_conf conf = world_client_defaults;

	conf.host = conf.name = host;
	conf.mode = op == RNBD_OP_READ ? RNBD_ACCESS_RO : RNBD_ACCESS_MIGRATION;
	*l = (struct load){ .client = world_client_start(w, &conf), .op = op };
	CHECK(world_wait_open(l->client, 1000) == 0);
}

static void load_begin(struct load *l)
{
	for (unsigned i = 0; i < DEPTH; i++)
		l->fibers[i] = world_client_fiber(l->client, work, l);
}

static bool all_ended(void *arg)
{
	struct load *l = arg;

	for (unsigned i = 0; i < DEPTH; i++) {
		if (!sim_fiber_done(l->fibers[i]))
			return false;
	}
	return true;
}

static void load_end(struct load *l)
{
	l->stop = true;
	CHECK(sim_run_until(all_ended, l, 5000));
	for (unsigned i = 0; i < DEPTH; i++)
		sim_fiber_free(l->fibers[i]);
}

/* @later_ms: how long the first one is alone. */
static void fair(enum rnbd_io_op op, unsigned later_ms)
{
	struct load a, b;
	uint64_t na, nb;

	w = world_serve(SERVER(.queue_depth = DEPTH, .max_io_size = LEN, .threads = 1,
			       .direct = true));
	sim_disk_delay(world_disk(w), SLOW_US, 0);
	load_open(&a, "clt", op);
	load_open(&b, "clt2", op);
	load_begin(&a);
	world_run_ms(w, later_ms);
	load_begin(&b);
	na = a.done;
	world_run_ms(w, 1000);
	na = a.done - na;
	nb = b.done;
	/* They wait: alone each would have had DEPTH in the time of the storage and of the way
	 * there. */
	printf("%llu and %llu IOs\n", (unsigned long long)na, (unsigned long long)nb);
	CHECK(na + nb < 2 * DEPTH * 1000000ull / (SLOW_US + 2000) * 9 / 10);
	CHECK(na * 10 <= nb * 11 && nb * 10 <= na * 11);
	load_end(&a);
	load_end(&b);
}

SIM_TEST(reads)
{
	fair(RNBD_OP_READ, 0);
	fair(RNBD_OP_READ, 103);
}

SIM_TEST(writes)
{
	fair(RNBD_OP_WRITE, 0);
	fair(RNBD_OP_WRITE, 103);
}
