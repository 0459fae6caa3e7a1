/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions take turns at a thread of the server: clients that never end, and one that asks now and
 * then.  Judged by the order in which requests enter the storage.  Opens, heartbeats and FLUSH wait
 * for no data of others.  The rules in detail: tests/unit/test-srv-drr.c. */
#include <string.h>

#include "dev-req.h"
#include "srv-drr.h"
#include "srv-rnbd-state.h"
#include "world.h"

#define DEPTH_MAX 512u
#define ASKS 8u			/* requests of the client that asks */
#define LARGE 65536u
#define DEEP_MAX 8u
#define HB_MS 500u

static struct world *w;
static struct sim_disk *disk1;
static uint8_t buf[LARGE];		/* nobody looks into it */

/* Two exports, of a server with one thread for IO. */
static void begin(void)
{
	static const char *const names[] = { "disk0", "disk1" };
	static struct conf_export exports[ARRAY_SIZE(names)];
	struct world_server_conf conf = world_server_defaults;
	char err[EXPORT_LIFE_ERR];

	conf.threads = 1;
	conf.queue_depth = DEPTH_MAX;
	conf.max_io_size = LARGE;
	conf.hb_interval_ms = HB_MS;
	w = world_create(1);
	disk1 = sim_disk_create("disk1", WORLD_DISK_SIZE);
	world_server_start(w, &conf);
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		exports[i].spec.name = exports[i].spec.path = names[i];
	CHECK(world_server_change(w, exports, ARRAY_SIZE(names), err) == 0);
}

static void end(void)
{
	world_destroy(w);
	sim_disk_destroy(disk1);
}

static struct world_client *client_open(const char *host, const char *name, const char *device,
					enum rnbd_access_mode mode)
{
	struct world_client_conf conf = world_client_defaults;
	struct world_client *c;

	conf.host = host;
	conf.name = name;
	conf.device = device;
	conf.connections = 1;
	conf.mode = mode;
	conf.hb_interval_ms = HB_MS;
	c = world_client_start(w, &conf);
	CHECK(world_wait_open(c, 1000) == 0);
	return c;
}

/* The server's counts for the session @name. */
static uint64_t ahead_max(const char *name)
{
	const struct srv_sess *sess;

	list_for_each(sess, &world_server_srv(w)->sessions, link) {
		const struct srv_dev_table *devs = &srv_rnbd_sess(sess)->devs;

		if (!strcmp(sess->name, name))
			return srv_dev_ahead_max(devs, srv_dev_first(devs));
	}
	CHECK(!"a session of this name");
	return 0;
}

/* ---- clients ---- */

/* A client that keeps @depth requests in flight. */
struct deep {
	struct world_client *client;
	enum rnbd_io_op op;
	uint32_t len;
	unsigned depth;
	struct sim_fiber *fibers[DEPTH_MAX];
	uint64_t done;
	bool stop;
};

static struct deep deep[DEEP_MAX];

static int call(struct world_client *c, enum rnbd_io_op op, uint32_t len)
{
	struct dev_handle *h = world_client_handle(c);

	return op == RNBD_OP_READ ? dev_call_read(h, buf, len, 0) :
				    dev_call_write(h, buf, len, 0, false);
}

static void never_ends(void *arg)
{
	struct deep *d = arg;

	while (!d->stop) {
		CHECK(call(d->client, d->op, d->len) == 0);
		d->done++;
	}
}

static void deep_begin(struct deep *d)
{
	for (unsigned i = 0; i < d->depth; i++)
		d->fibers[i] = world_client_fiber(d->client, never_ends, d);
}

static bool is_done(void *fiber)
{
	return sim_fiber_done(fiber);
}

static void deep_end(struct deep *d)
{
	d->stop = true;
	for (unsigned i = 0; i < d->depth; i++) {
		CHECK(sim_run_until(is_done, d->fibers[i], 10000));
		sim_fiber_free(d->fibers[i]);
	}
}

static void asks(void *arg)
{
	CHECK(call(arg, RNBD_OP_READ, 4096) == 0);
}

/* @n requests of @small arrive in one pass with what the others send meanwhile.  Returns what
 * the server counts. */
static uint64_t ask(struct world_client *small, unsigned n)
{
	struct sim_fiber *fibers[2];

	sim_freeze("srv");
	for (unsigned i = 0; i < n; i++)
		fibers[i] = world_client_fiber(small, asks, small);
	world_run_ms(w, 10);
	sim_thaw("srv");
	for (unsigned i = 0; i < n; i++) {
		CHECK(sim_run_until(is_done, fibers[i], 10000));
		sim_fiber_free(fibers[i]);
	}
	return ahead_max("small");
}

/* ---- turns ---- */

/* @n clients of @depth requests of @len each, beside one that has one request in flight, and then
 * two.  Between the arrival and the entry of its request none of theirs enter, and then at most
 * @quantum of each. */
static void beside(unsigned n, unsigned depth, enum rnbd_io_op op, uint32_t len, unsigned quantum)
{
	struct world_client *small;
	uint64_t ahead = 0;

	begin();
	for (unsigned i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "deep%u", i);
		deep[i] = (struct deep){ .op = op, .len = len, .depth = depth };
		deep[i].client = client_open("clt", name, "disk0", op == RNBD_OP_READ ?
					     RNBD_ACCESS_RO : RNBD_ACCESS_RW);
	}
	/* The thread looks at the connections in the order in which they came. */
	small = client_open("clt2", "small", "disk1", RNBD_ACCESS_RW);
	sim_freeze("srv");
	for (unsigned i = 0; i < n; i++)
		deep_begin(&deep[i]);
	for (unsigned i = 0; i < ASKS; i++)
		CHECK(ask(small, 1) == 0);
	for (unsigned i = 0; i < ASKS; i++)
		ahead = ask(small, 2);
	printf("beside %u of %u %s of %u: %llu\n", n, depth,
	       op == RNBD_OP_READ ? "reads" : "writes", len, (unsigned long long)ahead);
	CHECK(ahead >= quantum && ahead <= (uint64_t)n * quantum);
	for (unsigned i = 0; i < n; i++) {
		CHECK(deep[i].done >= deep[i].depth);
		deep_end(&deep[i]);
	}
	end();
}

SIM_TEST(one_beside_a_deep_one)
{
	static const unsigned depths[] = { 128, 129, 512 };

	for (unsigned i = 0; i < ARRAY_SIZE(depths); i++) {
		beside(1, depths[i], RNBD_OP_READ, 4096, 16);
		beside(1, depths[i], RNBD_OP_WRITE, 4096, 16);
		beside(1, depths[i], RNBD_OP_READ, LARGE, 2);
	}
}

SIM_TEST(one_beside_many)
{
	beside(DEEP_MAX, 64, RNBD_OP_READ, 4096, 16);
}

/* ---- what waits for no data ---- */

static struct started {
	unsigned of_deep, of_small;	/* operations of theirs with the storage */
	bool flush;
} at_flush;

static void started(const struct export_io *io)
{
	if (io->op != RNBD_OP_FLUSH)
		return;
	at_flush = (struct started){ sim_disk_inflight(world_disk(w)), sim_disk_inflight(disk1),
				     true };
}

static void flushes(void *arg)
{
	CHECK(dev_call_flush(world_client_handle(arg)) == 0);
}

static void deep_open(enum rnbd_access_mode mode)
{
	deep[0] = (struct deep){ .op = RNBD_OP_READ, .len = 4096, .depth = DEPTH_MAX };
	deep[0].client = client_open("clt", "deep", "disk0", mode);
}

/* A FLUSH that arrives after data, of others and of its own session, begins before it. */
SIM_TEST(flush_enters_before_data)
{
	struct world_client *small;
	struct sim_fiber *fibers[65];

	begin();
	small = client_open("clt2", "small", "disk1", RNBD_ACCESS_RW);
	deep_open(RNBD_ACCESS_RO);
	sim_disk_watch_started(disk1, started);
	sim_freeze("srv");
	deep_begin(&deep[0]);
	for (unsigned i = 0; i < ARRAY_SIZE(fibers); i++)
		fibers[i] = world_client_fiber(small, i < 64 ? asks : flushes, small);
	world_run_ms(w, 10);
	sim_thaw("srv");
	for (unsigned i = 0; i < ARRAY_SIZE(fibers); i++) {
		CHECK(sim_run_until(is_done, fibers[i], 10000));
		sim_fiber_free(fibers[i]);
	}
	CHECK(at_flush.flush && at_flush.of_deep == 0 && at_flush.of_small == 0);
	CHECK(ahead_max("small") > 0);
	deep_end(&deep[0]);
	end();
}

/* While all requests of a client stand still in the storage others open, flush, read and live. */
SIM_TEST(opens_and_heartbeats_wait_for_no_data)
{
	struct world_client *small;

	begin();
	small = client_open("clt2", "small", "disk1", RNBD_ACCESS_RW);
	deep_open(RNBD_ACCESS_RO);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, DEPTH_MAX);
	deep_begin(&deep[0]);
	world_run_ms(w, 20 * HB_MS);
	client_open("clt2", "late", "disk1", RNBD_ACCESS_RO);
	CHECK(world_flush(small) == 0 && world_read(small, 0, 4096, 0) == 0);
	CHECK(sim_disk_held(world_disk(w)) > DEPTH_MAX / 2 && !deep[0].done);
	CHECK(!world_traced(w, "path down"));
	sim_disk_release(world_disk(w));
	deep_end(&deep[0]);
	end();
}
