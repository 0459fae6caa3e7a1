/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with several paths to a server that is like the kernel's (raw-srv.h): it does not say
 * which process it is, and has no tags.  All that a path can prove before it joins is that the
 * server had it and another one at one moment (doc/decisions.md D15).  A path that joined without
 * would send requests for a device that the server has not opened: raw_srv.nstrays counts them. */
#include <errno.h>

#include "clt-sess.h"
#include "raw-srv.h"
#include "world.h"

/* detection: (HB_MISSES + 1) intervals without an answer, begun at a tick */
#define HB_MS 500u
#define HB_MISSES 2u
#define DETECT_MS ((HB_MISSES + 2) * HB_MS)
#define NIO PEER_SRV_DEPTH

static struct world *w;
static struct world_client *c;
static struct raw_srv srv;
static const char *const wires[WORLD_PATHS] = { "srv", "srv/1", "srv/2", "srv/3" };

static struct clt_sess *sess(void)
{
	return &world_client_clt(c)->sess;
}

static bool is_up(unsigned i)
{
	return clt_attempt_is_up(&sess()->paths[i]->att);
}

static bool all_up(void *arg)
{
	for (unsigned i = 0; i < sess()->io.natts; i++) {
		if (!is_up(i))
			return false;
	}
	return true;
}

static void begin_as(unsigned npaths, bool new_rkey)
{
	w = world_create(1);
	raw_srv_start(&srv, new_rkey);
	c = world_client_start(w, CLIENT(.npaths = npaths, .hb_interval_ms = HB_MS,
					 .hb_misses = HB_MISSES));
	CHECK(world_wait_open(c, 2000) == 0);
	CHECK(sim_run_until(all_up, NULL, 2000));
	world_run_ms(w, 20);
	world_forget(w);
}

static void begin(unsigned npaths)
{
	begin_as(npaths, false);
}

static void end(void)
{
	CHECK(srv.nstrays == 0);
	world_client_stop(w, c);
	world_run_ms(w, 100);
	CHECK(raw_srv_sessions(&srv) == 0);
	raw_srv_stop(&srv);
}

static void start_writes(struct world_io *io[NIO], unsigned round)
{
	world_ios_start(c, RNBD_OP_WRITE, io, NIO, (uint8_t)(round + 1));
}

/* Within @ms each has ended without an error, and done what it was to do. */
static void end_writes(struct world_io *io[NIO], unsigned round, uint64_t ms)
{
	CHECK(world_ios_end(io, NIO, 0, 0, ms));
	CHECK(world_blocks_are(c, NIO, (uint8_t)(round + 1)));
}

/* ---- up ---- */

/* One session at the server, in which the device is opened once; both paths carry requests, and
 * FLUSH covers both. */
SIM_TEST(connect)
{
	struct world_io *io[NIO];

	for (unsigned new_rkey = 0; new_rkey < 2; new_rkey++) {
		begin_as(2, new_rkey);
		CHECK(raw_srv_sessions(&srv) == 1 && srv.peer.lives == 2);
		CHECK(srv.nopens == 1 && sess()->io.epoch == 1);
		for (unsigned round = 0; round < 4; round++) {
			start_writes(io, round);
			end_writes(io, round, 100);
		}
		for (unsigned i = 0; i < 2; i++)
			CHECK(clt_path_stat_answered(sess()->paths[i]) >= 4);
		CHECK(world_flush(c) == 0);
		world_expect(w, "");
		end();
	}
}

/* ---- one path is lost ---- */

/* At each message of 8 requests: what was in flight there goes over the other one, which keeps
 * session and device. */
SIM_TEST(cut_under_requests)
{
	struct world_io *io[NIO];

	for (unsigned lost = 0; lost < 2; lost++) {
		for (unsigned k = 1; k < 12; k++) {
			begin_as(2, k & 1);
			sim_cut_at_message("clt", wires[lost], k);
			start_writes(io, k);
			end_writes(io, k, 100);
			sim_cut_at_message("clt", wires[lost], 0);
			CHECK(sim_run_until(all_up, NULL, 10000));
			CHECK(sess()->io.epoch == 1 && srv.nopens == 1 &&
			      raw_srv_sessions(&srv) == 1);
			CHECK(world_flush(c) == 0);	/* nothing was lost */
			end();
		}
	}
}

/* Nobody says that a cable was pulled. */
SIM_TEST(pulled_cable)
{
	struct world_io *io[NIO];

	for (unsigned lost = 0; lost < 2; lost++) {
		begin(2);
		sim_drop("clt", wires[lost]);
		start_writes(io, 0);
		end_writes(io, 0, DETECT_MS + 100);
		CHECK(sess()->io.epoch == 1 && srv.nopens == 1 && !is_up(lost));
		sim_heal("clt", wires[lost]);
		CHECK(sim_run_until(all_up, NULL, 10000));
		CHECK(sess()->io.epoch == 1 && srv.nopens == 1);
		end();
	}
}

/* ---- the server is another process ---- */

/* It knows neither session nor device.  That unflushed writes are still there is more than the
 * client can know. */
SIM_TEST(restart)
{
	struct world_io *io[NIO];

	begin(WORLD_PATHS);
	for (unsigned round = 0; round < 5; round++) {
		start_writes(io, round);
		world_run_ms(w, round);
		raw_srv_kill(&srv);
		world_run_ms(w, 300);
		raw_srv_start_again(&srv);
		end_writes(io, round, 5000);
		CHECK(sim_run_until(all_up, NULL, 5000));
		CHECK(sess()->io.epoch == round + 2 && srv.nopens == 1 && srv.nstrays == 0);
		CHECK(raw_srv_sessions(&srv) == 1);
	}
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	end();
}

/* The new process lets one path in while the other one, to the process that is gone, is not missed
 * yet.  The server does not tell the two apart: the path waits, sends nothing for a device that is
 * not open, and begins the next epoch. */
SIM_TEST(restart_behind_a_dead_path)
{
	struct world_io *io[NIO];

	for (unsigned lost = 0; lost < 2; lost++) {
		begin(2);
		sim_drop("clt", wires[lost]);
		raw_srv_kill(&srv);
		raw_srv_start_again(&srv);
		start_writes(io, 0);
		world_run_ms(w, HB_MS);
		CHECK(raw_srv_sessions(&srv) == 1);	/* the path is let in */
		CHECK(is_up(lost) && !is_up(!lost));
		CHECK(sess()->io.epoch == 1 && srv.nopens == 0);
		end_writes(io, 0, DETECT_MS + 1000);
		CHECK(sess()->io.epoch == 2 && srv.nopens == 1);
		CHECK(is_up(!lost) && !is_up(lost));
		sim_heal("clt", wires[lost]);
		CHECK(sim_run_until(all_up, NULL, 10000));
		CHECK(sess()->io.epoch == 2 && srv.nopens == 1);
		end();
	}
}

/* The answer to a heartbeat from before the new connections is still on its way from the process
 * that is gone, and behind it the news of its end.  It proves nothing about the process that they
 * lead to. */
SIM_TEST(answer_from_before)
{
	for (unsigned ms = 0; ms < HB_MS; ms += HB_MS / 50) {
		struct world_io *io[NIO];

		begin(2);
		sim_delay("clt", "srv", 2 * HB_MS / 5 * 1000, 0);
		world_run_ms(w, 4 * HB_MS + ms);
		raw_srv_kill(&srv);
		raw_srv_start_again(&srv);
		start_writes(io, 0);
		world_run_ms(w, 2);
		while (sess()->io.epoch == 1) {
			CHECK(!is_up(1));
			world_run_ms(w, 1);
		}
		end_writes(io, 0, DETECT_MS);
		CHECK(sess()->io.epoch == 2 && srv.nopens == 1);
		end();
	}
}

/* ---- by hand ---- */

struct by_hand {
	unsigned wire;
	int result;
};

static void add_path(void *arg)
{
	struct by_hand *h = arg;
	struct clt_sess_addr addr = { .dst = sim_addr(wires[h->wire], RTRS_PORT) };
	struct clt_path *path;

	h->result = clt_paths_add(sess(), &addr, &path);
	if (h->result == 0)
		clt_path_start(path);
}

static void remove_path(void *arg)
{
	struct by_hand *h = arg;

	h->result = clt_paths_remove(sess(), sess()->paths[h->wire]);
}

static int by_hand(void (*fn)(void *arg), unsigned wire)
{
	struct by_hand h = { .wire = wire };
	struct sim_fiber *f = world_client_fiber(c, fn, &h);

	world_run_ms(w, 1);
	CHECK(sim_fiber_done(f));
	sim_fiber_free(f);
	return h.result;
}

static bool removed_is_closed(void *arg)
{
	return atomic_load(&sess()->paths[0]->att.state) == CLT_PATH_CLOSED;
}

/* The path that opened the device is removed under requests: the session stays with the one that
 * joined it. */
SIM_TEST(added_and_removed)
{
	struct world_io *io[NIO];

	begin(1);
	CHECK(by_hand(add_path, 1) == 0);
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(raw_srv_sessions(&srv) == 1 && srv.nopens == 1);
	start_writes(io, 0);
	CHECK(by_hand(remove_path, 0) == 0);
	end_writes(io, 0, 100);
	CHECK(sim_run_until(removed_is_closed, NULL, 1000));
	CHECK(by_hand(remove_path, 1) == -EBUSY);
	start_writes(io, 1);
	CHECK(by_hand(add_path, 2) == 0);
	end_writes(io, 1, 100);
	CHECK(sim_run_until(all_up, NULL, 1000));
	sim_cut("clt", "srv/1");
	start_writes(io, 2);
	end_writes(io, 2, 100);
	CHECK(sess()->io.epoch == 1 && srv.nopens == 1 && raw_srv_sessions(&srv) == 1);
	CHECK(world_flush(c) == 0);
	end();
}

/* ---- paths that carry less in a request ---- */

static void write_and_count(unsigned round, unsigned parts)
{
	unsigned before = srv.nrequests;

	CHECK(world_write(c, 0, RAW_SRV_IO, (uint8_t)(round + 1)) == 0);
	CHECK(srv.nrequests - before == parts);
	CHECK(world_read(c, 0, RAW_SRV_IO, (uint8_t)(round + 1)) == 0);
}

/* From the moment when such a path joins all requests are small enough for it; one that carries
 * more does not change that, because the other may be all that is left.  A session that begins anew
 * has what its path then carries. */
SIM_TEST(joins_with_smaller_requests)
{
	begin(1);
	write_and_count(0, 1);
	srv.peer.told_less = RAW_SRV_IO / 2;
	CHECK(by_hand(add_path, 1) == 0);
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(atomic_load(&sess()->io.max_io_size) == RAW_SRV_IO / 2);
	for (unsigned round = 0; round < 4; round++)
		write_and_count(round, 2);
	srv.peer.told_less = 0;
	CHECK(by_hand(add_path, 2) == 0);
	CHECK(sim_run_until(all_up, NULL, 1000));
	CHECK(atomic_load(&sess()->io.max_io_size) == RAW_SRV_IO / 2);
	/* It alone is left. */
	CHECK(by_hand(remove_path, 2) == 0);
	CHECK(by_hand(remove_path, 0) == 0);
	world_run_ms(w, 100);
	CHECK(is_up(1));
	write_and_count(5, 2);
	CHECK(sess()->io.epoch == 1);
	raw_srv_kill(&srv);
	raw_srv_start_again(&srv);
	CHECK(world_read(c, 0, RAW_SRV_IO, 6) == 0);
	CHECK(sess()->io.epoch == 2);
	write_and_count(6, 1);
	/* And the other way round, when what is to be sent is larger than what has come back. */
	srv.peer.told_less = RAW_SRV_IO / 2;
	sim_cut("clt", "srv/1");
	write_and_count(7, 2);
	CHECK(sess()->io.epoch == 3);
	end();
}
