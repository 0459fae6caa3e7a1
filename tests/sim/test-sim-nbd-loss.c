/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-nbd while the server loses power under a write of two parts: the first was answered before,
 * the second is answered after FLUSHes have told of the loss (doc/decisions.md D13).  The end of
 * the second part finds the loss again, for each user, and the history has to know when. */
#include <errno.h>

#include "nbd-op.h"
#include "sim-fiber.h"
#include "world-gate.h"

#define PATIENCE_MS 60000
#define PART 8u				/* sectors */
#define OPS_MAX 16u			/* of a guest */

/* An NBD client. */
struct guest {
	struct nbd_user by;
	struct sim_nbd nbd;
	struct nbd_op ops[OPS_MAX];
	struct sim_fiber *fibers[OPS_MAX];
	unsigned nops;
};

static struct world *w;
static struct world_server_conf server;
static struct world_gate *gate;
static struct history *h;
static struct guest writer, other;

/* ---- guests ---- */

static void guest_connect(struct guest *g, unsigned user)
{
	g->by = (struct nbd_user){
		.nbd = &g->nbd, .h = h, .user = user, .flushes_fua = server.no_fua, .block = 1,
	};
	g->nops = 0;
	world_gate_connect(gate, &g->nbd, &sim_nbd_defaults);
	CHECK(sim_run_until(sim_nbd_opened, &g->nbd, PATIENCE_MS));
}

static void guest_leave(struct guest *g)
{
	sim_nbd_disc(&g->nbd);
	CHECK(sim_run_until(sim_nbd_over, &g->nbd, PATIENCE_MS));
	sim_nbd_fini(&g->nbd);
	while (g->nops)
		sim_fiber_free(g->fibers[--g->nops]);
}

static void judge(void *op)
{
	nbd_op_end(op);
}

/* The number of the request. */
static unsigned guest_start(struct guest *g, enum nbd_cmd cmd, uint16_t flags, unsigned n)
{
	unsigned i = g->nops++;

	CHECK(i < OPS_MAX && nbd_op_start(&g->ops[i], &g->by, cmd, flags, 0, n));
	g->fibers[i] = sim_fiber_start(judge, &g->ops[i]);
	return i;
}

static bool last_is_judged(void *arg)
{
	const struct guest *g = arg;

	return sim_fiber_done(g->fibers[g->nops - 1]);
}

/* The status of the last request, when the history has judged it. */
static int guest_ends(struct guest *g)
{
	CHECK(sim_run_until(last_is_judged, g, PATIENCE_MS));
	CHECK(g->ops[g->nops - 1].req.fate == SIM_NBD_ANSWERED);
	return g->ops[g->nops - 1].req.status;
}

static int guest_flushes(struct guest *g)
{
	guest_start(g, NBD_CMD_FLUSH, 0, 0);
	return guest_ends(g);
}

static bool all_is_sent(void *arg)
{
	const struct guest *g = arg;

	return g->nbd.stream.sent == g->nbd.stream.put;
}

/* The guest takes a second or so for an answer to what it has asked. */
static void guest_hears_slowly(struct guest *g)
{
	CHECK(sim_run_until(all_is_sent, g, PATIENCE_MS));
	g->nbd.stream.conf.piece = 1;
	g->nbd.stream.conf.rest_us = 200000;
}

static void guest_hears_at_once(struct guest *g)
{
	g->nbd.stream.conf = sim_stream_defaults;
}

/* ---- worlds ---- */

static bool write_is_held(void *arg)
{
	return sim_disk_held(world_disk(w)) == 1;
}

static void wait_held(void)
{
	CHECK(sim_run_until(write_is_held, NULL, PATIENCE_MS));
	world_run_ms(w, 50);
}

/* @writer's WRITE with @flags has lost its first part, and the storage holds the second. */
static void lose_first_part(bool no_fua, uint16_t flags)
{
	server = world_server_defaults;
	server.no_fua = no_fua;
	server.max_io_size = PART * RNBD_SECTOR_SIZE;
	w = world_serve(&server);
	gate = world_gate_start(world_gate_client(w, &world_client_defaults),
				NBD_SERVER_MEMORY_MIN);
	h = history_create(WORLD_DISK_SIZE / RNBD_SECTOR_SIZE);
	guest_connect(&writer, 0);
	guest_connect(&other, 1);
	/* A loss that the session finds as soon as it is back. */
	guest_start(&other, NBD_CMD_WRITE, 0, 1);
	CHECK(guest_ends(&other) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	guest_start(&writer, NBD_CMD_WRITE, flags, 2 * PART);
	wait_held();
	world_server_kill(w, SIM_KILL_POWER);
	history_power_cut(h);
	sim_power_on("srv");
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	world_server_start(w, &server);
	wait_held();
}

static void end(void)
{
	const char *why;

	guest_leave(&writer);
	guest_leave(&other);
	world_gate_stop(gate);
	why = history_check(h, sim_disk_content(world_disk(w)));
	if (why)
		sim_test_failed("history", 0, why);
	history_destroy(h);
	world_destroy(w);
}

/* ---- tests ---- */

/* FUA is a FLUSH behind the write: the write finds the loss for all users, though FUA fails. */
SIM_TEST(fua_in_parts)
{
	lose_first_part(true, NBD_CMD_FLAG_FUA);
	CHECK(guest_flushes(&other) == -EIO);
	CHECK(guest_flushes(&other) == 0);
	sim_disk_release(world_disk(w));
	CHECK(guest_ends(&writer) == -EIO);
	CHECK(guest_flushes(&other) == -EIO);
	CHECK(guest_flushes(&other) == 0);
	CHECK(guest_flushes(&writer) == 0);
	end();
}

/* A FLUSH tells of what a write has found, before the writer hears of the write's end. */
SIM_TEST(told_before_the_write_is_heard)
{
	lose_first_part(false, 0);
	CHECK(guest_flushes(&other) == -EIO);
	CHECK(guest_flushes(&other) == 0);
	guest_hears_slowly(&writer);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 50);
	CHECK(guest_flushes(&other) == -EIO);
	CHECK(writer.ops[0].req.fate == SIM_NBD_WAITS);
	CHECK(guest_ends(&writer) == 0);
	guest_hears_at_once(&writer);
	CHECK(guest_flushes(&other) == 0);
	CHECK(guest_flushes(&writer) == -EIO);
	CHECK(guest_flushes(&writer) == 0);
	end();
}

/* A FLUSH that was answered before the write ended is heard behind that end: the next one tells
 * again. */
SIM_TEST(told_before_heard_behind_the_write)
{
	unsigned flush;

	lose_first_part(false, 0);
	flush = guest_start(&other, NBD_CMD_FLUSH, 0, 0);
	guest_hears_slowly(&other);
	world_run_ms(w, 200);
	sim_disk_release(world_disk(w));
	CHECK(guest_ends(&writer) == 0);
	CHECK(other.ops[flush].req.fate == SIM_NBD_WAITS);
	CHECK(guest_ends(&other) == -EIO);
	guest_hears_at_once(&other);
	CHECK(guest_flushes(&other) == -EIO);
	CHECK(guest_flushes(&other) == 0);
	CHECK(guest_flushes(&writer) == -EIO);
	CHECK(guest_flushes(&writer) == 0);
	end();
}
