/* SPDX-License-Identifier: BSD-3-Clause */
/* Two servers have one disk (store-lead.h), and the lock between them is told of late: see
 * sim-share.h.  A seed makes servers, clients, a load and faults.  The history (history.h) says
 * whether what was read, and what is on the disk in the end, was legal.  No request fails: a server
 * that lost the lock answers none.
 *
 * SIM_SEEDS=N runs N seeds (2,000), from SIM_SEED on (1).  A run that fails says how to replay
 * it. */
#include <limits.h>
#include <string.h>

#include "clock.h"
#include "clt-sess.h"
#include "random-work.h"
#include "share-faults.h"
#include "srv-rnbd-state.h"
#include "store-lead.h"

#define MAX_WORKERS 4
/* How long requests may take after the last fault: of one client, which may have to connect to both
 * servers; and of two, whose servers may have to wait before they break the lock. */
#define ONE_CLIENT_MS 60000u
#define TWO_CLIENTS_MS 900000u

/* A client and its load. */
struct party {
	struct world_client *client;
	struct dev_handle users[HISTORY_USERS];
	struct random_worker workers[MAX_WORKERS];
	unsigned nworkers;
};

static struct party parties[2];
static unsigned nparties;
static struct share_faults f;

/* ---- the parties ---- */

static void party_start(const char *host, const char *const *paths, unsigned npaths,
			enum rnbd_access_mode mode)
{
	struct party *p = &parties[nparties++];
	struct world_client_conf conf = world_client_defaults;

	conf.host = conf.name = host;
	conf.paths = paths;
	conf.npaths = npaths;
	conf.mode = mode;
	conf.connections = 1 + sim_rand(3);
	conf.io_timeout_ms = CLOCK_NEVER;
	conf.policy = (enum clt_policy)sim_rand(CLT_NPOLICIES);
	conf.hb_interval_ms = 200 + sim_rand(1500);
	conf.hb_misses = 1 + sim_rand(3);
	p->client = world_client_start(f.w, &conf);
	CHECK(world_wait_open(p->client, 60000) <= 0);
	CHECK(world_client_opened(p->client) == 0);
}

/* Work until party_work_ends(). */
static void party_work(struct party *p)
{
	unsigned pause_us = 20000u << sim_rand(7);

	for (unsigned i = 0; i < HISTORY_USERS; i++)
		dev_handle_init(&p->users[i], world_client_dev(p->client));
	p->nworkers = 1 + sim_rand(MAX_WORKERS);
	for (unsigned i = 0; i < p->nworkers; i++) {
		struct random_worker *wk = &p->workers[i];

		*wk = (struct random_worker){ .w = f.w, .h = f.h, .ops = UINT_MAX,
					      .pause_us = pause_us,
					      .number = (unsigned)(p - parties) * 100 + i,
					      .user = sim_rand(HISTORY_USERS) };
		wk->handle = &p->users[wk->user];
		wk->fiber = world_client_fiber(p->client, random_work, wk);
	}
}

static void party_work_ends(struct party *p)
{
	for (unsigned i = 0; i < p->nworkers; i++)
		p->workers[i].ops = sim_rand(5);
}

static bool party_done(void *arg)
{
	const struct party *p = arg;

	for (unsigned i = 0; i < p->nworkers; i++) {
		if (!sim_fiber_done(p->workers[i].fiber))
			return false;
	}
	return true;
}

/* Both parties have the disk until one is done: then that one leaves. */
static bool one_done(void *arg)
{
	for (unsigned i = 0; i < nparties; i++) {
		if (parties[i].client && party_done(&parties[i]))
			return true;
	}
	return false;
}

static void party_end(struct party *p)
{
	for (unsigned i = 0; i < p->nworkers; i++)
		sim_fiber_free(p->workers[i].fiber);
	world_client_stop(f.w, p->client);
	p->client = NULL;
}

/* Fail the test if a server has written to @d from byte @at on. */
static void check_unwritten(const struct sim_disk *d, uint64_t at)
{
	static const uint8_t zeroes[RNBD_SECTOR_SIZE];

	for (; at < WORLD_DISK_SIZE; at += sizeof(zeroes)) {
		if (memcmp(sim_disk_content(d) + at, zeroes, sizeof(zeroes)))
			random_work_failed("a write that nobody asked for");
	}
}

/* ---- what holds in all runs ---- */

void __real_dev_handshake_start(struct clt_sess *sess);
void __wrap_dev_handshake_start(struct clt_sess *sess);

/* An epoch begins, perhaps on the other server: no request may be under way to this one. */
void __wrap_dev_handshake_start(struct clt_sess *sess)
{
	for (unsigned i = 0; sess->stage == CLT_OPENING_BEGINS && i < sess->io.natts; i++) {
		const struct clt_attempt *att = sess->io.atts[i];

		for (unsigned cid = 1; att != &sess->opening->att && cid < att->ncons; cid++)
			CHECK(!atomic_load(&att->cons[cid].inflight));
	}
	__real_dev_handshake_start(sess);
}

/* The answer that ends with @io finds no way to the client. */
static void refused(const struct export_io *io)
{
	const struct srv_rnbd_req *req = container_of(io, const struct srv_rnbd_req, io);

	if (!srv_con_dead(req->base.con))
		random_work_failed("a server without the lock answers");
}

/* ---- the frame of a run ---- */

static void run_begin(uint64_t seed)
{
	f = (struct share_faults){ .w = world_create(seed) };
	sim_shuffle(true);
	nparties = 0;
	memset(parties, 0, sizeof(parties));
	f.h = history_create(RANDOM_AREA);
	share_random(&f);
	sim_disk_watch_refused(world_disk(f.w), refused);
}

static void run_end(void)
{
	const char *why;

	share_heal(&f);
	for (unsigned i = 0; i < nparties; i++)
		party_work_ends(&parties[i]);
	for (unsigned i = 0; i < nparties; i++) {
		if (!sim_run_until(one_done, NULL, nparties > 1 ? TWO_CLIENTS_MS : ONE_CLIENT_MS))
			random_work_failed("requests that never end");
		for (unsigned k = 0; k < nparties; k++) {
			if (parties[k].client && party_done(&parties[k]))
				party_end(&parties[k]);
		}
		if (!parties[0].client && !parties[1].client)
			break;
	}
	world_run_ms(f.w, 1000);
	why = history_check(f.h, sim_disk_content(world_disk(f.w)));
	if (why)
		random_work_failed(why);
	check_unwritten(world_disk(f.w), RANDOM_AREA * RNBD_SECTOR_SIZE);
	history_destroy(f.h);
	world_destroy(f.w);
}

static void run_faults(unsigned n)
{
	while (n--) {
		world_run_ms(f.w, sim_rand(200));
		share_fault(&f);
	}
}

/* ---- one client, with paths to both servers ---- */

static void one_client(uint64_t seed)
{
	static const char *const paths[] = { "srv", "srv2", "srv2/1", "srv/1" };

	run_begin(seed);
	share_start(&f, "srv");
	share_start(&f, "srv2");
	party_start("clt", paths, 2 + sim_rand(3), RNBD_ACCESS_RW);
	party_work(&parties[0]);
	run_faults(1 + sim_rand(8));
	run_end();
}

/* ---- two clients, each of which reaches one server for some time ---- */

/* Breaks that store-lead.h allows both servers within @ms: the first, those without a wait, and one
 * for each wait. */
static unsigned breaks_allowed(uint64_t ms)
{
	return 2 * (1 + STORE_LEAD_BREAKS + (unsigned)(ms / STORE_LEAD_BREAK_MS) + 1);
}

/* Begin a run of two clients that work, and reach both servers. */
static struct sim_share *two_begin(uint64_t seed)
{
	static const char *const paths[] = { "srv", "srv2" };

	run_begin(seed);
	share_start(&f, "srv");
	party_start("clt", paths, 2, RNBD_ACCESS_RW);
	party_start("clt2", paths, 2, RNBD_ACCESS_MIGRATION);
	share_start(&f, "srv2");
	party_work(&parties[0]);
	party_work(&parties[1]);
	return sim_disk_share(world_disk(f.w));
}

static void split(void)
{
	sim_drop("clt", "srv2");
	sim_drop("clt2", "srv");
}

static void two_clients(uint64_t seed)
{
	struct sim_share *share = two_begin(seed);
	uint64_t begin_ms;

	world_run_ms(f.w, sim_rand(2000));
	begin_ms = clock_now_ms();
	split();
	if (sim_chance(500))
		run_faults(1 + sim_rand(3));
	else
		world_run_ms(f.w, sim_chance(150) ? sim_rand(90000) : sim_rand(20000));
	if (!f.restarts && sim_share_breaks(share) > breaks_allowed(clock_now_ms() - begin_ms))
		random_work_failed("the lock goes back and forth");
	run_end();
}

/* ---- a server that has another disk under the name of the first ---- */

static void other_disk(uint64_t seed)
{
	static const char *const paths[] = { "srv", "srv2" };
	struct sim_disk *other = sim_disk_create("disk1", WORLD_DISK_SIZE);

	run_begin(seed);
	share_start(&f, "srv");
	party_start("clt", paths, 2, RNBD_ACCESS_RW);
	f.server[1].disk = "disk1";
	share_start(&f, "srv2");
	party_work(&parties[0]);
	run_faults(1 + sim_rand(5));
	run_end();
	check_unwritten(other, 0);
	sim_disk_destroy(other);
}

/* ---- the same, while the lock is told of late ---- */

/* A server breaks the lock, and the fenced one opens the disk anew and is faster to take it.  That
 * does not repeat at will either. */
SIM_TEST(faster_than_the_breaker)
{
	const unsigned long_ms = 90000;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sim_share *share = two_begin(seed);

		sim_share_be_late(share, 3000);
		split();
		world_run_ms(f.w, long_ms);
		CHECK(sim_share_breaks(share) <= breaks_allowed(long_ms));
		run_end();
	}
}

static void run_seed(uint64_t seed)
{
	if (seed % 20 == 7)
		other_disk(seed);
	else if (seed % 5 == 2)
		two_clients(seed);
	else
		one_client(seed);
}

/* The random runs. */
SIM_TEST(random) { sim_test_seeds("random ", 500, run_seed); }

/* ---- by hand ---- */

static struct world *w;

static struct world_client *client(const char *host, enum rnbd_access_mode mode)
{
	static const char *const paths[] = { "srv", "srv2" };
	struct world_client_conf conf = world_client_defaults;

	conf.host = conf.name = host;
	conf.paths = paths;
	conf.npaths = 2;
	conf.mode = mode;
	conf.hb_interval_ms = 500;
	conf.hb_misses = 2;
	return world_client_start(w, &conf);
}

static void server_with_depth(const char *host, uint32_t queue_depth)
{
	world_server_start(w, SERVER(.host = host, .queue_depth = queue_depth, .shared = true));
}

static void server(const char *host)
{
	server_with_depth(host, world_server_defaults.queue_depth);
}

/* The owner is frozen with a write in its memory: the other server takes over, and the owner's
 * write never lands. */
SIM_TEST(frozen_owner)
{
	struct world_client *c;
	struct world_io *io;

	w = world_create(1);
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	server("srv2");
	world_run_ms(w, 6000);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x11, false);
	world_run_ms(w, 50);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	sim_freeze("srv");
	CHECK(world_io_end(io, 0x11, 10000) == 0);
	CHECK(world_traced(w, "srv2 disk0: this server writes the store now"));
	CHECK(sim_share_breaks(sim_disk_share(world_disk(w))) == 1);
	CHECK(world_write(c, 0, 4096, 0x22) == 0);
	sim_disk_release(world_disk(w));
	sim_thaw("srv");
	world_run_ms(w, 5000);
	CHECK(world_traced(w, "srv disk0: another server has taken the store over: clients have"));
	CHECK(world_read(c, 0, 4096, 0x22) == 0);
	CHECK(sim_disk_content(world_disk(w))[0] == 0x22);
}

/* The cluster has fenced a server that nobody used: the server opens the disk anew for the client
 * that comes, which does not hear of that. */
SIM_TEST(idle_server_is_fenced)
{
	struct world_client *c;

	w = world_create(1);
	server("srv");
	sim_share_fence(sim_disk_share(world_disk(w)), "srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 5000) == 0);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
}

/* The lock cannot be had because the storage is away: the client waits for it, as for a server that
 * is away. */
SIM_TEST(storage_away)
{
	struct world_client *c;

	w = world_create(1);
	server("srv");
	sim_share_refuse(sim_disk_share(world_disk(w)), -ENODEV);
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 5000) > 0);
	sim_share_refuse(sim_disk_share(world_disk(w)), 0);
	CHECK(world_wait_open(c, 20000) == 0);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
}

/* The last writer has gone: the other server gets the lock, which nobody asks it to break. */
SIM_TEST(given_back)
{
	struct world_client *c;

	w = world_create(1);
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	world_client_stop(w, c);
	sim_drop("clt2", "srv");
	server("srv2");
	c = client("clt2", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	CHECK(sim_share_breaks(sim_disk_share(world_disk(w))) == 0);
	sim_heal("clt2", "srv");
}

/* The other server comes while the path to the first one is lost, with a write under way there. */
static void lose_path_at_step(unsigned steps)
{
	unsigned messages;
	struct world_client *c;
	struct world_io *io;

	w = world_create(steps);
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x11, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	messages = sim_messages("clt", "srv2");
	server("srv2");
	while (sim_messages("clt", "srv2") == messages)
		CHECK(sim_step(sim_now_us() + 10000000));
	for (unsigned i = 0; i < steps; i++)
		sim_step(sim_now_us() + 1000);
	sim_cut("clt", "srv");
	sim_drop("clt", "srv");
	CHECK(world_io_end(io, 0x11, 10000) == 0);
	CHECK(world_traced(w, "srv2 disk0: this server writes the store now"));
	sim_disk_release(world_disk(w));
	sim_heal("clt", "srv");
	world_run_ms(w, 3000);
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
}

SIM_TEST(path_lost_while_the_other_comes)
{
	for (unsigned steps = 0; steps < 80; steps++)
		lose_path_at_step(steps);
}

/* The other server has a shorter queue, and comes while more requests are under way than fit
 * there: its path stands by at once, and the session keeps the queue that it has. */
SIM_TEST(shorter_queue)
{
	struct world_client *c;
	struct world_io *ios[8];
	const struct clt_io *io;

	w = world_create(1);
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	io = &world_client_clt(c)->sess.io;
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(ios));
	world_ios_start(c, RNBD_OP_WRITE, ios, ARRAY_SIZE(ios), 0x11);
	world_run_ms(w, 10);
	server_with_depth("srv2", 4);
	world_run_ms(w, 6000);
	CHECK(world_traced(w, "clt path srv2: connected: stands by"));
	CHECK(atomic_load(&io->slots.limit) == 16);
	sim_disk_release(world_disk(w));
	CHECK(world_ios_end(ios, ARRAY_SIZE(ios), 0, 0x11, 1000));
	world_server_kill(w, SIM_KILL_PROCESS);
	CHECK(world_write(c, 0, 4096, 0x22) == 0);
	CHECK(atomic_load(&io->slots.limit) == 4);
}

static bool is_traced(void *text)
{
	return world_traced(w, text);
}

/* A server loses its power while its path opens the devices, and the path to the other server
 * waits for that: heartbeats notice. */
SIM_TEST(server_dies_as_it_takes_over)
{
	struct world_client *c;
	struct world_io *io;

	w = world_create(1);
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	world_server_kill(w, SIM_KILL_PROCESS);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x11, false);
	server("srv2");
	CHECK(sim_run_until(is_traced,
			    (void *)(uintptr_t)"clt path srv2: path: INFO_RSP: info -> opening",
			    6000));
	server("srv");
	world_run_ms(w, STORE_LEAD_PATIENCE_MS / 2);
	CHECK(!world_traced(w, "srv2 disk0: this server writes the store now"));
	world_server_kill_on(w, "srv2", SIM_KILL_POWER);
	CHECK(world_io_end(io, 0x11, 5000) == 0);
	sim_power_on("srv2");
}

/* No client asks a server for the lock of one that never comes back: the administrator does. */
SIM_TEST(broken_by_hand)
{
	char text[WORLD_BREAK_TEXT];
	struct world_client *c;
	struct sim_share *share;

	w = world_create(1);
	share = sim_disk_share(world_disk(w));
	server("srv");
	CHECK(world_server_break(w, "srv", false, text) == 0);
	CHECK(!strcmp(text, "disk0: clients of this server may write now\n"));
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	CHECK(world_server_break(w, "srv", true, text) == -EALREADY);
	CHECK(!strcmp(text, "export 'disk0': this server has the lock"));
	world_client_kill(w, c, SIM_KILL_POWER);
	sim_freeze("srv");
	server("srv2");
	/* The owner may live. */
	CHECK(world_server_break(w, "srv2", false, text) == -EBUSY);
	CHECK(strstr(text, "has its lock; --force takes its lock, and fences it"));
	CHECK(sim_share_breaks(share) == 0);
	CHECK(world_server_break(w, "srv2", true, text) == 0);
	CHECK(sim_share_breaks(share) == 1);
	CHECK(world_traced(w, "srv2 disk0: rtrsctl export break, by force, has taken the lock"));
	/* Nobody writes here: the lock is free for any server. */
	world_run_ms(w, 100);
	CHECK(world_traced(w, "srv2 disk0: no client writes the store"));
	sim_thaw("srv");
	/* There the dead client still counts as a writer. */
	sim_drop("clt2", "srv");
	c = client("clt2", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	CHECK(world_write(c, 0, 4096, 0x22) == 0);
	sim_heal("clt2", "srv");
}

static bool is_optimized(void *text)
{
	(void)text;
	return world_traced(w, "srv2 disk0: rtrsctl export break, by force, has taken the lock");
}

/* An administrator need not wait for a server that lost the lock many times, and not for a client
 * that asks politely again and again.  The server opens the disk anew first if it was fenced. */
SIM_TEST(broken_soon)
{
	char text[WORLD_BREAK_TEXT];
	struct world_client *c, *c2;
	uint64_t since_ms;

	w = world_create(1);
	sim_share_let_break(sim_disk_share(world_disk(w)));
	server("srv2");
	for (unsigned i = 0; i < 2 * STORE_LEAD_BREAKS; i++) {
		sim_share_fence(sim_disk_share(world_disk(w)), "srv2");
		CHECK(world_server_break(w, "srv2", false, text) == 0);
		world_run_ms(w, 100);
	}
	sim_drop("clt", "srv2");
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 10000) == 0);
	sim_drop("clt2", "srv");
	c2 = client("clt2", RNBD_ACCESS_MIGRATION);
	world_run_ms(w, 500);
	CHECK(world_client_opened(c2) == 1);
	since_ms = clock_now_ms();
	CHECK(world_server_break(w, "srv2", true, text) == 0);
	CHECK(clock_now_ms() - since_ms < STORE_LEAD_BREAK_MS);
	CHECK(is_optimized(NULL));
	CHECK(world_wait_open(c2, 60000) <= 0);
	sim_heal("clt", "srv2");
	sim_heal("clt2", "srv");
}

/* A client that opens a read-only name for writing is refused, and no lock is asked for: the owner
 * on the other server keeps its lock. */
SIM_TEST(read_only_name)
{
	static const struct conf_export exports[2] = {
		{ .spec = { .name = "disk0", .path = "disk0", .shared = true } },
		{ .spec = { .name = "ro", .path = "disk0", .shared = true, .readonly = true } },
	};
	struct world_client_conf conf = world_client_defaults;
	static const char *const paths[] = { "srv2" };
	char err[EXPORT_LIFE_ERR];
	struct world_client *c;

	w = world_create(1);
	server("srv");
	CHECK(world_wait_open(client("clt", RNBD_ACCESS_RW), 1000) == 0);
	server("srv2");
	CHECK(world_server_change_on(w, "srv2", exports, ARRAY_SIZE(exports), err) == 0);
	conf.host = conf.name = "clt2";
	conf.device = "ro";
	conf.paths = paths;
	conf.npaths = 1;
	c = world_client_start(w, &conf);
	CHECK(world_wait_open(c, 1000) == -EROFS);
	CHECK(!world_traced(w, "srv2 disk0: lead: wanted"));
}

/* A reload gives the disk another name, which comes before the former one goes: clients write under
 * the new one. */
SIM_TEST(renamed)
{
	static const struct conf_export disk0 = {
		.spec = { .name = "disk0", .path = "disk0", .shared = true },
	};
	char err[EXPORT_LIFE_ERR];
	struct world_client *c;

	w = world_create(1);
	world_server_start(w, SERVER(.host = "srv", .export_name = "before", .shared = true));
	CHECK(world_server_change_on(w, "srv", &disk0, 1, err) == 0);
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
}

/* One of two servers of a disk was started without shared=yes: the client says that, and not that
 * an address is wrong. */
SIM_TEST(one_alone_shares)
{
	for (unsigned sharer = 0; sharer < 2; sharer++) {
		w = world_create(1);
		world_server_start(w, SERVER(.host = "srv", .shared = !sharer));
		CHECK(world_wait_open(client("clt", RNBD_ACCESS_RW), 1000) == 0);
		world_server_start(w, SERVER(.host = "srv2", .shared = sharer));
		world_run_ms(w, 6000);
		CHECK(world_traced(w, "one of the two servers alone has shared=yes"));
		CHECK(!world_traced(w, "one of these addresses is wrong"));
		world_destroy(w);
	}
}

/* The server that takes over has another disk under the name: the client does not take it, and the
 * reason is no copy, which an administrator would accept. */
SIM_TEST(another_disk_takes_over)
{
	struct sim_disk *disk1;
	struct world_client *c;

	w = world_create(1);
	disk1 = sim_disk_create("disk1", WORLD_DISK_SIZE);
	server("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	world_server_start(w, SERVER(.host = "srv2", .disk = "disk1", .shared = true));
	world_run_ms(w, 3000);
	world_server_kill_on(w, "srv", SIM_KILL_PROCESS);
	world_run_ms(w, 6000);
	CHECK(world_traced(w, "do both servers that share it have the same disk or image"));
	CHECK(world_traced(w, "another disk or image under the name of a shared one"));
	CHECK(!world_traced(w, "rtrsctl server accept"));
	server("srv");
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	world_destroy(w);
	sim_disk_destroy(disk1);
}

/* A server with "disk1", too, which is shared as "disk0" is. */
static void server_of_two(const char *host)
{
	static const struct conf_export exports[2] = {
		{ .spec = { .name = "disk0", .path = "disk0", .shared = true } },
		{ .spec = { .name = "disk1", .path = "disk1", .shared = true } },
	};
	static char err[EXPORT_LIFE_ERR];

	server(host);
	CHECK(world_server_change_on(w, host, exports, ARRAY_SIZE(exports), err) == 0);
}

static void second_opened(struct dev_open_req *req)
{
	req->name = NULL;
}

static bool second_is_open(void *arg)
{
	return !((struct dev_open_req *)arg)->name;
}

static uint64_t traced_at_ms(const char *text)
{
	CHECK(sim_run_until(is_traced, (void *)(uintptr_t)text, 10000));
	return clock_now_ms();
}

/* All exports of a client are lost with the same paths, so the owner has its time for all of them
 * together. */
SIM_TEST(two_exports_at_once)
{
	struct dev_open_req second = { .name = "disk1", .mode = RNBD_ACCESS_RW,
				       .done = second_opened };
	uint64_t frozen_ms, taken_ms;
	struct sim_disk *disk1;
	struct world_client *c;

	w = world_create(1);
	disk1 = sim_disk_create("disk1", WORLD_DISK_SIZE);
	server_of_two("srv");
	c = client("clt", RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	dev_open_start(world_client_clt(c), &second);
	CHECK(sim_run_until(second_is_open, &second, 1000) && !second.status);
	server_of_two("srv2");
	world_run_ms(w, 6000);
	sim_freeze("srv");
	frozen_ms = clock_now_ms();
	taken_ms = traced_at_ms("srv2 disk0: this server writes the store now");
	CHECK(taken_ms - frozen_ms >= STORE_LEAD_PATIENCE_MS);
	CHECK(traced_at_ms("srv2 disk1: this server writes the store now") <
	      taken_ms + STORE_LEAD_PATIENCE_MS / 2);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	sim_thaw("srv");
	world_run_ms(w, 20000);
	dev_close(second.dev);
	world_destroy(w);
	sim_disk_destroy(disk1);
}
