/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client does with a device that reaches registered memory alone (clt-io.h). */
#include "world.h"

static struct world *w;
static struct world_client *c;

static void start(uint32_t depth, uint32_t max_io)
{
	w = world_serve(SERVER(.queue_depth = depth, .max_io_size = max_io));
	c = world_client_start(w, NULL);
	CHECK(world_wait_open(c, 1000) <= 0);
	CHECK(world_client_opened(c) == 0);
}

static struct clt_sess *sess(void)
{
	return &world_client_clt(c)->sess;
}

/* @n writes and then reads at once, each of its own. */
static void many(unsigned n)
{
	struct world_io *ios[256];

	CHECK(n <= ARRAY_SIZE(ios));
	world_ios_start(c, RNBD_OP_WRITE, ios, n, 1);
	CHECK(world_ios_end(ios, n, 0, 0, 5000));
	world_ios_start(c, RNBD_OP_READ, ios, n, 0);
	CHECK(world_ios_end(ios, n, 0, 1, 5000));
}

/* Locked memory is dear: 128 slots, however many the server has. */
SIM_TEST(arena_of_128_slots)
{
	start(512, 8192);
	CHECK(sess()->io.slots.n == CLT_ARENA_SLOTS && sess()->io.arena.n == CLT_ARENA_SLOTS + 1);
	CHECK(sess()->io.arena.room == 8192);
	many(250);
}

/* A key opens one slot, and all of it: the next slot is not a byte further. */
SIM_TEST(region_of_a_slot)
{
	start(16, 8192);
	for (unsigned i = 0; i <= sess()->io.slots.n; i++) {
		const struct ibv_mr *mr = sess()->paths[0]->att.mrs[i];

		CHECK(mr->addr == sess()->io.arena.mem + i * sess()->io.arena.room);
		CHECK(mr->length == sess()->io.arena.room);
		/* The peer hears a name, and not where the memory lies. */
		CHECK(fab_mr_iova(mr) && fab_mr_iova(mr) != (uintptr_t)mr->addr);
	}
}

/* Each attempt registers anew, and a path that is down holds no region: the next one may find
 * another device, and the server that is gone keeps no key. */
SIM_TEST(regions_are_of_one_attempt)
{
	struct world_io *io;

	start(16, 65536);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 65536 * 3, 0x11, false);
	world_run_ms(w, 5);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 50);
	CHECK(!sess()->paths[0]->att.mrs && !sess()->paths[0]->att.pd &&
	      !sess()->paths[0]->att.slots_mr);
	world_server_start(w, NULL);
	CHECK(world_io_end(io, 0, 5000) == 0);
	CHECK(world_read(c, 0, 65536 * 3, 0x11) == 0);
}

/* A server that came back with larger requests gets none that the arena has no room for. */
SIM_TEST(larger_io_after_a_restart)
{
	start(16, 8192);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, NULL);
	CHECK(world_write(c, 0, 65536 * 4, 0x21) == 0);
	CHECK(world_read(c, 0, 65536 * 4, 0x21) == 0);
	CHECK(atomic_load(&sess()->io.max_io_size) == 8192);
}

static void add_path(void *arg)
{
	const struct clt_sess_addr addr = { .dst = sim_addr("srv/1", RTRS_PORT) };
	struct clt_path *path;

	CHECK(clt_paths_add(sess(), &addr, &path) == 0);
	clt_path_start(path);
}

/* With static keys each path copies, and the arena is there from the start. */
static bool all_copy(void)
{
	const char *registration = getenv("SIM_REGISTRATION");

	return registration && !strcmp(registration, "static");
}

/* The first path copies nothing, so the arena is made when another one connects: to a server that
 * was started again, with larger requests, and is probed with them up to a limit. */
static void larger_io_when_the_arena_is_made(uint32_t before)
{
	struct sim_fiber *adds;

	sim_offer_local_dma_lkey(true);
	sim_offer_rereg(true);
	w = world_serve(SERVER(.max_io_size = before, .any_address = true));
	c = world_client_opens(w, NULL);
	CHECK(!sess()->io.arena.mem);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_drop("clt", "srv");
	sim_offer_local_dma_lkey(false);
	sim_offer_rereg(false);
	world_server_start(w, SERVER(.max_io_size = 2 * before, .any_address = true));
	adds = world_client_fiber(c, add_path, NULL);
	CHECK(world_write(c, 0, 4 * before, 0x31) == 0);
	CHECK(world_read(c, 0, 4 * before, 0x31) == 0);
	CHECK(!world_traced(w, "no answer to a probe"));
	CHECK(sess()->io.arena.room == before);
	CHECK(atomic_load(&sess()->io.max_io_size) == before);
	sim_fiber_free(adds);
}

SIM_TEST(larger_io_when_the_arena_is_made)
{
	if (all_copy())
		return;
	larger_io_when_the_arena_is_made(DEV_PROBE_BYTES);
	larger_io_when_the_arena_is_made(DEV_PROBE_BYTES / 4);
}

/* The first path copies nothing, and has more slots than an arena: those in flight beyond it are
 * cut again. */
SIM_TEST(arena_of_a_deeper_session)
{
	struct world_io *ios[250];
	struct sim_fiber *adds;

	if (all_copy())
		return;
	sim_offer_local_dma_lkey(true);
	sim_offer_rereg(true);
	w = world_serve(SERVER(.queue_depth = 512, .max_io_size = 4096, .any_address = true));
	c = world_client_opens(w, NULL);
	CHECK(sess()->io.slots.n == 512);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(ios));
	world_ios_start(c, RNBD_OP_WRITE, ios, ARRAY_SIZE(ios), 1);
	world_run_ms(w, 20);
	sim_cut("clt", "srv");
	sim_drop("clt", "srv");
	sim_offer_local_dma_lkey(false);
	sim_offer_rereg(false);
	sim_disk_release(world_disk(w));
	adds = world_client_fiber(c, add_path, NULL);
	CHECK(world_ios_end(ios, ARRAY_SIZE(ios), 0, 0, 5000));
	CHECK(sess()->io.arena.n == CLT_ARENA_SLOTS + 1);
	CHECK(world_blocks_are(c, ARRAY_SIZE(ios), 1));
	many(250);
	sim_fiber_free(adds);
}

int main(int argc, char **argv)
{
	sim_offer_local_dma_lkey(false);
	sim_offer_rereg(false);
	return sim_test_main(argc, argv);
}
