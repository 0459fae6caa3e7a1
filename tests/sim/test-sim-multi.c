/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with several paths: who begins and who joins, what happens to requests when one is
 * lost, and that an older copy of a request never does what its successor has undone. */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "clt-change.h"
#include "clt-sess.h"
#include "raw-clt.h"
#include "world.h"

/* detection: (HB_MISSES + 1) intervals without an answer, begun at a tick */
#define HB_MS 500u
#define HB_MISSES 2u
#define DETECT_MS ((HB_MISSES + 2) * HB_MS)

static struct world *w;
static struct world_client *c;
static const char *const wires[WORLD_PATHS] = { "srv", "srv/1", "srv/2", "srv/3" };

static struct clt_path *path(unsigned i)
{
	return world_client_clt(c)->sess.paths[i];
}

static bool all_up(void *arg)
{
	struct clt_sess *sess = &world_client_clt(c)->sess;

	for (unsigned i = 0; i < atomic_load(&sess->io.natts); i++) {
		if (!clt_attempt_is_up(sess->io.atts[i]))
			return false;
	}
	return true;
}

static struct world_server_conf server_conf(void)
{
	struct world_server_conf conf = world_server_defaults;

	conf.any_address = true;
	return conf;
}

static void server_start(void)
{
	struct world_server_conf conf = server_conf();

	world_server_start(w, &conf);
}

static void begin(unsigned npaths, enum clt_policy policy)
{
	w = world_create(1);
	server_start();
	c = world_client_start(w, CLIENT(.npaths = npaths, .policy = policy,
					 .hb_interval_ms = HB_MS, .hb_misses = HB_MISSES));
	CHECK(world_wait_open(c, 2000) == 0);
	CHECK(sim_run_until(all_up, NULL, 2000));
	world_run_ms(w, 20);
	world_forget(w);
}

/* ---- who begins and who joins ---- */

/* The device is opened once, by the path that comes first; the other one proves that the server has
 * both. */
SIM_TEST(connect)
{
	begin(2, CLT_POLICY_ROUND_ROBIN);
	world_expect(w, "");
}

/* Requests take turns; each policy moves data over whatever is up. */
SIM_TEST(policies)
{
	for (unsigned policy = 0; policy < CLT_NPOLICIES; policy++) {
		begin(WORLD_PATHS, (enum clt_policy)policy);
		for (unsigned i = 0; i < 64; i++) {
			CHECK(world_write(c, i * 4096, 4096, (uint8_t)(i + 1)) == 0);
			CHECK(world_read(c, i * 4096, 4096, (uint8_t)(i + 1)) == 0);
		}
		CHECK(world_flush(c) == 0);
	}
}

/* ---- one path is lost ---- */

/* In flight there, with the storage at work for some: all come back over the other path, and none
 * twice. */
SIM_TEST(cut_under_load)
{
	struct world_io *io[8];

	begin(2, CLT_POLICY_ROUND_ROBIN);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	world_run_ms(w, 20);
	sim_cut("clt", "srv");
	world_run_ms(w, 5);
	CHECK(clt_attempt_is_up(&path(1)->att));
	sim_disk_release(world_disk(w));
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 100));
	CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(world_client_clt(c)->sess.io.epoch == 1);	/* no device was opened again */
}

/* Nobody says that a cable was pulled: heartbeats find out in time, whatever was in flight. */
SIM_TEST(pulled_cable)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct world_io *io[8];
		uint64_t start_us;

		begin(2, CLT_POLICY_ROUND_ROBIN);
		sim_drop("clt", wires[lost]);
		start_us = sim_now_us();
		world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
		CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, DETECT_MS + 100));
		CHECK(sim_now_us() - start_us > HB_MS * 1000);
		CHECK(world_client_clt(c)->sess.io.epoch == 1);
		CHECK(world_traced(w, "lost: connection 0: no sign of life") ||
		      world_traced(w, "lost: no sign of life"));
		sim_heal("clt", wires[lost]);
		CHECK(sim_run_until(all_up, NULL, 10000));
		CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
	}
}

static void set_live(void *arg)
{
	clt_sess_set_heartbeats(&world_client_clt(c)->sess, 100, 1);
	clt_sess_set_poll(&world_client_clt(c)->sess, 7);
}

/* Other heartbeats are those of the next connection; another time of busy-polling is that of the
 * connections that are there, too. */
SIM_TEST(heartbeats_change)
{
	struct sim_fiber *f;

	begin(2, CLT_POLICY_ROUND_ROBIN);
	f = world_client_fiber(c, set_live, NULL);
	world_run_ms(w, 20);
	CHECK(sim_fiber_done(f));
	CHECK(spin_limit(&path(1)->att.cons[1].wait.spin) == 7);
	sim_drop("clt", wires[0]);
	world_run_ms(w, HB_MS);
	CHECK(!world_traced(w, "lost"));
	world_run_ms(w, DETECT_MS);
	CHECK(world_traced(w, "lost"));
	sim_heal("clt", wires[0]);
	CHECK(sim_run_until(all_up, NULL, 10000));
	world_forget(w);
	sim_drop("clt", wires[0]);
	world_run_ms(w, 3 * 100 + 20);
	CHECK(world_traced(w, "lost"));
	sim_fiber_free(f);
}

/* ---- all paths are lost ---- */

SIM_TEST(both_cut)
{
	struct world_io *io;

	begin(2, CLT_POLICY_MIN_INFLIGHT);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	sim_drop("clt", "srv");
	sim_drop("clt", "srv/1");
	io = world_io_start(c, RNBD_OP_WRITE, 4096, 4096, 0x22, false);
	world_run_ms(w, 10000);
	CHECK(!io->done);
	sim_heal("clt", "srv/1");
	CHECK(world_io_end(io, 0, 10000) == 0);
	CHECK(clt_attempt_is_up(&path(1)->att) && !clt_attempt_is_up(&path(0)->att));
	CHECK(world_client_clt(c)->sess.io.epoch == 2);
	sim_heal("clt", "srv");
	CHECK(sim_run_until(all_up, NULL, 10000));
	CHECK(world_client_clt(c)->sess.io.epoch == 2);
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	CHECK(world_flush(c) == 0);
}

/* A path that was lost again and again is tried rarely, but not when it is the last hope. */
SIM_TEST(last_hope)
{
	struct world_io *io;

	begin(2, CLT_POLICY_MIN_INFLIGHT);
	for (unsigned i = 0; i < 8; i++) {
		CHECK(sim_run_until(all_up, NULL, 10000));
		sim_cut("clt", "srv");
		world_run_ms(w, 1);
	}
	sim_drop("clt", "srv/1");
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x11, false);
	CHECK(world_io_end(io, 0, DETECT_MS + 100) == 0);
	CHECK(clt_attempt_is_up(&path(0)->att));
	sim_heal("clt", "srv/1");
	CHECK(sim_run_until(all_up, NULL, 10000));
}

static bool third_up(void *arg)
{
	return clt_attempt_is_up(&path(2)->att);
}

static bool last_up(void *arg)
{
	return clt_attempt_is_up(&path(3)->att);
}

/* Any of the others can prove that the server has the session, not only the first: that one may
 * stand still, and nobody has noticed. */
SIM_TEST(joins_beside_silent_paths)
{
	begin(WORLD_PATHS, CLT_POLICY_ROUND_ROBIN);
	for (unsigned silent = 0; silent < 2; silent++)
		sim_drop("clt", wires[silent]);
	sim_cut("clt", wires[3]);
	world_run_ms(w, 1);
	CHECK(!last_up(NULL));
	CHECK(sim_run_until(last_up, NULL, HB_MS / 2));
	sim_heal("clt", wires[0]);
	/* And the last one alone. */
	sim_drop("clt", wires[0]);
	sim_cut("clt", wires[2]);
	world_run_ms(w, 1);
	CHECK(!third_up(NULL) && sim_run_until(third_up, NULL, HB_MS / 2));
	CHECK(clt_attempt_is_up(&path(0)->att) && clt_attempt_is_up(&path(1)->att));
	sim_heal("clt", wires[0]);
	sim_heal("clt", wires[1]);
	CHECK(sim_run_until(all_up, NULL, 10000));
	CHECK(world_client_clt(c)->sess.io.epoch == 1);
}

static bool sess_is_up(void *arg)
{
	return clt_sess_is_up(&world_client_clt(c)->sess);
}

/* The server is back: as soon as one path has found that out all others are tried, and do not wait
 * for their time. */
SIM_TEST(one_lets_in_the_others)
{
	begin(WORLD_PATHS, CLT_POLICY_ROUND_ROBIN);
	world_run_ms(w, 10000);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_run_ms(w, 20000);
	server_start();
	CHECK(!sess_is_up(NULL) && sim_run_until(sess_is_up, NULL, 2000));
	CHECK(!all_up(NULL) && sim_run_until(all_up, NULL, 100));
}

/* One path is lost as soon as it is up; the other ones, which have been refused for long, are tried
 * as often as one that is alone. */
SIM_TEST(others_do_not_rest)
{
	unsigned before[2];

	w = world_serve(NULL);		/* its first address alone */
	c = world_client_start(w, CLIENT(.npaths = 3));
	CHECK(world_wait_open(c, 2000) == 0);
	world_run_ms(w, 60000);
	sim_cut("clt", "srv");
	world_run_ms(w, 1);
	CHECK(sim_run_until(sess_is_up, NULL, 1000));
	world_run_ms(w, 100);
	for (unsigned i = 0; i < 2; i++) {
		before[i] = path(1 + i)->attempts;
		CHECK(path(1 + i)->retry_timer.at_ms > clock_now_ms() + 2000);
	}
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	world_run_ms(w, 1300);
	for (unsigned i = 0; i < 2; i++)
		CHECK(path(1 + i)->attempts > before[i]);
	sim_heal("clt", "srv");
}

/* One path is back with the new process while the other one is thought to be up with the old: it is
 * not joined with a session that is gone, and no request is lost for it. */
SIM_TEST(restart_behind_a_dead_path)
{
	struct world_io *io;

	begin(2, CLT_POLICY_ROUND_ROBIN);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	sim_drop("clt", "srv");
	world_server_kill(w, SIM_KILL_PROCESS);
	server_start();
	world_run_ms(w, HB_MS);
	CHECK(clt_attempt_is_up(&path(0)->att) && !clt_attempt_is_up(&path(1)->att));
	CHECK(world_client_clt(c)->sess.io.epoch == 1);
	io = world_io_start(c, RNBD_OP_WRITE, 4096, 4096, 0x22, false);
	CHECK(world_io_end(io, 0, DETECT_MS + 1000) == 0);
	CHECK(world_client_clt(c)->sess.io.epoch == 2);
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	sim_heal("clt", "srv");
	CHECK(sim_run_until(all_up, NULL, 10000));
}

static void cut_first(void *arg)
{
	sim_cut("clt", "srv");
}

/* The last path is lost at any moment until the other one, to the next process, has its first
 * answer.  One that is on its way down is not joined: it says no more which server is the right
 * one. */
SIM_TEST(restart_beside_a_dying_path)
{
	unsigned dying = 0;
	bool up = false;

	for (unsigned step = 0; !up; step++) {
		bool holds;

		begin(2, CLT_POLICY_ROUND_ROBIN);
		sim_drop("clt", "srv");
		world_server_kill(w, SIM_KILL_PROCESS);
		server_start();
		sim_at_step(sim_steps() + step, cut_first, NULL);
		while (atomic_load(&path(1)->att.state) != CLT_PATH_OPENING)
			CHECK(sim_step(sim_now_us() + 1000000));
		up = clt_sess_is_up(&world_client_clt(c)->sess);
		holds = clt_path_holds(path(0));
		dying += !up && holds;
		sim_at_step(0, NULL, NULL);
		if (up)
			sim_cut("clt", "srv");
		sim_heal("clt", "srv");
		CHECK(sim_run_until(all_up, NULL, 5000));
		CHECK(up || !world_traced(w, "not the server that the other paths lead to"));
	}
	CHECK(dying);				/* and not only one that had gone */
}

SIM_TEST(restart)
{
	struct world_io *io[8];

	begin(WORLD_PATHS, CLT_POLICY_MIN_LATENCY);
	for (unsigned round = 0; round < 5; round++) {
		world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), (uint8_t)round);
		world_run_ms(w, round);
		world_server_kill(w, SIM_KILL_PROCESS);
		world_run_ms(w, 300);
		server_start();
		CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 5000));
		CHECK(sim_run_until(all_up, NULL, 5000));
		CHECK(world_client_clt(c)->sess.io.epoch == round + 2);
	}
}

/* No path comes up for 3 s. */
static void none_comes_up(void)
{
	for (unsigned i = 0; i < 3000; i++) {
		world_run_ms(w, 1);
		CHECK(!clt_sess_is_up(&world_client_clt(c)->sess));
	}
}

/* While the server is away the address of a path leads to another machine, which has another file
 * of that name, or to a server there that has none.  It is not let in, shared exports or not, and
 * that its memory is another one is no loss: a FLUSH covers what was written before. */
SIM_TEST(another_machine)
{
	for (unsigned i = 0; i < 4; i++) {
		struct world_server_conf other = server_conf();
		bool none = i & 1;

		other.shared = i & 2;
		other.other_host = !none;
		other.export_name = none ? "other" : NULL;
		begin(2, CLT_POLICY_ROUND_ROBIN);
		CHECK(world_write(c, 0, 4096, 0x11) == 0);
		world_server_kill(w, SIM_KILL_PROCESS);
		world_server_start(w, &other);
		none_comes_up();
		CHECK(world_traced(w,
				   none ? "not the server that had the exports" :
				   "another machine than the paths led"));
		CHECK(none || !world_traced(w, "export came back"));	/* nothing was opened */
		world_server_kill(w, SIM_KILL_PROCESS);
		server_start();
		CHECK(sim_run_until(all_up, NULL, 5000));
		CHECK(world_flush(c) == 0);
		CHECK(world_read(c, 0, 4096, 0x11) == 0);
	}
}

/* The same while nobody has the export open: who opens it next finds the data of the machine that
 * it had. */
static void another_machine_for_nobody(bool shared)
{
	struct world_server_conf other = server_conf();

	other.shared = shared;
	other.other_host = true;
	begin(2, CLT_POLICY_ROUND_ROBIN);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	CHECK(world_flush(c) == 0);
	dev_close(world_client_dev(c));
	world_run_ms(w, 20);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, &other);
	none_comes_up();
	CHECK(world_traced(w, "another machine than the paths led to before"));
	world_server_kill(w, SIM_KILL_PROCESS);
	server_start();
	CHECK(sim_run_until(all_up, NULL, 5000));
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
}

SIM_TEST(another_machine_for_nobody)
{
	another_machine_for_nobody(false);
	another_machine_for_nobody(true);
}

/* A server that was refused for its files is not the one that another machine takes the place
 * of. */
SIM_TEST(another_machine_after_other_files)
{
	struct world_server_conf other = server_conf();

	begin(2, CLT_POLICY_ROUND_ROBIN);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	world_server_kill(w, SIM_KILL_PROCESS);
	other.shared = true;
	other.export_name = "other";
	world_server_start(w, &other);
	none_comes_up();
	CHECK(world_traced(w, "not the server that had the exports"));
	world_server_kill(w, SIM_KILL_PROCESS);
	other.other_host = true;
	other.export_name = NULL;
	world_server_start(w, &other);
	none_comes_up();
	CHECK(world_traced(w, "another machine than the paths led to before"));
}

/* The probe at start hears that no path comes up, in whatever order they fail. */
SIM_TEST(probe_of_two)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		w = world_create(seed);
		sim_shuffle(true);
		c = world_client_start(w, CLIENT(.npaths = 2, .once = true));
		CHECK(world_wait_open(c, 20000) < 0);
		world_run_ms(w, 100);
		CHECK(world_client_clt(c)->result < 0 && world_client_clt(c)->result != -EAGAIN);
	}
}

static unsigned nopening(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 4; i++)
		n += atomic_load(&path(i)->att.state) == CLT_PATH_OPENING;
	return n;
}

/* One asks the server who it is, and two others wait for that. */
static bool three_open(void *arg)
{
	return world_client_clt(c)->sess.stage == CLT_OPENING_BEGINS && nopening() >= 3;
}

/* What was asked over a path comes back before another one is greeted, also when a third has failed
 * right before. */
SIM_TEST(lost_while_opening)
{
	unsigned hits = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct clt_path *opening;

		w = world_create(seed);
		sim_shuffle(true);
		server_start();
		c = world_client_start(w, CLIENT(.npaths = 4));
		if (sim_run_until(three_open, NULL, 1000)) {
			opening = world_client_clt(c)->sess.opening;
			for (unsigned i = 0; i < 4; i++) {
				if (path(i) != opening &&
				    atomic_load(&path(i)->att.state) == CLT_PATH_OPENING) {
					clt_path_fail(path(i), -EIO, "by the test");
					break;
				}
			}
			clt_path_fail(opening, -EIO, "by the test");
			hits++;
		}
		CHECK(world_wait_open(c, 5000) == 0);
		CHECK(sim_run_until(all_up, NULL, 5000));
		CHECK(world_read(c, 0, 4096, 0) == 0);
	}
	CHECK(hits > 20);
}

/* ---- by hand ---- */

struct by_hand {
	unsigned wire;
	bool from;			/* with the client's address */
	int result;
	struct clt_path *path;
};

static void add_path(void *arg)
{
	struct by_hand *h = arg;
	struct clt_sess_addr addr = { .dst = sim_addr(wires[h->wire], RTRS_PORT) };

	if (h->from)
		addr.src = sim_addr("clt", 0);
	h->result = clt_paths_add(&world_client_clt(c)->sess, &addr, &h->path);
	if (h->result == 0)
		clt_path_start(h->path);
}

static void remove_path(void *arg)
{
	struct by_hand *h = arg;

	h->result = clt_paths_remove(&world_client_clt(c)->sess, path(h->wire));
}

static void start_path(void *arg)
{
	clt_path_start(path(((struct by_hand *)arg)->wire));
}

static int by_hand_from(void (*fn)(void *arg), unsigned wire, bool from)
{
	struct by_hand h = { .wire = wire, .from = from };
	struct sim_fiber *f = world_client_fiber(c, fn, &h);

	world_run_ms(w, 1);
	CHECK(sim_fiber_done(f));
	sim_fiber_free(f);
	return h.result;
}

static int by_hand(void (*fn)(void *arg), unsigned wire)
{
	return by_hand_from(fn, wire, false);
}

static void accept_server(void *arg)
{
	((struct by_hand *)arg)->result = client_accept(world_client_clt(c));
}

/* A name must not move a disk: with one path, too, another machine is let in only when the
 * administrator says so. */
static void another_machine_for_one_path(bool shared)
{
	struct world_server_conf other = server_conf();

	other.shared = shared;
	other.other_host = true;
	begin(1, CLT_POLICY_ROUND_ROBIN);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	CHECK(world_flush(c) == 0);
	dev_close(world_client_dev(c));
	world_run_ms(w, 20);
	world_server_kill(w, SIM_KILL_PROCESS);
	CHECK(by_hand(accept_server, 0) == -ENOENT);
	world_server_start(w, &other);
	none_comes_up();
	CHECK(world_traced(w, "another machine than the paths led to before"));
	CHECK(by_hand(accept_server, 0) == 0);
	CHECK(sim_run_until(all_up, NULL, 5000));
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	/* And it is the one that the client keeps to from then on. */
	world_server_kill(w, SIM_KILL_PROCESS);
	server_start();
	none_comes_up();
}

SIM_TEST(another_machine_for_one_path)
{
	another_machine_for_one_path(false);
	another_machine_for_one_path(true);
}

/* A copy of the server takes its place while an export is open, when the administrator says so: a
 * write that was not answered is sent again, and one that no FLUSH has covered counts as lost,
 * once.  @flushed: there is none. */
static void copy_is_accepted(unsigned npaths, bool flushed)
{
	struct world_server_conf other = server_conf();
	struct world_io *io;

	other.other_host = true;
	begin(npaths, CLT_POLICY_ROUND_ROBIN);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	CHECK(world_flush(c) == 0);
	CHECK(by_hand(accept_server, 0) == -ENOENT);
	CHECK(flushed || world_write(c, 4096, 4096, 0x22) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 8192, 4096, 0x33, false);
	world_run_ms(w, 20);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_server_start(w, &other);
	world_run_ms(w, 3000);
	CHECK(!world_traced(w, "another file takes its place"));
	CHECK(by_hand(accept_server, 0) == 0);
	CHECK(sim_run_until(all_up, NULL, 5000));
	CHECK(world_io_end(io, 0, 5000) == 0);
	CHECK(world_traced(w, "disk0: another file takes its place, accepted by rtrsctl"));
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	CHECK(world_read(c, 8192, 4096, 0x33) == 0);
	CHECK(world_flush(c) == (flushed ? 0 : -EIO));
	CHECK(world_flush(c) == 0);
	CHECK(by_hand(accept_server, 0) == -ENOENT);
	/* The former server is another machine now. */
	world_server_kill(w, SIM_KILL_PROCESS);
	server_start();
	for (unsigned i = 0; i < 3000; i++) {
		world_run_ms(w, 1);
		CHECK(!clt_attempt_is_up(&path(0)->att));
	}
}

SIM_TEST(copy_is_accepted)
{
	for (unsigned npaths = 1; npaths <= 2; npaths++) {
		copy_is_accepted(npaths, false);
		copy_is_accepted(npaths, true);
	}
}

/* What was accepted is one machine: the former one may come first, and is what the client had. */
SIM_TEST(accepted_is_one_machine)
{
	struct world_server_conf other = server_conf();

	other.other_host = true;
	begin(1, CLT_POLICY_ROUND_ROBIN);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, &other);
	world_run_ms(w, 3000);
	world_server_kill(w, SIM_KILL_PROCESS);
	CHECK(by_hand(accept_server, 0) == 0);
	server_start();
	CHECK(sim_run_until(all_up, NULL, 5000));
	CHECK(world_read(c, 0, 4096, 0x11) == 0);
	CHECK(world_flush(c) == 0);
	CHECK(!world_traced(w, "another file takes its place"));
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, &other);
	for (unsigned i = 0; i < 3000; i++) {
		world_run_ms(w, 1);
		CHECK(!clt_attempt_is_up(&path(0)->att));
	}
}

static bool removed_is_closed(void *arg)
{
	return atomic_load(&path(0)->att.state) == CLT_PATH_CLOSED;
}

/* The first path is removed while it carries requests, and comes back as another one. */
SIM_TEST(added_and_removed)
{
	struct world_io *io[8];

	begin(1, CLT_POLICY_ROUND_ROBIN);
	CHECK(by_hand(remove_path, 0) == -EBUSY);
	CHECK(by_hand(add_path, 0) == -EEXIST);
	CHECK(by_hand(add_path, 1) == 0);
	CHECK(sim_run_until(all_up, NULL, 1000));
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	world_run_ms(w, 20);
	CHECK(by_hand(remove_path, 0) == 0);
	sim_disk_release(world_disk(w));
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 100));
	CHECK(sim_run_until(removed_is_closed, NULL, 1000));
	CHECK(by_hand(remove_path, 1) == -EBUSY);
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(world_client_clt(c)->sess.io.natts == 2);
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(world_client_clt(c)->sess.io.epoch == 1);
	sim_cut("clt", "srv/1");
	CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
}

static bool is_closed(void *arg)
{
	return atomic_load(&((struct clt_path *)arg)->att.state) == CLT_PATH_CLOSED;
}

static void remove_and_wait(unsigned i)
{
	CHECK(by_hand(remove_path, i) == 0);
	CHECK(sim_run_until(is_closed, path(i), 1000));
}

/* What was removed has no address any more, and what takes its place has its own and no other. */
SIM_TEST(another_address)
{
	begin(2, CLT_POLICY_ROUND_ROBIN);
	remove_and_wait(0);
	CHECK(by_hand(add_path, 0) == 0);	/* the same is as good as another */
	CHECK(sim_run_until(all_up, NULL, 1000));
	remove_and_wait(1);			/* not the last one */
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(by_hand(add_path, 2) == -EEXIST);
	CHECK(world_client_clt(c)->sess.io.natts == 2);
	CHECK(sim_run_until(all_up, NULL, 1000));
	/* It leads where it says. */
	sim_cut("clt", "srv/1");
	world_run_ms(w, 5);
	CHECK(!world_traced(w, "lost"));
	sim_cut("clt", "srv/2");
	world_run_ms(w, 5);
	CHECK(world_traced(w, "path srv/2: lost"));
	CHECK(by_hand(add_path, 1) == 0);
	CHECK(world_client_clt(c)->sess.io.natts == 3);
	CHECK(sim_run_until(all_up, NULL, 10000));
	for (unsigned i = 0; i < 8; i++)
		CHECK(world_read(c, i * 4096, 4096, 0) == 0);
}

/* The same for where it comes from; any address is another one than a certain one, as long as the
 * server is not asked. */
SIM_TEST(another_source)
{
	begin(2, CLT_POLICY_ROUND_ROBIN);
	CHECK(by_hand_from(add_path, 2, true) == 0);
	CHECK(by_hand_from(add_path, 2, true) == -EEXIST);
	CHECK(sim_run_until(all_up, NULL, 1000));
	remove_and_wait(2);
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(by_hand(add_path, 2) == -EEXIST);
	CHECK(sim_run_until(all_up, NULL, 1000));
	remove_and_wait(0);
	CHECK(by_hand_from(add_path, 2, true) == 0);
	CHECK(by_hand_from(add_path, 2, true) == -EEXIST);
	CHECK(world_client_clt(c)->sess.io.natts == 3);
	world_run_ms(w, 100);
	CHECK(world_traced(w, "path clt@srv/2: cannot connect: connection 0 was refused"));
}

/* Keys and connection managers of one provider are of no use to another one. */
SIM_TEST(another_provider)
{
	struct fab_provider other = fab_sim;
	struct clt_sess_addr addr;
	struct sim_place before;
	struct clt_path *added;

	begin(2, CLT_POLICY_ROUND_ROBIN);
	remove_and_wait(0);
	addr = (struct clt_sess_addr){ .dst = sim_addr("srv/2", RTRS_PORT) };
	addr.dst.provider = &other;
	before = sim_enter(sim_host_find("clt"), sim_host_find("clt")->epoch);
	CHECK(clt_paths_add(&world_client_clt(c)->sess, &addr, &added) == 0);
	sim_leave(before);
	CHECK(added == path(2));
	CHECK(by_hand(add_path, 2) == 0);	/* is no other one */
	CHECK(world_client_clt(c)->sess.io.natts == 3);
}

/* ---- a reload with other paths (clt-change.h) ---- */

static const struct clt_front front = { .name = "front" };

struct reload {
	struct clt_change change;
	struct clt_conf now, wanted;
	int rc;				/* 1: not ended */
	char why[512];
};

static void change_done(struct clt_change *change, int rc, const char *why)
{
	struct reload *reload = container_of(change, struct reload, change);

	reload->rc = rc;
	snprintf(reload->why, sizeof(reload->why), "%s", why);
}

static void begin_change(void *arg)
{
	struct reload *reload = arg;

	clt_change_begin(&reload->change, &world_client_clt(c)->sess, &reload->now,
			 &reload->wanted, change_done);
}

/* The only path that is up stays as long as the one in its place does not come up, and both are as
 * before in the end. */
SIM_TEST(change_gives_up)
{
	static struct reload reload;
	struct sim_fiber *f;

	begin(1, CLT_POLICY_ROUND_ROBIN);
	clt_conf_init(&reload.now, &front);
	clt_conf_init(&reload.wanted, &front);
	reload.wanted.paths[0].dst = sim_addr("srv/1", RTRS_PORT + 1);
	reload.wanted.path_texts[0] = "srv/1";
	reload.wanted.npaths = 1;
	reload.rc = 1;
	f = world_client_fiber(c, begin_change, &reload);
	world_run_ms(w, CLT_CHANGE_WAIT_MS - 100);
	CHECK(sim_fiber_done(f) && reload.rc == 1);
	CHECK(!path(0)->removed && clt_attempt_is_up(&path(0)->att));
	CHECK(world_client_clt(c)->sess.io.natts == 2 && !path(1)->removed);
	CHECK(world_read(c, 0, 4096, 0) == 0);
	world_run_ms(w, 200);
	CHECK(reload.rc == -ETIMEDOUT &&
	      strstr(reload.why, "none of the remaining paths is up after 30 s"));
	CHECK(path(1)->removed && !path(0)->removed);
	CHECK(world_read(c, 0, 4096, 0) == 0);
	sim_fiber_free(f);
}

static void expect_nothing_counted(unsigned i)
{
	struct clt_stat stat;

	clt_path_stat_get(path(i), &stat);
	for (unsigned n = 0; n <= CLT_STAT_RECONNECTS_FAILED; n++)
		CHECK(!stat.n[n]);
}

/* What the former path has done, and what was told of it, is not that of the next one: it begins
 * with no count, has all its attempts, tells its own troubles, and is not "again". */
SIM_TEST(another_address_begins_anew)
{
	begin(2, CLT_POLICY_ROUND_ROBIN);
	world_client_clt(c)->sess.max_reconnect_attempts = 1;
	for (unsigned i = 0; i < 8; i++)
		CHECK(world_read(c, i * 4096, 4096, 0) == 0);
	sim_drop("clt", "srv/1");
	CHECK(sim_run_until(is_closed, path(1), 60000));
	CHECK(world_traced(w, "path srv/1: cannot connect: no answer to the connect request"));
	CHECK(by_hand(remove_path, 1) == 0);
	CHECK(by_hand(add_path, 3) == 0);
	expect_nothing_counted(1);
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(world_traced(w, "path srv/3: connected: "));
	expect_nothing_counted(1);
	world_forget(w);
	remove_and_wait(1);
	sim_drop("clt", "srv/2");
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(sim_run_until(is_closed, path(1), 60000));
	CHECK(world_traced(w, "path srv/2: cannot connect: no answer to the connect request"));
	CHECK(world_traced(w, "path srv/2: given up after 1 attempts to reconnect"));
	CHECK(path(1)->attempts == 2);
	/* As often as that again, when somebody asks for it. */
	CHECK(by_hand(start_path, 1) == 0);
	CHECK(sim_run_until(is_closed, path(1), 60000));
	CHECK(path(1)->attempts == 4);
}

static bool removed_is_closing(void *arg)
{
	return atomic_load(&path(0)->att.state) == CLT_PATH_CLOSING;
}

/* It has another address before those whose requests it carried have run again. */
SIM_TEST(readdressed_at_once)
{
	struct by_hand h = { .wire = 0 }, again = { .wire = 2 };
	struct sim_place before;
	struct sim_host *host;
	struct world_io *io[8];
	struct sim_fiber *f;

	begin(2, CLT_POLICY_ROUND_ROBIN);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
	world_ios_start(c, RNBD_OP_READ, io, ARRAY_SIZE(io), 0);
	world_run_ms(w, 20);
	f = world_client_fiber(c, remove_path, &h);
	host = sim_host_find("clt");
	CHECK(sim_run_until(removed_is_closing, NULL, 1000));
	CHECK(sim_run_until(removed_is_closed, NULL, 1000));
	before = sim_enter(host, host->epoch);
	add_path(&again);
	sim_leave(before);
	CHECK(again.result == 0);
	sim_disk_release(world_disk(w));
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		CHECK(world_io_end(io[i], 0, 100) == 0);
	sim_fiber_free(f);
	CHECK(sim_run_until(all_up, NULL, 1000));
}

/* A path is lost whose requests have waited. */
static void lose_waiting(const char *to)
{
	struct world_io *io[4];

	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
	world_ios_start(c, RNBD_OP_READ, io, ARRAY_SIZE(io), 0);
	world_run_ms(w, 600);
	sim_cut("clt", to);
	world_run_ms(w, 20);
	sim_disk_release(world_disk(w));
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		CHECK(world_io_end(io[i], 0, 1000) == 0);
}

/* Requests that an address has lost are not held against the next one. */
SIM_TEST(readdressed_when_held)
{
	begin(2, CLT_POLICY_ROUND_ROBIN);
	lose_waiting(wires[1]);
	CHECK(sim_run_until(all_up, NULL, 5000));
	lose_waiting(wires[1]);
	CHECK(!sim_run_until(all_up, NULL, 5000));
	CHECK(world_traced(w, "has lost requests 2 times although the server answers heartbeats"));
	CHECK(by_hand(remove_path, 1) == 0);
	world_run_ms(w, 100);
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(atomic_load(&world_client_clt(c)->sess.io.natts) == 2);
	CHECK(sim_run_until(all_up, NULL, 5000));
	lose_waiting(wires[2]);
	CHECK(sim_run_until(all_up, NULL, 5000));
}

/* After so many attempts a path is left alone, until somebody asks for it. */
SIM_TEST(given_up)
{
	w = world_serve(NULL);		/* its first address alone */
	c = world_client_start(w, CLIENT(.npaths = 2, .max_reconnect_attempts = 1 + 3));
	CHECK(world_wait_open(c, 2000) <= 0);
	world_run_ms(w, 10000);
	CHECK(atomic_load(&path(1)->att.state) == CLT_PATH_CLOSED && path(1)->attempts == 4);
	CHECK(world_traced(w, "given up after 3 attempts to reconnect"));
	CHECK(world_write(c, 0, 4096, 1) == 0);
}

static bool second_is_up(void *arg)
{
	return clt_attempt_is_up(&path(1)->att);
}

static uint64_t reconnects_failed(void)
{
	struct clt_stat stat;

	clt_path_stat_get(path(1), &stat);
	return stat.n[CLT_STAT_RECONNECTS_FAILED];
}

/* Attempts in a row are counted: a path that came back begins anew.  The counter of those that
 * failed goes on. */
SIM_TEST(lost_often)
{
	uint64_t failed = 0;

	w = world_create(1);
	server_start();
	c = world_client_start(w, CLIENT(.npaths = 2, .max_reconnect_attempts = 1 + 3));
	CHECK(world_wait_open(c, 2000) <= 0 && sim_run_until(all_up, NULL, 2000));
	for (unsigned i = 0; i < 6; i++) {
		while (path(1)->fails < 3) {
			sim_cut("clt", "srv/1");	/* sooner than it can be up again */
			world_run_ms(w, 3);
		}
		CHECK(sim_run_until(second_is_up, NULL, 10000));
		CHECK(reconnects_failed() >= failed + 2);
		failed = reconnects_failed();
	}
	CHECK(!world_traced(w, "given up"));
	CHECK(failed == path(1)->attempts - 1 - 6);
}

/* ---- paths over which less can be in flight ---- */

/* So many WRITEs are at the storage when more than can be are asked for. */
static unsigned most_at_once(void)
{
	struct world_io *io[64];
	unsigned n;

	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	world_run_ms(w, 50);
	n = sim_disk_held(world_disk(w));
	sim_disk_release(world_disk(w));
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 1000));
	CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
	return n;
}

static unsigned limit(void)
{
	return atomic_load(&world_client_clt(c)->sess.io.slots.limit);
}

/* From the moment when such a path joins there are no more requests than it can carry, whichever
 * path they go over; one that carries more does not change that.  A session that begins anew has
 * what its path then carries. */
SIM_TEST(joins_with_a_shorter_queue)
{
	unsigned all, few;

	begin(1, CLT_POLICY_ROUND_ROBIN);
	all = limit();
	CHECK(most_at_once() == all - 1);	/* one is for user messages */
	sim_offer_limits("clt", 14, 0);
	CHECK(by_hand(add_path, 1) == 0);
	CHECK(sim_run_until(all_up, NULL, 1000));
	few = path(1)->att.depth;
	CHECK(few > 2 && few < all && limit() == few);
	CHECK(most_at_once() == few - 1);
	sim_offer_limits("clt", 0, 0);
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(path(2)->att.depth == all && limit() == few);
	CHECK(most_at_once() == few - 1);
	remove_and_wait(1);
	CHECK(limit() == few && most_at_once() == few - 1);
	CHECK(world_client_clt(c)->sess.io.epoch == 1 && !world_traced(w, "lost"));
	world_server_kill(w, SIM_KILL_PROCESS);
	server_start();
	CHECK(world_read(c, 0, 4096, 1) == 0);
	CHECK(world_client_clt(c)->sess.io.epoch == 2 && limit() == all);
	CHECK(most_at_once() == all - 1);
}

/* ---- all of them at once ---- */

static void fail_all(void *arg)
{
	clt_sess_fail(&world_client_clt(c)->sess, -ECONNABORTED, "by the test");
}

/* An epoch that is of no use ends with all its paths: what one of them keeps the next ones would
 * join. */
SIM_TEST(epoch_is_to_end)
{
	for (unsigned npaths = 1; npaths <= WORLD_PATHS; npaths++) {
		struct world_io *io[8];
		struct sim_fiber *f;
		char line[64];

		begin(npaths, CLT_POLICY_ROUND_ROBIN);
		sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
		world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
		world_run_ms(w, 20);
		f = world_client_fiber(c, fail_all, NULL);
		world_run_ms(w, 1);
		CHECK(sim_fiber_done(f));
		sim_fiber_free(f);
		sim_disk_release(world_disk(w));
		for (unsigned i = 0; i < npaths; i++) {
			snprintf(line, sizeof(line), "path %s: lost: by the test", wires[i]);
			CHECK(world_traced(w, line));
		}
		CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 5000));
		CHECK(sim_run_until(all_up, NULL, 5000));
		CHECK(world_client_clt(c)->sess.io.epoch == 2);
		CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
	}
}

/* A server that is told to end lets go of all paths at once, and of requests when they are
 * answered. */
SIM_TEST(server_stops)
{
	for (unsigned busy = 0; busy < 2; busy++) {
		struct world_io *io[8];
		uint64_t start_us;

		begin(WORLD_PATHS, CLT_POLICY_ROUND_ROBIN);
		for (unsigned i = 0; busy && i < ARRAY_SIZE(io); i++)
			io[i] = world_io_start(c, RNBD_OP_WRITE, i * 4096, 4096, (uint8_t)(i + 1),
					       false);
		start_us = sim_now_us();
		world_server_stop(w);
		CHECK(sim_now_us() - start_us < 100000);
		server_start();
		for (unsigned i = 0; busy && i < ARRAY_SIZE(io); i++)
			CHECK(world_io_end(io[i], 0, 5000) == 0);
		for (unsigned i = 0; busy && i < ARRAY_SIZE(io); i++)
			CHECK(world_read(c, i * 4096, 4096, (uint8_t)(i + 1)) == 0);
		CHECK(sim_run_until(all_up, NULL, 5000));
	}
}

static bool one_is_left(void *arg)
{
	return !clt_attempt_is_up(&path(0)->att) && !clt_attempt_is_up(&path(1)->att);
}

/* A session has its name as long as it has any path, also when the storage still works for those
 * that are gone. */
SIM_TEST(name_of_a_session_with_one_path_left)
{
	struct raw_clt *other = calloc(1, sizeof(*other));
	struct world_io *io[8];

	CHECK(other);
	begin(3, CLT_POLICY_ROUND_ROBIN);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, ARRAY_SIZE(io));
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	world_run_ms(w, 20);
	for (unsigned i = 0; i < 2; i++) {
		sim_drop("clt", wires[i]);
		sim_cut("clt", wires[i]);
	}
	CHECK(sim_run_until(one_is_left, NULL, 100));
	raw_clt_init(other, "clt2", 2, 2, 2);
	CHECK(raw_clt_connect(other, 0) == 0 && raw_clt_connect(other, 1) == 0);
	CHECK(raw_clt_info(other, "sess") == -ECONNRESET);
	CHECK(world_traced(w, "session name sess of a client without a name is in use by "
			      "sess/clt@srv/2"));
	sim_disk_release(world_disk(w));
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 100));
	raw_clt_fini(other);
	free(other);
	for (unsigned i = 0; i < 2; i++)
		sim_heal("clt", wires[i]);
	CHECK(sim_run_until(all_up, NULL, 60000));
}

static void lose_patience(void *arg)
{
	clt_sess_lose_patience(&world_client_clt(c)->sess);
}

/* Nobody waits any longer: not for the second path either, which a silent server has not answered
 * for two heartbeats. */
SIM_TEST(patience_with_no_path)
{
	struct world_io *io[8];
	struct sim_fiber *f;

	begin(2, CLT_POLICY_ROUND_ROBIN);
	sim_drop("clt", "srv");
	sim_drop("clt", "srv/1");
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	f = world_client_fiber(c, lose_patience, NULL);
	CHECK(world_ios_end(io, ARRAY_SIZE(io), -EIO, 0, DETECT_MS));
	CHECK(world_traced(w,
			   "path srv: lost: connection 0: no sign of life for 1 s, "
			   "and no request waits any longer") ||
	      world_traced(w,
			   "path srv: lost: no sign of life for 1 s, "
			   "and no request waits any longer") ||
	      world_traced(w,
			   "path srv: lost: no sign of life for 0.5 s, "
			   "and no request waits any longer"));
	CHECK(world_traced(w,
			   "path srv/1: lost: no sign of life for 0.5 s, "
			   "and no request waits any longer"));
	sim_fiber_free(f);
	sim_heal("clt", "srv");
	sim_heal("clt", "srv/1");
	CHECK(sim_run_until(all_up, NULL, 60000));
}

/* ---- how long requests wait ---- */

static void begin_impatient(uint64_t io_timeout_ms)
{
	w = world_create(1);
	server_start();
	c = world_client_start(w, CLIENT(.npaths = 2, .io_timeout_ms = io_timeout_ms));
	CHECK(world_wait_open(c, 2000) == 0);
	CHECK(sim_run_until(all_up, NULL, 2000));
}

static void server_is_away(uint64_t ms)
{
	world_server_kill(w, SIM_KILL_PROCESS);
	world_run_ms(w, ms);
	server_start();
}

/* One of two paths is no loss: nothing waits, and no request fails, however long it is away. */
SIM_TEST(one_path_is_enough)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		begin_impatient(3000);
		sim_drop("clt", wires[lost]);
		for (unsigned i = 0; i < 60; i++) {
			CHECK(world_write(c, i * 4096, 4096, (uint8_t)i) == 0);
			world_run_ms(w, 1000);
		}
		CHECK(!clt_attempt_is_up(&path(lost)->att) && clt_attempt_is_up(&path(!lost)->att));
		CHECK(atomic_load(&world_client_clt(c)->sess.io.state) == CLT_SESS_UP);
		CHECK(!clt_sess_is_away(&world_client_clt(c)->sess));
		CHECK(!world_traced(w, "requests fail until it is back"));
	}
}

/* A session that had worked for long has all its patience again, also when the path that goes last
 * had just come back. */
SIM_TEST(patience)
{
	for (unsigned young = 0; young < 2; young++) {
		struct world_io *io;

		begin_impatient(3000);
		server_is_away(300);
		CHECK(sim_run_until(all_up, NULL, 5000));
		world_run_ms(w, 60000);
		sim_cut("clt", wires[young]);
		world_run_ms(w, 1);
		CHECK(sim_run_until(all_up, NULL, 5000));
		sim_cut("clt", wires[!young]);
		world_server_kill(w, SIM_KILL_PROCESS);
		io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x11, false);
		world_run_ms(w, 1000);
		CHECK(!io->done);
		server_start();
		CHECK(world_io_end(io, 0, 5000) == 0);
	}
}

/* Both paths are lost as soon as they are up, again and again: nobody is asked more often than with
 * one path. */
SIM_TEST(never_up_for_long)
{
	unsigned before, attempts;

	begin_impatient(CLOCK_NEVER);
	before = path(0)->attempts + path(1)->attempts;
	for (unsigned i = 0; i < 20000; i++) {
		for (unsigned n = 0; n < 2; n++) {
			if (clt_attempt_is_up(&path(n)->att))
				sim_cut("clt", wires[n]);
		}
		world_run_ms(w, 1);
	}
	attempts = path(0)->attempts + path(1)->attempts - before;
	world_note(w, "%u attempts", attempts);
	CHECK(attempts < 80);
}

/* ---- an older copy ---- */

/* What was sent over the first path lies in a hole, is sent again over the second, answered, and
 * undone by a later write; then the hole gives back what it kept.  The server hears of the end of
 * the first path behind that. */
SIM_TEST(late_copy)
{
	struct world_io *io;
	unsigned turn;

	for (turn = 0; turn < 2; turn++) {
		begin(2, CLT_POLICY_ROUND_ROBIN);
		if (turn)
			CHECK(world_read(c, 0, 512, 0) == 0);	/* the other one's turn */
		sim_drop_oneway("clt", "srv");
		io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x11, false);
		CHECK(world_io_end(io, 0, DETECT_MS + 100) == 0);
		for (unsigned i = 0; i < 20; i++)
			CHECK(world_write(c, 0, 4096, (uint8_t)(0x22 + i)) == 0);
		sim_heal("clt", "srv");
		world_run_ms(w, 1000);
		CHECK(world_read(c, 0, 4096, 0x22 + 19) == 0);
	}
}
