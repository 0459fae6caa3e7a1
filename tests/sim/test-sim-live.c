/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports and limits come and go while others are used: plans upon a server that runs.  A client
 * has requests in flight on "disk0" all the time, over two paths, and the history (history.h) says
 * whether one of them noticed.
 *
 * The seeds (sim-test.h) are 1,000 random sequences of plans. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev-req.h"
#include "history.h"
#include "world.h"

#define SECTORS (WORLD_DISK_SIZE / RNBD_SECTOR_SIZE)
#define AREA 64u			/* sectors in use, so that requests meet */
#define MAX_SECTORS 16u			/* of one request */
#define REQUESTERS 3
#define HOME "disk0"			/* always exported, by this name */

/* Make @ex the export of @path, without limits and rules. */
static void set_export(struct conf_export *ex, const char *name, const char *path, bool readonly)
{
	memset(ex, 0, sizeof(*ex));
	ex->spec = (struct export_spec){ .name = name, .path = path, .readonly = readonly };
}

static struct world *w;
static struct history *history;
static struct sim_disk *disk1, *disk2;
static struct world_client *home;	/* has "disk0" open */
static char err[EXPORT_LIFE_ERR];

/* ---- requests on "disk0", from begin to end ---- */

static struct requester {
	struct sim_fiber *fiber;
	unsigned ops;
	uint8_t buf[MAX_SECTORS * RNBD_SECTOR_SIZE];
} requesters[REQUESTERS];
static bool enough;
static bool was_cut;			/* the second path */

static void one_write(struct requester *r, unsigned sector, unsigned n)
{
	bool fua = sim_chance(200);
	struct history_op *op;
	int status;

	if (!history_may_write(history, sector, n))
		return;
	op = history_write(history, sector, n, false, r->buf);
	status = dev_call_write(world_client_handle(home), r->buf, n * 512, sector * 512ull, fua);
	history_write_end(op, status, fua);
	CHECK(status == 0);
}

static void one_read(struct requester *r, unsigned sector, unsigned n)
{
	struct history_op *op = history_read(history, sector, n);
	int status = dev_call_read(world_client_handle(home), r->buf, n * 512, sector * 512ull);

	CHECK(status == 0);
	CHECK(history_read_end(op, status, r->buf) == NULL);
}

static void one_flush(void)
{
	struct history_op *op = history_flush(history);
	int status = dev_call_flush(world_client_handle(home));

	CHECK(status == 0);
	CHECK(history_flush_end(op, status) == NULL);
}

static void requester_main(void *arg)
{
	struct requester *r = arg;

	while (!enough) {
		unsigned n = 1 + sim_rand(MAX_SECTORS), sector = sim_rand(AREA - MAX_SECTORS);
		unsigned what = sim_rand(10);

		if (what == 0)
			one_flush();
		else if (what < 5)
			one_read(r, sector, n);
		else
			one_write(r, sector, n);
		r->ops++;
	}
}

static bool requesters_ended(void *arg)
{
	for (unsigned i = 0; i < REQUESTERS; i++) {
		if (!sim_fiber_done(requesters[i].fiber))
			return false;
	}
	return true;
}

/* ---- the world ---- */

static void start(uint64_t seed)
{
	w = world_create(seed);
	disk1 = sim_disk_create("disk1", WORLD_DISK_SIZE);
	disk2 = sim_disk_create("disk2", WORLD_DISK_SIZE);
	sim_disk_delay(world_disk(w), 100, 200);
	world_server_start(w, SERVER(.any_address = true));
	home = world_client_opens(w, CLIENT(.npaths = 2));
	history = history_create(SECTORS);
	enough = was_cut = false;
	for (unsigned i = 0; i < REQUESTERS; i++) {
		requesters[i].ops = 0;
		requesters[i].fiber = world_client_fiber(home, requester_main, &requesters[i]);
	}
}

static void end(void)
{
	enough = true;
	CHECK(sim_run_until(requesters_ended, NULL, 60000));
	for (unsigned i = 0; i < REQUESTERS; i++) {
		CHECK(requesters[i].ops > 0);
		sim_fiber_free(requesters[i].fiber);
	}
	CHECK(was_cut || !world_traced(w, "lost"));
	CHECK(!world_traced(w, "failed"));
	CHECK(history_check(history, sim_disk_content(world_disk(w))) == NULL);
	world_client_stop(w, home);
	world_server_stop(w);
	sim_disk_destroy(disk1);
	sim_disk_destroy(disk2);
	world_destroy(w);
	history_destroy(history);
}

/* Export "disk0", and @path as @name, unless that is NULL. */
static int change_to(const char *name, const char *path)
{
	static struct conf_export exports[2];

	set_export(&exports[0], HOME, "disk0", false);
	set_export(&exports[1], name, path, false);
	return world_server_change(w, exports, path ? 2 : 1, err);
}

/* ---- a second client, which opens what comes and goes ---- */

static struct world_client *visitor_start(const char *device, enum rnbd_access_mode mode)
{
	return world_client_start(w, CLIENT(.host = "clt2", .name = "visitor", .device = device,
					    .mode = mode));
}

static int visitor_opened(struct world_client *v)
{
	CHECK(world_wait_open(v, 20000) <= 0);
	return world_client_opened(v);
}

/* 0: a client that opens @device now gets it. */
static int can_open(const char *device)
{
	struct world_client *v = visitor_start(device, RNBD_ACCESS_RO);
	int rc = visitor_opened(v);

	world_client_stop(w, v);
	return rc;
}

static bool one_store(void *arg)
{
	return world_server_stores(w) == 1;
}

/* ---- tests ---- */

SIM_TEST(comes_and_goes)
{
	struct world_client *v;

	start(1);
	CHECK(can_open("new") == -ENOENT);
	CHECK(change_to("new", "disk1") == 0);
	v = visitor_start("new", RNBD_ACCESS_RW);
	CHECK(visitor_opened(v) == 0);
	CHECK(world_write(v, 0, 4096, 7) == 0 && world_flush(v) == 0);
	world_client_stop(w, v);
	CHECK(sim_disk_content(disk1)[0] == 7);
	CHECK(change_to(NULL, NULL) == 0);
	CHECK(sim_run_until(one_store, NULL, 1000));
	CHECK(can_open("new") == -ENOENT);
	end();
}

/* A client keeps the export that it has open; the export goes with the last request. */
SIM_TEST(goes_while_it_is_used)
{
	struct world_client *v;
	struct world_io *io;

	start(2);
	CHECK(change_to("new", "disk1") == 0);
	v = visitor_start("new", RNBD_ACCESS_RW);
	CHECK(visitor_opened(v) == 0);
	sim_disk_hold(disk1, RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(v, RNBD_OP_WRITE, 4096, 4096, 9, false);
	world_run_ms(w, 10);
	CHECK(change_to(NULL, NULL) == 0);
	world_run_ms(w, 100);
	CHECK(world_write(v, 0, 4096, 7) == 0);
	CHECK(world_server_stores(w) == 2);
	sim_disk_release(disk1);
	CHECK(world_io_end(io, 0, 1000) == 0);
	CHECK(world_read(v, 4096, 4096, 9) == 0);
	world_client_stop(w, v);
	CHECK(sim_run_until(one_store, NULL, 1000));
	CHECK(can_open("new") == -ENOENT);
	end();
}

/* A name that is replaced: new openers get the new storage, the others keep theirs. */
SIM_TEST(is_replaced_while_it_is_used)
{
	struct world_client *v;

	start(3);
	CHECK(change_to("new", "disk1") == 0);
	v = visitor_start("new", RNBD_ACCESS_RW);
	CHECK(visitor_opened(v) == 0);
	CHECK(change_to("new", "disk2") == 0);
	CHECK(world_write(v, 0, 512, 7) == 0);
	CHECK(sim_disk_content(disk1)[0] == 7 && sim_disk_content(disk2)[0] == 0);
	world_client_stop(w, v);
	v = visitor_start("new", RNBD_ACCESS_RW);
	CHECK(visitor_opened(v) == 0);
	CHECK(world_write(v, 0, 512, 8) == 0);
	CHECK(sim_disk_content(disk1)[0] == 7 && sim_disk_content(disk2)[0] == 8);
	world_client_stop(w, v);
	end();
}

/* A size that the storage does not tell holds the export until it does. */
SIM_TEST(goes_while_its_size_is_asked_for)
{
	struct world_client *v;

	start(4);
	CHECK(change_to("new", "disk1") == 0);
	sim_disk_hold_size(disk1);
	v = visitor_start("new", RNBD_ACCESS_RO);
	world_run_ms(w, 100);
	CHECK(change_to(NULL, NULL) == 0);
	world_run_ms(w, 100);
	CHECK(world_server_stores(w) == 2);
	CHECK(visitor_opened(v) == -ENOENT);
	world_client_stop(w, v);
	world_run_ms(w, 5000);
	CHECK(world_server_stores(w) == 2);
	sim_disk_release(disk1);
	CHECK(sim_run_until(one_store, NULL, 1000));
	end();
}

/* A second name of a store that is used comes and goes: its writers are still the only ones. */
SIM_TEST(a_second_name_comes_and_goes)
{
	struct world_client *v;

	start(5);
	CHECK(change_to("twin", "disk0") == 0);
	CHECK(world_server_stores(w) == 1);
	v = visitor_start("twin", RNBD_ACCESS_RW);
	CHECK(visitor_opened(v) == -EPERM);
	world_client_stop(w, v);
	CHECK(can_open("twin") == 0);
	CHECK(change_to(NULL, NULL) == 0);
	world_run_ms(w, 100);
	CHECK(can_open("twin") == -ENOENT);
	CHECK(can_open("disk0") == 0);
	end();
}

/* A step that fails half way is undone: the same export comes at the next try, and nothing of the
 * first is left. */
SIM_TEST(a_step_fails_half_way)
{
	const unsigned rings = world_server_defaults.threads;

	start(6);
	for (unsigned i = 0; i <= rings; i++) {
		sim_disk_fail_step(disk1, i < rings ? SIM_STEP_ATTACH : SIM_STEP_OPEN, i);
		CHECK(change_to("new", "disk1") == -EIO);
		CHECK(sim_run_until(one_store, NULL, 1000));
		CHECK(can_open("new") == -ENOENT);
		CHECK(change_to("new", "disk1") == 0);
		CHECK(can_open("new") == 0);
		CHECK(change_to(NULL, NULL) == 0);
		CHECK(sim_run_until(one_store, NULL, 1000));
	}
	end();
}

/* A server stops while exports are on their way up and down. */
SIM_TEST(a_server_stops_meanwhile)
{
	struct world_client *v;

	for (unsigned i = 0; i < 20; i++) {
		start(100 + i);
		CHECK(change_to("new", "disk1") == 0);
		v = visitor_start("new", RNBD_ACCESS_RW);
		CHECK(visitor_opened(v) == 0);
		CHECK(change_to("more", "disk2") == 0);
		world_client_stop(w, v);
		world_run_ms(w, i);
		end();
	}
}

/* ---- random sequences ---- */

#define NAMES 4u
#define KINDS 5u

static const char *const names[NAMES] = { "a", "b", "c", "d" };
/* What a name may be of, and whether it can be written. */
static const struct { const char *path; bool write; } kinds[KINDS] = {
	{ NULL, false }, { "disk1", true }, { "disk2", true }, { "disk2", false },
	{ "disk0", false },
};

/* Whom "allow" of an export may let in: home comes from 10.0.0.1, the visitor from 10.0.0.3. */
static const struct { const char *allow; bool visitor; } lists[] = {
	{ "all", true }, { "10.0.0.3", true }, { "192.0.2.0/24, 10.0.0.2/31", true },
	{ "10.0.0.1", false }, { "10.0.0.0/31", false }, { "::/0", false },
};

struct model {
	unsigned kind[NAMES];		/* of kinds; 0: the name is not exported */
	unsigned list[NAMES];		/* of lists */
};

/* Few enough that most requests wait, and now and then none. */
static struct limits random_limits(void)
{
	struct limits limits = { .burst_s = 0 };

	for (unsigned i = 0; i < LIMIT_BPS; i++)
		limits.rate[i] = sim_chance(300) ? 20 + sim_rand(400) : 0;
	for (unsigned i = LIMIT_BPS; i < LIMITS; i++)
		limits.rate[i] = sim_chance(300) ? 65536 * (1 + sim_rand(20)) : 0;
	return limits;
}

static void set_list(struct conf_export *ex, const char *text)
{
	ex->allow.n = 0;
	CHECK(conf_allow_list_add(&ex->allow, text, err, sizeof(err)) == 0);
}

static void random_plan(struct model *m)
{
	static struct conf_export exports[WORLD_EXPORTS_MAX];
	unsigned n = 1;

	set_export(&exports[0], HOME, "disk0", false);
	exports[0].limits = random_limits();
	set_list(&exports[0], sim_chance(500) ? "all" : "10.0.0.1");
	for (unsigned i = 0; i < NAMES; i++) {
		if (sim_chance(400))
			m->kind[i] = sim_rand(KINDS);
		if (sim_chance(300))
			m->list[i] = sim_rand(ARRAY_SIZE(lists));
		if (!m->kind[i])
			continue;
		set_export(&exports[n], names[i], kinds[m->kind[i]].path,
			   !kinds[m->kind[i]].write);
		set_list(&exports[n++], lists[m->list[i]].allow);
	}
	CHECK(world_server_change(w, exports, n, err) == 0);
}

/* The visitor's device: NULL, or open as a writer of @fill, or a reader. */
struct visit {
	struct world_client *client;
	bool writes;
	uint8_t fill;
};

static void visit_begin(struct visit *v, const struct model *m)
{
	unsigned i = sim_rand(NAMES);
	bool write = sim_chance(500);
	int rc;

	v->client = visitor_start(names[i], write ? RNBD_ACCESS_RW : RNBD_ACCESS_RO);
	rc = visitor_opened(v->client);
	v->writes = write;
	if (!m->kind[i] || !lists[m->list[i]].visitor)
		CHECK(rc == -ENOENT);
	else if (!write || kinds[m->kind[i]].write)
		CHECK(rc == 0);
	else
		CHECK(rc == -EROFS);
	if (!rc)
		return;
	world_client_stop(w, v->client);
	v->client = NULL;
}

static void visit_io(struct visit *v)
{
	if (!v->client)
		return;
	if (!v->writes) {
		struct world_io *io = world_io_start(v->client, RNBD_OP_FLUSH, 0, 0, 0, false);

		CHECK(world_io_end(io, 0, 10000) == 0);
		return;
	}
	v->fill++;
	CHECK(world_write(v->client, 8192, 4096, v->fill) == 0);
	CHECK(world_read(v->client, 8192, 4096, v->fill) == 0);
}

static void visit_end(struct visit *v)
{
	if (v->client)
		world_client_stop(w, v->client);
	v->client = NULL;
}

static void random_run(uint64_t seed)
{
	struct model m = { 0 };
	struct visit v = { 0 };

	start(seed);
	for (unsigned i = 0; i < 12; i++) {
		random_plan(&m);
		if (!v.client)
			visit_begin(&v, &m);
		visit_io(&v);
		if (sim_chance(400))
			visit_end(&v);
		if (sim_chance(200)) {
			sim_cut("clt", "srv/1");
			was_cut = true;
		}
		world_run_ms(w, sim_rand(20));
	}
	visit_end(&v);
	end();
}

SIM_TEST(random_sequences) { sim_test_seeds("random_sequences, ", 300, random_run); }
