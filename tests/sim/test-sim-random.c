/* SPDX-License-Identifier: BSD-3-Clause */
/* Random runs: a seed makes a world, a workload and faults; the history (history.h) says whether
 * what was read and what is on the disk in the end was legal.  world_destroy() sees to it that
 * nothing is left over: permits, keys, connections, memory.
 *
 * SIM_SEEDS=N runs N seeds (300), from SIM_SEED on (1); SIM_SECONDS=N as many as fit
 * (sim_test_seeds()).  A run that fails says how to replay it: its seed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random-faults.h"
#include "random-work.h"

#define SECTORS (WORLD_DISK_SIZE / RNBD_SECTOR_SIZE)
#define MAX_WORKERS 8
#define PATIENCE_MS 300000		/* after the last fault */

static struct random_worker workers[MAX_WORKERS];
static struct dev_handle users[HISTORY_USERS];	/* connections of NBD clients */
static struct world *w;

/* ---- control messages ---- */

/* Control messages are under way beside the load: exports that are not there, and the one that is,
 * once more. */
static struct opener {
	struct world_client *client;
	struct sim_fiber *fiber;
	unsigned opens;
	bool lenient;
} opener;

static bool may_end_so(const struct opener *o, int status)
{
	return o->lenient && (status == -EIO || status == -ECONNABORTED);
}

static void open_and_close(void *arg)
{
	struct opener *o = arg;
	struct client *clt = world_client_clt(o->client);
	struct dev *dev;

	while (o->opens--) {
		uint64_t us = sim_rand(100000);
		int status = dev_open(clt, "nothing", RNBD_ACCESS_RO, &dev);

		if (status != -ENOENT && !may_end_so(o, status))
			random_work_failed("an export that is not there");
		status = dev_open(clt, "disk0", RNBD_ACCESS_RW, &dev);
		if (status)
			random_work_failed("a device that is open cannot be shared");
		dev_close(dev);
		random_work_pause(us);
	}
}

/* ---- one run ---- */

static bool workers_done(void *arg)
{
	for (unsigned i = 0; i < *(unsigned *)arg; i++) {
		if (!sim_fiber_done(workers[i].fiber))
			return false;
	}
	return true;
}

static bool opener_done(void *arg)
{
	return sim_fiber_done(opener.fiber);
}

static void start_workers(struct world_client *c, struct history *h, unsigned n, bool lenient)
{
	for (unsigned i = 0; i < HISTORY_USERS; i++)
		dev_handle_init(&users[i], world_client_dev(c));
	for (unsigned i = 0; i < n; i++) {
		workers[i].w = w;
		workers[i].number = i;
		workers[i].user = sim_rand(HISTORY_USERS);
		workers[i].handle = &users[workers[i].user];
		workers[i].h = h;
		workers[i].ops = 5 + sim_rand(40);
		workers[i].pause_us = 5000;
		workers[i].lenient = lenient;
		workers[i].fiber = world_client_fiber(c, random_work, &workers[i]);
	}
}

static void finish(const struct random_faults *f, unsigned n)
{
	const char *why;

	random_heal(f);
	if (!sim_run_until(workers_done, &n, PATIENCE_MS))
		random_work_failed("requests that never end");
	if (!sim_run_until(opener_done, NULL, PATIENCE_MS))
		random_work_failed("opens that never end");
	sim_fiber_free(opener.fiber);
	for (unsigned i = 0; i < n; i++)
		sim_fiber_free(workers[i].fiber);
	world_client_stop(w, f->client);
	world_run_ms(w, 1000);
	why = history_check(f->h, sim_disk_content(world_disk(w)));
	if (why)
		random_work_failed(why);
}

static void run_seed(uint64_t seed)
{
	unsigned nworkers, nfaults;
	struct world_client_conf cconf;
	struct random_faults f;
	struct world_client *c;
	bool lenient;

	w = world_create(seed);
	sim_shuffle(true);
	/* A client with one path to the server is half of the runs. */
	f.npaths = sim_chance(500) ? 1 : 2 + sim_rand(WORLD_PATHS - 1);
	random_server(&f.server, f.npaths);
	random_delays(w, f.npaths);
	lenient = sim_chance(200);
	nworkers = 1 + sim_rand(MAX_WORKERS);
	nfaults = sim_rand(12);
	random_client(&cconf, f.npaths, lenient);
	f.w = w;
	f.h = history_create(SECTORS);
	world_server_start(w, &f.server);
	f.client = c = world_client_start(w, &cconf);
	CHECK(world_wait_open(c, 60000) == 0);
	start_workers(c, f.h, nworkers, lenient);
	opener = (struct opener){ .client = c, .opens = sim_rand(20), .lenient = lenient };
	opener.fiber = world_client_fiber(c, open_and_close, &opener);
	while (nfaults-- && !workers_done(&nworkers)) {
		world_run_ms(w, sim_rand(100));
		random_fault(&f);
	}
	finish(&f, nworkers);
	history_destroy(f.h);
	world_destroy(w);
}

int main(void)
{
	sim_offer_from_env();
	sim_test_seeds("", 300, run_seed);
	return 0;
}
