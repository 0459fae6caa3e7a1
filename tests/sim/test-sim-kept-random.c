/* SPDX-License-Identifier: BSD-3-Clause */
/* Random runs in which the client process is killed, and the next one takes its place: the user is
 * a kernel, which keeps its requests and hands those that were not answered to the next process, as
 * ublk_drv and nbd.ko do.  The seed makes a server, a client, a load, faults, and what of the dead
 * process is still under way when the next one comes; the history (history.h) judges.
 *
 * SIM_SEEDS=N runs N seeds (300), from SIM_SEED on (1).  A run that fails says how to replay it. */
#include <string.h>

#include "random-faults.h"
#include "random-work.h"

#define MAX_WORKERS 8
#define PATIENCE_MS 300000		/* after the last fault */

static struct world *w;
static struct random_faults f;
static struct world_client_conf conf;
static struct client_kept kept;
static unsigned life;			/* how many processes there were */
static bool served;			/* the last of them is there */

/* ---- the kernel ---- */

/* A request that a process has. */
struct asked {
	struct world_io *io;
	unsigned life;
};

/* Of processes that were killed. */
static struct world_io *ghosts[1024];
static unsigned nghosts;

static bool is_over(void *arg)
{
	const struct asked *a = arg;

	return !served || a->life != life || a->io->done;
}

static bool is_served(void *arg)
{
	return served;
}

static void ask(struct asked *a, const struct random_io *io)
{
	sim_fiber_wait(is_served, NULL);
	a->life = life;
	a->io = world_io_start_by(f.client, world_client_handle(f.client), io->op,
				  io->sector * 512ull, io->n * 512, 0, io->fua);
	if (io->op == RNBD_OP_WRITE)
		memcpy(a->io->buf, io->buf, io->n * 512);
}

/* What a process has answered counts if the kernel has the answer: a process that is killed at the
 * same step has not answered. */
static int kernel_carry(struct random_worker *wk, const struct random_io *io)
{
	struct asked a;
	int status;

	ask(&a, io);
	for (;;) {
		sim_fiber_wait(is_over, &a);
		if (served && a.life == life)
			break;
		CHECK(nghosts < ARRAY_SIZE(ghosts));
		ghosts[nghosts++] = a.io;
		ask(&a, io);
	}
	status = a.io->status;
	if (status == 0 && io->op == RNBD_OP_READ)
		memcpy(io->buf, a.io->buf, io->n * 512);
	if (status)
		dev_handle_arrived(world_client_handle(f.client));
	world_io_free(a.io);
	return status;
}

static bool ghosts_gone(void *arg)
{
	for (unsigned i = 0; i < nghosts; i++) {
		if (!ghosts[i]->done)
			return false;
	}
	return true;
}

static void free_ghosts(void)
{
	if (!sim_run_until(ghosts_gone, NULL, PATIENCE_MS))
		random_work_failed("requests of a dead process that never end");
	while (nghosts)
		world_io_free(ghosts[--nghosts]);
}

/* ---- processes ---- */

static void next_process(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "process-%u", life + 1);
	conf.name = name;
	f.client = world_client_start(w, &conf);
	/* The export of the next process is open from its beginning: the kernel waits for that. */
	if (life && world_wait_open(f.client, 0))
		random_work_failed("a device that is not there at once");
	life++;
	served = true;
}

/* The server's machine goes down and comes back while there is no client. */
static void lose_memory(void)
{
	world_server_kill(w, SIM_KILL_POWER);
	history_power_cut(f.h);
	sim_power_on("srv");
	world_server_start(w, &f.server);
}

/* Some of the ways keep what the process has sent, and its end, until later; so may the storage. */
static void take_over(void)
{
	static const char *const wires[WORLD_PATHS] = { "srv", "srv/1", "srv/2", "srv/3" };
	bool late = sim_chance(500), held = sim_chance(400);

	world_note(w, "process %u is killed", life);
	if (held)
		sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1 + sim_rand(4));
	for (unsigned i = 0; late && i < f.npaths; i++) {
		if (f.npaths == 1 || sim_chance(700))
			sim_drop("clt", wires[i]);
	}
	for (unsigned n = sim_rand(300); n && sim_step(sim_now_us() + 1000); n--)
		;
	served = false;
	world_client_kill(w, f.client, SIM_KILL_PROCESS);
	/* A loss whose report was on its way is reported once more. */
	if (atomic_load(&kept.loss.untold))
		history_sync_cut(f.h);
	if (sim_chance(200))
		lose_memory();
	next_process();
	if (sim_chance(500))
		world_run_ms(w, sim_rand(1500));
	random_heal(&f);
	if (held) {
		world_run_ms(w, sim_rand(1000));
		sim_disk_release(world_disk(w));
	}
}

/* ---- one run ---- */

static struct random_worker workers[MAX_WORKERS];

static bool workers_done(void *arg)
{
	for (unsigned i = 0; i < *(unsigned *)arg; i++) {
		if (!sim_fiber_done(workers[i].fiber))
			return false;
	}
	return true;
}

static void start_workers(unsigned n)
{
	struct sim_host *kernel = sim_host_find("clt2");
	struct sim_place before = sim_enter(kernel, kernel->epoch);

	for (unsigned i = 0; i < n; i++) {
		workers[i] = (struct random_worker){
			.w = w, .h = f.h, .number = i, .carry = kernel_carry,
			.ops = 10 + sim_rand(60), .pause_us = 5000,
		};
		workers[i].fiber = sim_fiber_start(random_work, &workers[i]);
	}
	sim_leave(before);
}

static void finish(unsigned n)
{
	const char *why;

	random_heal(&f);
	if (!sim_run_until(workers_done, &n, PATIENCE_MS))
		random_work_failed("requests that never end");
	for (unsigned i = 0; i < n; i++)
		sim_fiber_free(workers[i].fiber);
	free_ghosts();
	world_client_stop(w, f.client);
	world_run_ms(w, 1000);
	why = history_check(f.h, sim_disk_content(world_disk(w)));
	if (why)
		random_work_failed(why);
}

static void run_seed(uint64_t seed)
{
	unsigned nworkers, nfaults;

	w = world_create(seed);
	sim_shuffle(true);
	life = nghosts = 0;
	f.w = w;
	f.npaths = sim_chance(500) ? 1 : 2 + sim_rand(WORLD_PATHS - 1);
	random_server(&f.server, f.npaths);
	random_delays(w, f.npaths);
	random_client(&conf, f.npaths, false);
	conf.kept = &kept;
	conf.mode = sim_chance(500) ? RNBD_ACCESS_RW : RNBD_ACCESS_MIGRATION;
	nworkers = 1 + sim_rand(MAX_WORKERS);
	nfaults = 1 + sim_rand(12);
	client_kept_init(&kept, "boot", "disk0");
	f.h = history_create(WORLD_DISK_SIZE / RNBD_SECTOR_SIZE);
	world_server_start(w, &f.server);
	next_process();
	CHECK(world_wait_open(f.client, 60000) == 0);
	start_workers(nworkers);
	while (nfaults-- && !workers_done(&nworkers)) {
		world_run_ms(w, sim_rand(100));
		if (sim_chance(500))
			take_over();
		else
			random_fault(&f);
	}
	finish(nworkers);
	history_destroy(f.h);
	world_destroy(w);
}

int main(void)
{
	sim_offer_from_env();
	sim_test_seeds("", 300, run_seed);
	return 0;
}
