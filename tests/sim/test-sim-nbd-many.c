/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-nbd beyond its limits: one more request in flight than a connection may have, than all
 * connections may have, and requests of several parts, of which one fails or loses its path.  The
 * history judges each answer, and the disk. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "nbd-op.h"
#include "nbd-priv.h"
#include "share.h"
#include "sim-fiber.h"
#include "world-gate.h"

#define PATIENCE_MS 600000
#define OPS_MAX 262u			/* of a guest */
#define LARGE 70u			/* sectors of a WRITE with memory of its own */

struct guest {
	struct nbd_user by;
	struct sim_nbd nbd;
	struct sim_fiber *fiber;
	struct nbd_op ops[OPS_MAX];
	unsigned nops;
};

static struct world *w;
static struct world_gate *gate;
static struct history *h;

/* ---- worlds ---- */

static void begin(const struct world_server_conf *conf, unsigned sectors)
{
	w = world_create(1);
	sim_disk_resize(world_disk(w), sectors * RNBD_SECTOR_SIZE);
	world_server_start(w, conf);
	gate = world_gate_start(world_gate_client(w, &world_client_defaults),
				NBD_SERVER_MEMORY_MIN);
	h = history_create(sectors);
}

/* Nothing is in flight. */
static void check_disk(void)
{
	const char *why = history_check(h, sim_disk_content(world_disk(w)));

	if (why)
		sim_test_failed("history", 0, why);
}

static void end(void)
{
	world_gate_stop(gate);
	check_disk();
	history_destroy(h);
	world_destroy(w);
}

/* ---- guests, NBD clients ---- */

static void guest_connect(struct guest *c, const struct sim_nbd_conf *conf, unsigned block)
{
	c->by = (struct nbd_user){ .nbd = &c->nbd, .h = h, .block = block };
	c->nops = 0;
	world_gate_connect(gate, &c->nbd, conf);
	CHECK(sim_run_until(sim_nbd_opened, &c->nbd, PATIENCE_MS));
	CHECK(c->nbd.state == SIM_NBD_SERVED);
}

static struct nbd_op *guest_start(struct guest *c, enum nbd_cmd cmd, unsigned sector, unsigned n)
{
	struct nbd_op *op = &c->ops[c->nops++];

	assert(c->nops <= OPS_MAX);
	CHECK(nbd_op_start(op, &c->by, cmd, 0, sector, n));
	return op;
}

static void end_ops(void *arg)
{
	struct guest *c = arg;

	for (; c->nops; c->nops--)
		nbd_op_end(container_of(sim_nbd_first(&c->nbd), struct nbd_op, req));
}

static void guest_ends_ops(struct guest *c)
{
	c->fiber = sim_fiber_start(end_ops, c);
}

static bool ops_ended(void *arg)
{
	return sim_fiber_done(((const struct guest *)arg)->fiber);
}

/* Each request that was begun ends. */
static void guest_wait(struct guest *c)
{
	CHECK(sim_run_until(ops_ended, c, PATIENCE_MS));
	sim_fiber_free(c->fiber);
}

static void guest_run(struct guest *c)
{
	guest_ends_ops(c);
	guest_wait(c);
}

static int guest_does(struct guest *c, enum nbd_cmd cmd, unsigned sector, unsigned n)
{
	const struct nbd_op *op = guest_start(c, cmd, sector, n);

	guest_run(c);
	CHECK(op->req.fate == SIM_NBD_ANSWERED);
	return op->req.status;
}

static void guest_leave(struct guest *c)
{
	sim_nbd_disc(&c->nbd);
	CHECK(sim_run_until(sim_nbd_over, &c->nbd, PATIENCE_MS));
	CHECK(c->nbd.stream.cause == SIM_STREAM_SERVER);
	sim_nbd_fini(&c->nbd);
}

/* ---- beyond the limits of requests ---- */

/* The stream of @headers rests @rest_us behind @at bytes of the requests beyond NBD_CONN_IOS. */
static void split_at(enum nbd_headers headers, uint64_t at, uint32_t rest_us)
{
	static struct guest c;
	struct sim_nbd_conf conf = sim_nbd_defaults;
	unsigned sector = 0;

	conf.headers = headers;
	guest_connect(&c, &conf, 1);
	sim_freeze("srv");
	for (; sector < NBD_CONN_IOS - 2; sector++)
		guest_start(&c, NBD_CMD_WRITE, sector, 1);
	for (unsigned i = 0; i < 6; i++, sector += LARGE) {
		if (i == 2)
			c.nbd.stream.conf.split = c.nbd.stream.put + at;
		guest_start(&c, NBD_CMD_WRITE, sector, LARGE);
	}
	c.nbd.stream.conf.split_us = rest_us;
	world_run_ms(w, 10);
	CHECK(world_gate_inflight(gate) == NBD_CONN_IOS);
	sim_thaw("srv");
	guest_run(&c);
	check_disk();
	CHECK(guest_does(&c, NBD_CMD_FLUSH, 0, 0) == 0);
	guest_leave(&c);
}

/* The stream pauses at the limit.  The rest comes while all is in flight, or behind the answers. */
SIM_TEST(limit_of_connection)
{
	begin(NULL, NBD_CONN_IOS + 6 * LARGE);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t head = nbd_request_size((enum nbd_headers)i);
		const uint64_t whole = head + LARGE * RNBD_SECTOR_SIZE;
		const uint64_t cuts[] = { 1, head - 1, head, head + 1, whole / 2, whole - 1, whole,
					  whole + 1, whole + head, whole + head + 1, 2 * whole };

		for (unsigned k = 0; k < ARRAY_SIZE(cuts); k++) {
			split_at((enum nbd_headers)i, cuts[k], 5000);
			split_at((enum nbd_headers)i, cuts[k], 40000);
		}
	}
	end();
}

#define GUESTS (NBD_IOS_MAX / NBD_CONN_IOS + 1)
/* Connections take turns, and all have begun about so many requests at the limit: large WRITEs
 * pause there. */
#define LARGE_FROM 216u
#define LARGES 6u
#define GUEST_SECTORS (OPS_MAX + LARGES * LARGE)

static void guest_starts_all(struct guest *c, unsigned sector)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		unsigned n = i >= LARGE_FROM && i < LARGE_FROM + LARGES ? LARGE : 1;

		guest_start(c, i % 20 == 7 ? NBD_CMD_READ : NBD_CMD_WRITE, sector, n);
		sector += n;
	}
}

static void server_dies(const struct world_server_conf *next)
{
	world_server_kill(w, SIM_KILL_PROCESS);
	if (world_sync_was_cut(w))
		history_sync_cut(h);
	world_run_ms(w, 5);
	world_server_start(w, next);
}

/* All connections of a loop together have as many requests in flight as they may (share.h), and the
 * server dies. */
static bool has_most(void)
{
	unsigned most = NBD_IOS_MAX - (unsigned)share_reserve(NBD_IOS_MAX, GUESTS, 1);
	unsigned has = world_gate_inflight(gate);

	/* each one has its share of what is free beside the reserve */
	return has < most && (most - has) * SHARE_OF_FREE <= has / GUESTS + 2 * SHARE_OF_FREE;
}

SIM_TEST(limit_of_all)
{
	struct world_server_conf conf = world_server_defaults;
	struct guest *guests = calloc(GUESTS, sizeof(*guests));

	assert(guests);
	conf.queue_depth = 128;
	begin(&conf, GUESTS * GUEST_SECTORS);
	for (unsigned i = 0; i < GUESTS; i++) {
		struct sim_nbd_conf way = sim_nbd_defaults;

		way.headers = (enum nbd_headers)(i % 3);
		guest_connect(&guests[i], &way, 1);
	}
	sim_freeze("srv");
	for (unsigned i = 0; i < GUESTS; i++) {
		guest_starts_all(&guests[i], i * GUEST_SECTORS);
		guest_ends_ops(&guests[i]);
	}
	world_run_ms(w, 10);
	CHECK(has_most());
	sim_thaw("srv");
	world_run_ms(w, 2);
	CHECK(has_most());
	server_dies(&conf);
	for (unsigned i = 0; i < GUESTS; i++)
		guest_wait(&guests[i]);
	for (unsigned i = 0; i < GUESTS; i++)
		guest_leave(&guests[i]);
	end();
	free(guests);
}

/* ---- requests of several parts ---- */

#define WHOLE 2048u			/* sectors: 1 MiB */

static struct guest one;

/* @cmd for [@sector, +@n) is @ios operations of kind @op on the disk: each one fails once. */
static void fail_each(enum nbd_cmd cmd, unsigned sector, unsigned n, enum rnbd_io_op op,
		      unsigned ios)
{
	for (unsigned i = 0; i <= ios; i++) {
		sim_disk_fail_behind(world_disk(w), op, -EIO, i);
		CHECK(guest_does(&one, cmd, sector, n) == (i < ios ? -EIO : 0));
		sim_disk_fail(world_disk(w), op, 0, 0);
		CHECK(guest_does(&one, NBD_CMD_WRITE, sector, n) == 0);
		CHECK(guest_does(&one, NBD_CMD_FLUSH, 0, 0) == 0);
		check_disk();
	}
}

/* A request fails if one of its parts does, and the next one succeeds. */
SIM_TEST(part_fails)
{
	struct world_server_conf conf = world_server_defaults;
	unsigned parts = WHOLE * RNBD_SECTOR_SIZE / conf.max_io_size;

	conf.block_size = 4096;
	begin(&conf, 2 * WHOLE);
	guest_connect(&one, &sim_nbd_defaults, 8);
	one.by.lenient = true;
	fail_each(NBD_CMD_WRITE, 0, WHOLE, RNBD_OP_WRITE, parts);
	fail_each(NBD_CMD_READ, 0, WHOLE, RNBD_OP_READ, parts);
	/* the blocks of both edges are read, and written */
	fail_each(NBD_CMD_WRITE, 3, WHOLE + 2, RNBD_OP_WRITE, parts + 2);
	fail_each(NBD_CMD_WRITE, 3, WHOLE + 2, RNBD_OP_READ, 2);
	fail_each(NBD_CMD_READ, 3, WHOLE + 2, RNBD_OP_READ, parts + 2);
	guest_leave(&one);
	end();
}

#define MESSAGES_MAX 2000u		/* of a WRITE and a READ with one path lost between */

/* The path is lost before any message of the request, then of the READ behind. */
SIM_TEST(part_loses_path)
{
	unsigned before, nth = 0;

	begin(NULL, WHOLE);
	guest_connect(&one, &sim_nbd_defaults, 1);
	do {
		nth += 7;
		CHECK(nth < MESSAGES_MAX);
		before = sim_messages("clt", "srv");
		sim_cut_at_message("clt", "srv", nth);
		CHECK(guest_does(&one, NBD_CMD_WRITE, 0, WHOLE) == 0);
		check_disk();
		CHECK(guest_does(&one, NBD_CMD_READ, 0, WHOLE) == 0);
		CHECK(guest_does(&one, NBD_CMD_FLUSH, 0, 0) == 0);
	} while (sim_messages("clt", "srv") - before >= nth);
	sim_cut_at_message("clt", "srv", 0);
	CHECK(nth > 2 * WHOLE * RNBD_SECTOR_SIZE / world_server_defaults.max_io_size);
	guest_leave(&one);
	end();
}

static bool killed;

static void kill_server(void *arg)
{
	world_server_kill(w, SIM_KILL_PROCESS);
	killed = true;
}

static bool is_killed(void *arg)
{
	return killed || ops_ended(arg);
}

/* The server dies behind some part, and the next one has other sizes of parts. */
SIM_TEST(part_loses_server)
{
	static const uint32_t sizes[] = { 65536, 16384, 61440, 4096 };
	struct world_server_conf conf = world_server_defaults;
	unsigned step = 0, i = 0;

	begin(&conf, WHOLE);
	guest_connect(&one, &sim_nbd_defaults, 1);
	do {
		killed = false;
		step += 11;
		sim_at_step(sim_steps() + step, kill_server, NULL);
		guest_start(&one, NBD_CMD_WRITE, 0, WHOLE);
		guest_ends_ops(&one);
		CHECK(sim_run_until(is_killed, &one, PATIENCE_MS));
		sim_at_step(0, NULL, NULL);
		if (killed) {
			conf.max_io_size = sizes[++i % ARRAY_SIZE(sizes)];
			world_run_ms(w, 1);
			world_server_start(w, &conf);
		}
		guest_wait(&one);
		check_disk();
		CHECK(guest_does(&one, NBD_CMD_READ, 0, WHOLE) == 0);
		CHECK(guest_does(&one, NBD_CMD_FLUSH, 0, 0) == 0);
	} while (killed);
	guest_leave(&one);
	end();
}
