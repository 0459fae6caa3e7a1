/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of exports, on a clock of the test: the rate, the fair share, and the ways in which a wait
 * ends.  Random limits under the oracle of history.h: test-sim-live. */
#include <errno.h>
#include <string.h>

#include "dev-req.h"
#include "raw-clt.h"
#include "world.h"

#define FIBERS 64u			/* at most, of a client */
#define MAX_LEN 16384u

/* A client that keeps @depth requests in flight. */
struct load {
	struct world_client *client;
	enum rnbd_io_op op;
	uint32_t len;
	unsigned depth;
	struct sim_fiber *fibers[FIBERS];
	uint64_t done;			/* IOs */
	bool stop;
};

static struct world *w;

static void work(void *arg)
{
	static uint8_t buf[MAX_LEN];	/* nobody looks into it */
	struct load *l = arg;
	struct dev_handle *h = world_client_handle(l->client);

	while (!l->stop) {
		CHECK((l->op == RNBD_OP_READ ? dev_call_read(h, buf, l->len, 0) :
					       dev_call_write(h, buf, l->len, 0, false)) == 0);
		l->done++;
	}
}

static struct world_client *client_open(const char *host, const char *device, unsigned npaths)
{
	struct world_client_conf conf = world_client_defaults;
	struct world_client *c;

	conf.host = conf.name = host;
	conf.device = device;
	conf.npaths = npaths;
	conf.mode = strcmp(host, "clt") ? RNBD_ACCESS_MIGRATION : RNBD_ACCESS_RW;
	c = world_client_opens(w, &conf);
	world_run_ms(w, 50);		/* for the other paths */
	return c;
}

static void load_begin(struct load *l, struct world_client *client, enum rnbd_io_op op,
		       uint32_t len, unsigned depth)
{
	*l = (struct load){ .client = client, .op = op, .len = len, .depth = depth };
	for (unsigned i = 0; i < depth; i++)
		l->fibers[i] = world_client_fiber(client, work, l);
}

static bool all_ended(void *arg)
{
	struct load *l = arg;

	for (unsigned i = 0; i < l->depth; i++) {
		if (!sim_fiber_done(l->fibers[i]))
			return false;
	}
	return true;
}

static void limit_all(const struct limits *limits)
{
	struct conf_export ex = { .spec = { .name = "disk0", .path = "disk0" },
				  .limits = *limits };
	char err[EXPORT_LIFE_ERR];

	CHECK(world_server_change(w, &ex, 1, err) == 0);
}

/* Give "disk0" the limit @i, @rate, and no other. */
static void limit(enum limit i, uint64_t rate, unsigned burst_s)
{
	struct limits limits = { .burst_s = burst_s };

	limits.rate[i] = rate;
	limit_all(&limits);
}

static void load_end(struct load *l)
{
	l->stop = true;
	CHECK(sim_run_until(all_ended, l, 1000));
	for (unsigned i = 0; i < l->depth; i++)
		sim_fiber_free(l->fibers[i]);
}

static void start(void)
{
	w = world_serve(SERVER(.threads = 3, .queue_depth = FIBERS, .any_address = true));
}

/* The requests that wait on "disk0" have begun at all. */
static void settle(void)
{
	world_run_ms(w, 50);
}

/* ---- the rate ---- */

static void rate_is(uint64_t rate, unsigned depth, enum limit which, uint32_t len)
{
	uint64_t units, most = rate * 10100 / 1000 + (which >= LIMIT_BPS ? len : 1);
	struct load l;

	start();
	limit(which, rate, 0);
	load_begin(&l, client_open("clt", NULL, 1), RNBD_OP_READ, len, depth);
	world_run_ms(w, 10000);
	units = l.done * (which >= LIMIT_BPS ? len : 1);
	printf("%llu of %llu\n", (unsigned long long)units, (unsigned long long)rate * 10);
	CHECK(units <= most && units >= rate * 10 * 97 / 100);
	limit(which, 0, 0);
	load_end(&l);
}

SIM_TEST(rate)
{
	rate_is(1, 4, LIMIT_IOPS, 4096);
	rate_is(7, 4, LIMIT_IOPS_READ, 512);
	rate_is(1000, 32, LIMIT_IOPS, 4096);
	rate_is(5000, 64, LIMIT_IOPS, 512);
	rate_is(65536, 32, LIMIT_BPS, 4096);
	rate_is(1000000, 16, LIMIT_BPS_READ, 16384);
}

/* The bucket saves units that were not used, and no others. */
SIM_TEST(burst)
{
	struct load l;
	struct world_client *c;

	start();
	limit(LIMIT_IOPS, 10, 20);
	c = client_open("clt", NULL, 1);
	for (unsigned round = 0; round < 2; round++) {
		world_run_ms(w, 60000);
		load_begin(&l, c, RNBD_OP_WRITE, 512, 8);
		world_run_ms(w, 1000);
		printf("%llu\n", (unsigned long long)l.done);
		CHECK(l.done >= 200 && l.done <= 212);
		limit(LIMIT_IOPS, 0, 0);
		load_end(&l);
		limit(LIMIT_IOPS, 10, 20);
	}
}

/* ---- what does not wait ---- */

SIM_TEST(flush_and_others_go)
{
	struct world_io *io[8];
	struct srv_limit_stat stat;
	struct world_client *c, *other;
	uint64_t start_us;

	start();
	limit(LIMIT_IOPS, 1, 0);
	c = client_open("clt", NULL, 1);
	other = client_open("clt2", NULL, 1);
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	settle();
	start_us = sim_now_us();
	CHECK(world_flush(c) == 0 && world_flush(other) == 0);
	CHECK(sim_now_us() - start_us < 100000);
	CHECK(!io[1]->done && !io[7]->done);
	world_server_waits(w, "disk0", &stat);
	CHECK(stat.requests == 0);
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 10000));
	/* The n-th has waited for n - 0.1 seconds. */
	world_server_waits(w, "disk0", &stat);
	CHECK(stat.requests == 7 && stat.ns / 100000000 >= 272 && stat.ns / 100000000 <= 281);
}

/* Reads wait for no limit of writes. */
SIM_TEST(directions)
{
	struct load reads, writes;
	struct world_client *c;

	start();
	limit(LIMIT_IOPS_WRITE, 5, 0);
	c = client_open("clt", NULL, 1);
	load_begin(&writes, c, RNBD_OP_WRITE, 4096, 8);
	settle();
	load_begin(&reads, c, RNBD_OP_READ, 4096, 8);
	world_run_ms(w, 4000);
	CHECK(writes.done >= 20 && writes.done <= 22);
	CHECK(reads.done > 8 * 4000 / 5);
	limit(LIMIT_IOPS, 0, 0);
	load_end(&writes);
	load_end(&reads);
}

/* A wait that ends sooner than those before is not kept until these end. */
SIM_TEST(a_later_wait_is_shorter)
{
	struct world_io *io[24];
	struct world_client *c;
	struct limits limits = { .burst_s = 0 };

	start();
	limits.rate[LIMIT_IOPS_READ] = 1;
	limits.rate[LIMIT_IOPS_WRITE] = 100;
	limit_all(&limits);
	c = client_open("clt", NULL, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++) {
		io[i] = world_io_start(c, i < 2 ? RNBD_OP_READ : RNBD_OP_WRITE, 4096 * i, 4096, 0,
				       false);
		if (i == 1)
			settle();
	}
	for (unsigned i = 2; i < ARRAY_SIZE(io); i++)
		CHECK(world_io_end(io[i], 0, 200) == 0);
	CHECK(!io[1]->done);
	for (unsigned i = 0; i < 2; i++)
		CHECK(world_io_end(io[i], 0, 2000) == 0);
}

/* ---- the fair share ---- */

static void share(enum limit which, uint64_t rate, uint32_t len, unsigned depth, uint32_t len2,
		  unsigned depth2, bool by_bytes)
{
	struct load a, b;
	uint64_t na, nb;

	start();
	limit(which, rate, 0);
	load_begin(&a, client_open("clt", NULL, 1), RNBD_OP_WRITE, len, depth);
	world_run_ms(w, 1000);
	load_begin(&b, client_open("clt2", NULL, 1), RNBD_OP_READ, len2, depth2);
	na = a.done;
	world_run_ms(w, 10000);
	na = (a.done - na) * (by_bytes ? len : 1);
	nb = b.done * (by_bytes ? len2 : 1);
	printf("%llu and %llu\n", (unsigned long long)na, (unsigned long long)nb);
	CHECK(na * 9 <= nb * 10 && nb * 9 <= na * 10);
	limit(which, 0, 0);
	load_end(&a);
	load_end(&b);
}

SIM_TEST(fair)
{
	share(LIMIT_IOPS, 200, 4096, 64, 4096, 64, false);
	share(LIMIT_IOPS, 200, 4096, 64, 512, 4, false);
	share(LIMIT_BPS, 1000000, 16384, 32, 4096, 32, true);
}

/* ---- the end of a wait ---- */

/* The requests of a path that is cut go over the other path, and the path is gone long before
 * their turn. */
SIM_TEST(path_is_cut)
{
	struct world_io *io[16];
	struct srv_limit_stat stat;
	struct world_client *c;
	struct load l;

	for (unsigned cut = 0; cut < 2; cut++) {
		start();
		limit(LIMIT_IOPS, 1, 0);
		c = client_open("clt", NULL, 2);
		world_forget(w);
		world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
		settle();
		sim_cut("clt", cut ? "srv/1" : "srv");
		world_run_ms(w, 300);
		/* Requests whose path lived ended as they should: their waits are counted. */
		world_server_waits(w, "disk0", &stat);
		CHECK(stat.requests > 0 && stat.requests < ARRAY_SIZE(io));
		CHECK(world_traced(w, "path down"));
		limit(LIMIT_IOPS, 4, 0);
		CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 10000));
		limit(LIMIT_IOPS, 0, 0);
		CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
		load_begin(&l, c, RNBD_OP_WRITE, 512, 4);
		world_run_ms(w, 100);
		load_end(&l);
	}
}

/* A session with @n writes of a block each, of which the export takes one a second. */
static struct world_client *line_up(struct world_io **io, unsigned n, unsigned npaths)
{
	struct world_client *c;

	start();
	limit(LIMIT_IOPS, 1, 0);
	c = client_open("clt", NULL, npaths);
	world_ios_start(c, RNBD_OP_WRITE, io, n, 7);
	settle();
	return c;
}

/* The whole session comes back: nothing of its former life is in line before it. */
SIM_TEST(all_paths_are_cut)
{
	struct world_io *io[8];
	uint64_t start_us;

	line_up(io, ARRAY_SIZE(io), 1);
	start_us = sim_now_us();
	sim_cut("clt", "srv");
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 10000));
	CHECK(sim_now_us() - start_us < 8500000);
}

/* An export that is taken away ends its requests with the error that later requests have. */
SIM_TEST(kick)
{
	struct world_io *io[8];
	unsigned refused = 0;

	line_up(io, ARRAY_SIZE(io), 1);
	CHECK(world_server_kick(w, "disk0") == 1);
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		refused += world_io_end(io[i], 0, 100) != 0;
	CHECK(refused == 7);
}

/* A request that has the export when that is taken away, and is on its way to the line, ends there:
 * the server asks for a size until then. */
SIM_TEST(kick_in_front_of_the_line)
{
	static struct raw_clt clt;

	w = world_serve(NULL);
	limit(LIMIT_IOPS, 1, 0);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 512, false) == 0);
	sim_disk_resize(world_disk(w), 2 * WORLD_DISK_SIZE);
	sim_disk_hold_size(world_disk(w));
	raw_clt_io_start(&clt, 1, 4, RNBD_OP_WRITE, WORLD_DISK_SIZE / 512, 512, false);
	settle();
	CHECK(!clt.path.answers[4].n);
	CHECK(world_server_kick(w, "disk0") == 1);
	sim_disk_release(world_disk(w));
	CHECK(raw_clt_wait(&clt, 4, 100) && clt.path.answers[4].status == -ENOTCONN);
}

/* A session that lost its last path behind the kick takes its handle up again, while the storage
 * has a request of it. */
SIM_TEST(kick_and_come_back)
{
	static struct raw_clt clt, again;

	w = world_serve(NULL);
	limit(LIMIT_IOPS, 1000, 0);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	clt.features = RNBD_EXT_ALL;
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 512, false);
	settle();
	CHECK(world_server_kick(w, "disk0") == 1);
	raw_clt_hang_up(&clt);
	settle();
	raw_clt_init(&again, "clt", 2, 1, 2);
	again.features = RNBD_EXT_ALL;
	CHECK(raw_clt_open(&again, "sess", RNBD_ACCESS_RW) == 0);
	CHECK(world_traced(w, "device 0 taken up again: disk0"));
	CHECK(raw_clt_io(&again, 1, 4, RNBD_OP_WRITE, 8, 512, false) == 0);
	sim_disk_release(world_disk(w));
}

/* A removed export stays with its opener, and with its limits. */
SIM_TEST(removed)
{
	struct world_io *io[4];
	struct world_client *c;
	char err[EXPORT_LIFE_ERR];

	c = line_up(io, ARRAY_SIZE(io), 1);
	CHECK(world_server_change(w, NULL, 0, err) == 0);
	world_run_ms(w, 1500);
	CHECK(io[0]->done && !io[3]->done);
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 4000));
	world_client_stop(w, c);
}

/* Requests that wait are answered before a server ends, and do not keep it. */
SIM_TEST(server_stops)
{
	struct world_io *io[16];
	uint64_t start_us;

	line_up(io, ARRAY_SIZE(io), 2);
	start_us = sim_now_us();
	world_server_stop(w);
	CHECK(sim_now_us() - start_us < 1000000);
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 100));
	CHECK(sim_disk_content(world_disk(w))[4096 * 15] == 7 + 15);
}

/* Limits that grow or go hold for requests that wait already. */
SIM_TEST(limits_change)
{
	struct world_io *io[32];
	uint64_t start_us;

	line_up(io, ARRAY_SIZE(io), 1);
	start_us = sim_now_us();
	limit(LIMIT_IOPS, 20, 0);
	for (unsigned i = 0; i < 16; i++)
		CHECK(world_io_end(io[i], 0, 1000) == 0);
	CHECK(sim_now_us() - start_us > 500000);
	limit(LIMIT_BPS_READ, 4096, 0);
	for (unsigned i = 16; i < ARRAY_SIZE(io); i++)
		CHECK(world_io_end(io[i], 0, 10) == 0);
}
