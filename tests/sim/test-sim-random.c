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

#include "dev-call.h"
#include "dev-extents.h"
#include "random-faults.h"

#define SECTORS (WORLD_DISK_SIZE / RNBD_SECTOR_SIZE)
#define AREA 256u			/* sectors in use, so that operations meet */
#define MAX_SECTORS 96u			/* of one operation */
#define MAX_WORKERS 8
#define PATIENCE_MS 300000		/* after the last fault */

struct requester {
	struct history *h;
	unsigned user;			/* whose handle it uses */
	struct sim_fiber *fiber;
	unsigned ops;			/* still to do */
	bool lenient;			/* requests may fail: the session's patience is short */
	uint8_t buf[MAX_SECTORS * RNBD_SECTOR_SIZE];
};

static struct requester workers[MAX_WORKERS];
static struct dev_handle users[HISTORY_USERS];	/* connections of NBD clients */
static struct world *w;

static _Noreturn void fail(const char *what)
{
	sim_test_failed("history", 0, what);
}

/* ---- workload ---- */

/* Requests are for the eye only, when a seed is replayed.  @status 1: it begins. */
static void tell(const struct requester *wk, const char *what, unsigned sector, unsigned n,
		 bool fua, int status)
{
	if (getenv("SIM_TRACE"))
		world_note(w, "worker %d: %s %u+%u%s: %s", (int)(wk - workers), what, sector, n,
			   fua ? " fua" : "",
			   status == 1 ? "begins" : status ? strerror(-status) : "ok");
}

static void check_status(const struct requester *wk, int status)
{
	if (status && !(wk->lenient && status == -EIO)) {
		world_note(w, "status %d", status);
		fail("a request failed for no reason");
	}
}

static void do_write(struct requester *wk, struct dev_handle *handle, unsigned sector, unsigned n)
{
	bool fua = sim_chance(150), zero = sim_chance(100), discard = zero && sim_chance(500);
	struct history_op *op;
	bool tells;
	int status;

	if (!history_may_write(wk->h, sector, n))
		return;
	op = history_write(wk->h, sector, n, zero, wk->buf);
	history_by(op, wk->user);
	if (discard && fua)
		history_will_flush(op);
	tell(wk, zero ? "zero" : "write", sector, n, fua, 1);
	if (discard)
		status = dev_call_discard(handle, n * 512, sector * 512ull, fua);
	else if (zero)
		status = dev_call_zero(handle, n * 512, sector * 512ull, sim_chance(500), fua);
	else
		status = dev_call_write(handle, wk->buf, n * 512, sector * 512ull, fua);
	tell(wk, zero ? "zero" : "write", sector, n, fua, status);
	/* FUA of a discard is a FLUSH behind it, which leaves it to the next one to tell. */
	tells = status == -EIO && fua && (discard ? history_may_tell(op) : history_tells(op));
	if (zero && fua)
		history_maybe_flushed(wk->h);
	if (discard)
		history_discard_end(op, status);
	else
		history_write_end(op, status, fua);
	if (!tells)
		check_status(wk, status);
}

static void do_read(struct requester *wk, struct dev_handle *handle, unsigned sector, unsigned n)
{
	struct history_op *op = history_read(wk->h, sector, n);
	int status = dev_call_read(handle, wk->buf, n * 512, sector * 512ull);
	const char *why = history_read_end(op, status, wk->buf);

	tell(wk, "read", sector, n, false, status);
	if (why)
		fail(why);
	check_status(wk, status);
}

struct holes {
	uint64_t off;
	bool sector[MAX_SECTORS];	/* from off on */
};

static int take_extent(void *arg, uint64_t off, const struct rnbd_extent *e)
{
	struct holes *holes = arg;

	CHECK(off >= holes->off && off + e->len <= holes->off + sizeof(holes->sector) * 512);
	for (uint64_t at = off; e->what && at < off + e->len; at += 512)
		holes->sector[(at - holes->off) / 512] = true;
	return 0;
}

/* Nothing that is there is called a hole. */
static void do_extents(struct requester *wk, struct dev_handle *handle, unsigned sector, unsigned n)
{
	struct history_op *op = history_read(wk->h, sector, n);
	struct holes holes = { .off = sector * 512ull };
	int status = dev_extents(handle->dev, n * 512, holes.off, sim_chance(100), take_extent,
				 &holes);
	const char *why = history_extents_end(op, status, holes.sector);

	tell(wk, "extents", sector, n, false, status);
	if (why)
		fail(why);
	check_status(wk, status);
}

static void do_flush(struct requester *wk, struct dev_handle *handle)
{
	struct history_op *op = history_flush(wk->h);
	const char *why;
	int status;

	history_by(op, wk->user);
	tell(wk, "flush", 0, 0, false, 1);
	status = dev_call_flush(handle);
	tell(wk, "flush", 0, 0, false, status);
	if (wk->lenient && status) {
		history_flush_failed(op);
		return;
	}
	why = history_flush_end(op, status);
	if (why)
		fail(why);
}

static bool pause_over(void *arg)
{
	return sim_now_us() >= *(uint64_t *)arg;
}

static void work(void *arg)
{
	struct requester *wk = arg;
	struct dev_handle *handle = &users[wk->user];

	while (wk->ops--) {
		unsigned n = 1 + sim_rand(sim_chance(200) ? MAX_SECTORS : 8);
		unsigned sector = sim_rand(AREA - n);
		unsigned what = sim_rand(100);
		uint64_t until_us = sim_now_us() + sim_rand(5000);

		if (what < 50)
			do_write(wk, handle, sector, n);
		else if (what < 80)
			do_read(wk, handle, sector, n);
		else if (what < 90)
			do_extents(wk, handle, sector, n);
		else
			do_flush(wk, handle);
		if (sim_chance(300))
			sim_fiber_wait(pause_over, &until_us);
	}
}

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
		uint64_t until_us = sim_now_us() + sim_rand(100000);
		int status = dev_open(clt, "nothing", RNBD_ACCESS_RO, &dev);

		if (status != -ENOENT && !may_end_so(o, status))
			fail("an export that is not there");
		status = dev_open(clt, "disk0", RNBD_ACCESS_RW, &dev);
		if (status)
			fail("a device that is open cannot be shared");
		dev_close(dev);
		sim_fiber_wait(pause_over, &until_us);
	}
}

/* ---- one run ---- */

static bool client_open(void *arg)
{
	return world_client_opened(arg) <= 0;
}

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
		workers[i].user = sim_rand(HISTORY_USERS);
		workers[i].h = h;
		workers[i].ops = 5 + sim_rand(40);
		workers[i].lenient = lenient;
		workers[i].fiber = world_client_fiber(c, work, &workers[i]);
	}
}

static void finish(const struct random_faults *f, unsigned n)
{
	const char *why;

	random_heal(f);
	if (!sim_run_until(workers_done, &n, PATIENCE_MS))
		fail("requests that never end");
	if (!sim_run_until(opener_done, NULL, PATIENCE_MS))
		fail("opens that never end");
	sim_fiber_free(opener.fiber);
	for (unsigned i = 0; i < n; i++)
		sim_fiber_free(workers[i].fiber);
	world_client_stop(w, f->client);
	world_run_ms(w, 1000);
	why = history_check(f->h, sim_disk_content(world_disk(w)));
	if (why)
		fail(why);
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
	CHECK(sim_run_until(client_open, c, 60000) && world_client_opened(c) == 0);
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
