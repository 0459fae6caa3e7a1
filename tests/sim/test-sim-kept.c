/* SPDX-License-Identifier: BSD-3-Clause */
/* A client process that is killed, and the next one, which goes on with what it has kept
 * (doc/decisions.md D27).  What the killed process has sent may lie unread anywhere. */
#include <errno.h>
#include <string.h>

#include "dev-priv.h"
#include "clock.h"
#include "raw-srv.h"
#include "world.h"

#define LEN 4096u
#define SOON_MS 1000			/* below any heartbeat */

static struct world *w;
static struct world_client *c;
static struct client_kept kept;
static enum rnbd_access_mode mode;

/* ---- a client, and the one that takes its place ---- */

/* The first process uses two ways to the server, the next one another two. */
static const struct world_client_conf *client(bool first)
{
	static const char *const paths[2][2] = { { "srv/2", "srv/3" }, { "srv", "srv/1" } };
	static struct world_client_conf conf;

	conf = *CLIENT(.npaths = 2, .paths = paths[first], .kept = &kept, .mode = mode,
		       .name = first ? "first" : "next", .io_timeout_ms = CLOCK_NEVER);
	return &conf;
}

static void begin_as(enum rnbd_access_mode as)
{
	mode = as;
	w = world_serve(SERVER(.any_address = true));
	client_kept_init(&kept, "boot", "disk0");
	c = world_client_opens(w, client(true));
	world_run_ms(w, 100);
}

static void begin(void)
{
	begin_as(RNBD_ACCESS_RW);
}

/* The next process: its device is there at once. */
static void take_over(void)
{
	c = world_client_start(w, client(false));
	CHECK(world_wait_open(c, 0) == 0);
}

static void kill_client(void)
{
	world_client_kill(w, c, SIM_KILL_PROCESS);
}

static void lose_ways(void)
{
	sim_drop("clt", "srv");
	sim_drop("clt", "srv/1");
}

static void find_ways(void)
{
	sim_heal("clt", "srv");
	sim_heal("clt", "srv/1");
}

static void expect_content(uint8_t fill)
{
	const uint8_t *p = sim_disk_content(world_disk(w));

	for (unsigned i = 0; i < LEN; i++)
		CHECK(p[i] == fill);
}

static struct world_io *write_start(uint8_t fill)
{
	return world_io_start(c, RNBD_OP_WRITE, 0, LEN, fill, false);
}

static void write_soon(uint8_t fill)
{
	CHECK(world_io_end(write_start(fill), fill, SOON_MS) == 0);
}

SIM_TEST(goes_on)
{
	begin();
	write_soon(7);
	kill_client();
	take_over();
	CHECK(dev_size(world_client_dev(c)) == WORLD_DISK_SIZE);
	CHECK(world_read(c, 0, LEN, 7) == 0);
	CHECK(world_flush(c) == 0);
}

/* The name that the session of the dead process still has. */
SIM_TEST(same_name)
{
	struct world_client_conf conf;

	begin();
	lose_ways();
	kill_client();
	conf = *client(false);
	conf.name = "first";
	c = world_client_start(w, &conf);
	CHECK(world_wait_open(c, 0) == 0);
	write_soon(1);
}

/* ---- at each step of a request ---- */

/* The process is killed @steps steps behind the begin of a write, told to the server or not; the
 * next one sends the write again, if nobody has seen its end, and writes once more.  What was sent
 * first arrives last.  True if the write had ended. */
static bool killed_at(unsigned steps, bool told)
{
	struct world_io *io;
	uint64_t until;
	bool done;

	begin_as(mode);
	until = sim_steps() + steps;
	io = write_start(1);
	while (sim_steps() < until)
		CHECK(sim_step(sim_now_us() + 1000000));
	if (!told)
		lose_ways();
	done = io->done;
	kill_client();
	take_over();
	if (!done)
		write_soon(1);
	CHECK(world_read(c, 0, LEN, 1) == 0);
	write_soon(2);
	CHECK(world_traced(w, "its client goes on in another process") == !told);
	find_ways();
	world_run_ms(w, 5000);
	expect_content(2);
	CHECK(world_read(c, 0, LEN, 2) == 0);
	world_io_end(io, 1, 60000);
	return done;
}

static void at_each_step(enum rnbd_access_mode as, bool told)
{
	unsigned steps = 0;

	mode = as;
	while (!killed_at(steps, told))
		steps++;
	CHECK(steps > 10);
}

SIM_TEST(at_each_step)
{
	at_each_step(RNBD_ACCESS_RW, true);
}

SIM_TEST(at_each_step_unheard)
{
	at_each_step(RNBD_ACCESS_RW, false);
}

/* Two writers are allowed: nothing but the lineage keeps the first process out. */
SIM_TEST(at_each_step_of_two_writers)
{
	at_each_step(RNBD_ACCESS_MIGRATION, false);
}

/* The next process is killed at each step of its own beginning, and of the write that it sends
 * again. */
static bool killed_twice(unsigned steps)
{
	struct world_io *io, *again;
	uint64_t until;
	bool done;

	begin();
	sim_disk_delay(world_disk(w), 3000, 0);
	io = write_start(1);
	world_run_ms(w, 3);
	lose_ways();
	kill_client();
	take_over();
	until = sim_steps() + steps;
	again = write_start(1);
	while (sim_steps() < until)
		CHECK(sim_step(sim_now_us() + 1000000));
	done = again->done;
	kill_client();
	take_over();
	if (!done)
		write_soon(1);
	CHECK(world_read(c, 0, LEN, 1) == 0);
	write_soon(2);
	find_ways();
	world_run_ms(w, 5000);
	expect_content(2);
	world_io_end(io, 1, 60000);
	world_io_end(again, 1, 60000);
	return done;
}

SIM_TEST(killed_twice)
{
	unsigned steps = 0;

	while (!killed_twice(steps))
		steps++;
	CHECK(steps > 30);
}

/* ---- requests in the storage ---- */

/* The storage holds a write of the first process: nothing of the next one overtakes it, for as long
 * as it takes. */
static void held_by_the_storage(enum rnbd_access_mode as)
{
	struct world_io *io, *again;

	begin_as(as);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = write_start(1);
	world_run_ms(w, 20);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	kill_client();
	take_over();
	again = write_start(2);
	world_run_ms(w, 60000);
	CHECK(!again->done && sim_disk_inflight(world_disk(w)) == 1);
	CHECK(world_traced(w, "requests of a client that had it open are still in the server's"));
	sim_disk_release(world_disk(w));
	CHECK(world_io_end(again, 2, 10000) == 0);
	expect_content(2);
	world_io_end(io, 1, 60000);
}

SIM_TEST(held_by_the_storage)
{
	held_by_the_storage(RNBD_ACCESS_RW);
	held_by_the_storage(RNBD_ACCESS_MIGRATION);
}

/* ---- servers ---- */

/* Server and client are started again at the same time. */
SIM_TEST(both_restart)
{
	struct world_io *io;

	begin();
	io = write_start(1);
	world_run_ms(w, 1);
	kill_client();
	world_server_kill(w, SIM_KILL_PROCESS);
	take_over();
	world_run_ms(w, 2000);
	world_server_start(w, SERVER(.any_address = true));
	CHECK(world_write(c, 0, LEN, 1) == 0);
	CHECK(world_read(c, 0, LEN, 1) == 0);
	CHECK(world_flush(c) == 0);
	world_io_end(io, 1, 60000);
}

/* Without what the first process has kept: mode=rw lets nobody in before its session has ended,
 * here by heartbeats, since the server has not heard of its death. */
SIM_TEST(nothing_kept)
{
	struct world_io *io;

	begin();
	io = write_start(1);
	world_run_ms(w, 1);
	lose_ways();
	kill_client();
	client_kept_init(&kept, "boot", "disk0");
	c = world_client_start(w, client(false));
	CHECK(world_wait_open(c, 10000) == -EPERM);
	while (world_client_opened(c) == -EPERM) {
		world_client_open(c, RNBD_ACCESS_RW);
		world_wait_open(c, 10000);
		world_run_ms(w, 500);
	}
	CHECK(world_client_opened(c) == 0);
	write_soon(2);
	find_ways();
	world_run_ms(w, 5000);
	expect_content(2);
	world_io_end(io, 1, 60000);
}

/* Another machine under the address is refused, as by a session that comes back. */
SIM_TEST(another_machine)
{
	for (unsigned shared = 0; shared < 2; shared++) {
		begin();
		write_soon(1);
		kill_client();
		world_server_stop(w);
		world_server_start(w, SERVER(.any_address = true, .other_host = true,
					     .shared = shared));
		take_over();
		world_run_ms(w, 5000);
		CHECK(world_traced(w, "another machine than the paths led to before"));
		CHECK(!world_traced(w, "export came back"));	/* nothing was opened there */
		CHECK(!clt_sess_is_up(&world_client_clt(c)->sess));
	}
}

/* So is another file under the name. */
SIM_TEST(another_file)
{
	struct sim_disk *other;

	begin();
	kill_client();
	world_server_stop(w);
	other = sim_disk_create("disk1", WORLD_DISK_SIZE);
	world_server_start(w, SERVER(.any_address = true, .disk = "disk1"));
	take_over();
	world_run_ms(w, 5000);
	CHECK(world_traced(w, "export came back as another file, or on another host"));
	world_client_stop(w, c);
	world_server_stop(w);
	sim_disk_destroy(other);
}

/* The first process had the server of one of two machines that share the disk, and that machine has
 * died, too: the next process takes the disk over at the other one, as the first would have. */
SIM_TEST(two_servers)
{
	static const char *const paths[] = { "srv", "srv2" };
	struct world_client_conf conf;
	struct world_io *io;

	mode = RNBD_ACCESS_RW;
	w = world_serve(SERVER(.shared = true));
	world_server_start(w, SERVER(.host = "srv2", .shared = true));
	client_kept_init(&kept, "boot", "disk0");
	conf = *client(true);
	conf.paths = paths;
	c = world_client_opens(w, &conf);
	world_run_ms(w, 100);
	write_soon(1);
	sim_freeze("srv");
	io = write_start(3);
	world_run_ms(w, 10);
	kill_client();
	conf.name = "next";
	c = world_client_start(w, &conf);
	CHECK(world_wait_open(c, 0) == 0);
	CHECK(world_write(c, 0, LEN, 2) == 0);
	sim_thaw("srv");
	world_run_ms(w, 5000);
	CHECK(world_read(c, 0, LEN, 2) == 0);
	expect_content(2);
	world_io_end(io, 3, 60000);
}

/* A server that knows no lineage, as a kernel's or an older one: with mode=migration nothing there
 * keeps two processes apart, so nothing is opened. */
SIM_TEST(without_lineage)
{
	static const struct {
		uint32_t features;
		enum rnbd_access_mode mode;
		int status;
	} cases[] = {
		{ 0, RNBD_ACCESS_RW, 0 },
		{ 0, RNBD_ACCESS_RO, 0 },
		{ 0, RNBD_ACCESS_MIGRATION, -EOPNOTSUPP },
		{ RNBD_EXT_ALL & ~RNBD_EXT_LINEAGE, RNBD_ACCESS_RW, 0 },
		{ RNBD_EXT_ALL & ~RNBD_EXT_LINEAGE, RNBD_ACCESS_MIGRATION, -EOPNOTSUPP },
		{ RNBD_EXT_ALL, RNBD_ACCESS_MIGRATION, 0 },
	};
	static struct raw_srv srv;

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		w = world_create(1);
		raw_srv_start(&srv, false);
		srv.features = cases[i].features;
		client_kept_init(&kept, "boot", "disk0");
		mode = cases[i].mode;
		c = world_client_start(w, client(true));
		CHECK(world_wait_open(c, 1000) == cases[i].status);
		CHECK(srv.nopens == !cases[i].status);
		world_client_stop(w, c);
		world_run_ms(w, 100);
		raw_srv_stop(&srv);
	}
}

/* The size that the first process saw last. */
SIM_TEST(grown)
{
	begin();
	sim_disk_resize(world_disk(w), 2 * WORLD_DISK_SIZE);
	sim_cut("clt", "srv");
	sim_cut("clt", "srv/1");
	world_run_ms(w, 2000);
	CHECK(dev_size(world_client_dev(c)) == 2 * WORLD_DISK_SIZE);
	kill_client();
	world_server_kill(w, SIM_KILL_PROCESS);
	take_over();
	CHECK(dev_size(world_client_dev(c)) == 2 * WORLD_DISK_SIZE);
	world_server_start(w, SERVER(.any_address = true));
	world_run_ms(w, 100);
}

/* ---- lost writes ---- */

static void restart_machine(void)
{
	world_server_kill(w, SIM_KILL_POWER);
	sim_power_on("srv");
	world_server_start(w, SERVER(.any_address = true));
}

/* Acknowledged, not flushed, and gone: the next process reports it, once. */
SIM_TEST(unflushed)
{
	begin();
	write_soon(1);
	kill_client();
	restart_machine();
	take_over();
	CHECK(world_flush(c) == -EIO);
	dev_handle_arrived(world_client_handle(c));
	CHECK(world_flush(c) == 0);
	kill_client();
	take_over();
	CHECK(world_flush(c) == 0);
}

/* Nothing is lost that was flushed. */
SIM_TEST(flushed)
{
	begin();
	write_soon(1);
	CHECK(world_flush(c) == 0);
	kill_client();
	restart_machine();
	take_over();
	CHECK(world_flush(c) == 0);
	CHECK(world_read(c, 0, LEN, 1) == 0);
}

/* The first process has found the loss, and was killed before its user was told, or before the user
 * had the answer. */
SIM_TEST(found_and_not_told)
{
	for (unsigned told = 0; told < 2; told++) {
		begin();
		write_soon(1);
		restart_machine();
		write_soon(2);
		CHECK(world_traced(w, "writes that were not flushed may be lost"));
		if (told)
			CHECK(world_flush(c) == -EIO);
		kill_client();
		take_over();
		CHECK(world_flush(c) == -EIO);
		dev_handle_arrived(world_client_handle(c));
		CHECK(world_flush(c) == 0);
	}
}

/* The user has the answer. */
SIM_TEST(found_and_told)
{
	begin();
	write_soon(1);
	restart_machine();
	CHECK(world_flush(c) == -EIO);
	dev_handle_arrived(world_client_handle(c));
	write_soon(2);
	kill_client();
	take_over();
	CHECK(world_flush(c) == 0);
}

/* A sync fails while nobody is there: the OPEN of the next process ends what the server has latched
 * (D13). */
SIM_TEST(sync_fails_behind_it)
{
	begin();
	write_soon(1);
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c) == -EIO);
	kill_client();
	take_over();
	CHECK(world_flush(c) == -EIO);
	dev_handle_arrived(world_client_handle(c));
	CHECK(world_flush(c) == 0);
}

/* ---- processes that are not dead ---- */

/* The first process was cut off, and goes on when the next one is there: it is refused, by name,
 * and nothing of it reaches the storage. */
SIM_TEST(comes_back)
{
	struct world_client_conf conf;
	struct world_client *first;
	struct world_io *io;

	begin();
	first = c;
	conf = *client(true);
	conf.host = "clt2";
	lose_ways();
	io = write_start(1);
	world_run_ms(w, 10);
	memcpy(&kept, world_client_clt(first)->kept, sizeof(kept));
	c = world_client_start(w, &conf);
	CHECK(world_wait_open(c, 0) == 0);
	write_soon(2);
	find_ways();
	world_run_ms(w, 20000);
	CHECK(!io->done && !clt_sess_is_up(&world_client_clt(first)->sess));
	CHECK(world_traced(w, "connection refused: a later process of this client has the session "
			   "first"));
	CHECK(world_traced(w, "a later process has taken over from this one"));
	expect_content(2);
	write_soon(3);
	client_lose_patience(world_client_clt(first));
	CHECK(world_io_end(io, 1, 20000) == -EIO);
	expect_content(3);
}
