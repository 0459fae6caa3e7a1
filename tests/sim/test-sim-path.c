/* SPDX-License-Identifier: BSD-3-Clause */
/* A path that comes up and is lost at once, again and again; one that does not come up, and one
 * whose server does not hear that the client ends. */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "clt-cause.h"
#include "srv-state.h"
#include "trace.h"
#include "world.h"

static struct world *w;
static struct world_client *c;

static bool is_up(void *arg)
{
	return clt_sess_is_up(&world_client_clt(arg)->sess);
}

static void start(uint64_t io_timeout_ms)
{
	w = world_serve(NULL);
	c = world_client_opens(w, CLIENT(.io_timeout_ms = io_timeout_ms));
	world_run_ms(w, 20);
	world_forget(w);
}

/* Cut it each time when it has been up for @up_ms, for @ms; returns how often. */
static unsigned flap_slowly(uint64_t ms, uint64_t up_ms)
{
	uint64_t end_us = sim_now_us() + ms * 1000;
	unsigned n = 0;

	while (sim_now_us() < end_us) {
		if (!sim_run_until(is_up, c, 10000))
			break;
		world_run_ms(w, up_ms);
		sim_cut("clt", "srv");
		world_run_ms(w, 1);
		n++;
	}
	return n;
}

static unsigned flap(uint64_t ms)
{
	return flap_slowly(ms, 0);
}

static unsigned lines(const char *text)
{
	const char *s = trace_text();
	unsigned n = 0;

	while ((s = strstr(s, text))) {
		s += strlen(text);
		n++;
	}
	return n;
}

/* It is tried less and less often, down to once a second, because no other path is up, and the log
 * is not flooded. */
SIM_TEST(backs_off)
{
	unsigned n;

	start(60000);
	n = flap(120000);
	CHECK(n >= 90 && n <= 170);
	CHECK(lines("; reconnecting") >= 1 && lines("; reconnecting") <= 3);
	CHECK(lines(" connected again after ") <= 3);
	/* Once it is steady all of that begins anew. */
	world_run_ms(w, 20000);
	world_forget(w);
	sim_cut("clt", "srv");
	world_run_ms(w, 100);
	CHECK(is_up(c) && lines("; reconnecting") == 1 && lines(" connected again after ") == 1);
}

/* A server with too many paths in set-up is tried less and less often, although no other path is
 * up: clients that come again each second push each other out, for ever. */
SIM_TEST(backs_off_from_a_busy_server)
{
	struct srv *srv;
	unsigned n;

	w = world_serve(NULL);
	srv = world_server_srv(w);
	srv->nhalf_open += SRV_MAX_HALF_OPEN;
	c = world_client_start(w, CLIENT(.io_timeout_ms = 600000));
	world_run_ms(w, 120000);
	n = world_client_clt(c)->sess.paths[0]->failed;
	CHECK(n >= 20 && n <= 40);
	srv->nhalf_open -= SRV_MAX_HALF_OPEN;
	/* As if this had been another address of the same round. */
	world_client_clt(c)->sess.paths[0]->round = CLT_BUSY;
	CHECK(sim_run_until(is_up, c, 6250) && !world_client_clt(c)->sess.paths[0]->round);
	/* The server was busy, and is not: a path that is alone is tried each second again. */
	n = flap(30000);
	CHECK(n >= 20 && world_wait_open(c, 2000) == 0);
}

/* Requests do not wait for ever for a path that nothing comes over, whatever was answered before it
 * began to be lost, and however long of what is no real come-back it is up. */
SIM_TEST(gives_no_new_time)
{
	static const uint64_t up_ms[] = { 0, 100, 1000, 3000 };

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(up_ms); i++) {
		struct world_io *io;
		uint64_t us;

		start(8000);
		for (unsigned served = 0; served < i % 2 * 10; served++)
			CHECK(world_read(c, 0, 4096, 0) == 0);
		sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, 1000);
		io = world_io_start(c, RNBD_OP_READ, 0, 4096, 0, false);
		world_run_ms(w, 10);
		us = sim_now_us();
		flap_slowly(60000, up_ms[i / 2]);
		/* What was up last may have been so for the first time in a while. */
		CHECK(io->done && io->done_us - us >= 7990000 && io->done_us - us < 20000000);
		CHECK(world_io_end(io, 0, 1) == -EIO);
		CHECK(lines("requests fail until it is back"));
	}
}

/* Those that have failed wait no more; who comes when the path was there once more, and is lost
 * again, has all the time. */
SIM_TEST(gives_new_time_to_new_requests)
{
	struct world_io *io;

	start(8000);
	sim_cut("clt", "srv");
	world_run_ms(w, 1);
	CHECK(sim_run_until(is_up, c, 1000));
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	io = world_io_start(c, RNBD_OP_READ, 0, 4096, 0, false);
	CHECK(world_io_end(io, 0, 60000) == -EIO);
	CHECK(world_read(c, 0, 4096, 0) == -EIO);
	sim_heal("clt", "srv");
	CHECK(sim_run_until(is_up, c, 60000));
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	io = world_io_start(c, RNBD_OP_READ, 0, 4096, 0, false);
	world_run_ms(w, 7900);
	CHECK(!io->done);
	CHECK(world_io_end(io, 0, 200) == -EIO);
	sim_heal("clt", "srv");
	CHECK(sim_run_until(is_up, c, 60000));
}

/* But they do for one that answers, whenever it is there. */
SIM_TEST(gives_time_for_answers)
{
	uint64_t end_us;

	start(8000);
	end_us = sim_now_us() + 30000000;
	while (sim_now_us() < end_us) {
		CHECK(sim_run_until(is_up, c, 10000));
		CHECK(world_read(c, 0, 4096, 0) == 0);
		sim_cut("clt", "srv");
		CHECK(world_read(c, 4096, 4096, 0) == 0);
		CHECK(is_up(c));
	}
	CHECK(!lines("requests fail until it is back"));
}

static void cut_now(void *arg)
{
	sim_cut("clt", "srv");
}

/* The probe at start has one attempt: what is cut at step @k is lost, and who opens a device hears
 * of it, even when requests wait for ever.  Returns false when it was open before. */
static bool probe_with_cut(unsigned k)
{
	bool in_time;

	w = world_create(1);
	sim_shuffle(true);
	world_server_start(w, NULL);
	sim_at_step(k, cut_now, NULL);
	c = world_client_start(w, CLIENT(.io_timeout_ms = CLOCK_NEVER, .once = true));
	CHECK(world_wait_open(c, 1000) <= 0);
	in_time = sim_steps() >= k;
	sim_at_step(0, NULL, NULL);
	return in_time;
}

SIM_TEST(probe_is_cut_at_each_step)
{
	unsigned k = 1;

	while (probe_with_cut(k))
		k++;
	CHECK(k > 60);
}

/* ---- a server that is silent ---- */

static bool asks_info(void *arg)
{
	return clt_path_state(world_client_clt(arg)->sess.paths[0]) == CLT_PATH_INFO;
}

/* The answer to INFO_REQ comes so long after the attempt has begun. */
static bool waits_for_info(uint64_t ms)
{
	uint64_t began_us;
	bool failed;

	w = world_serve(NULL);
	began_us = sim_now_us();
	c = world_client_start(w, CLIENT(.io_timeout_ms = CLOCK_NEVER));
	CHECK(sim_run_until(asks_info, c, 1000));
	sim_drop("clt", "srv");
	world_run_ms(w, ms - (sim_now_us() - began_us) / 1000);
	sim_heal("clt", "srv");
	world_run_ms(w, 10);
	failed = world_traced(w, "no answer within 30 s");
	CHECK(failed || is_up(c));
	CHECK(world_wait_open(c, 60000) == 0);
	CHECK(world_write(c, 0, 4096, 0x5a) == 0 && world_read(c, 0, 4096, 0x5a) == 0);
	world_destroy(w);
	return !failed;
}

/* RTRS_CONNECT_TIMEOUT_MS */
SIM_TEST(set_up_has_a_time)
{
	CHECK(waits_for_info(RTRS_CONNECT_TIMEOUT_MS - 10));
	CHECK(!waits_for_info(RTRS_CONNECT_TIMEOUT_MS + 10));
	CHECK(!waits_for_info(4 * RTRS_CONNECT_TIMEOUT_MS));
}

static void thaw(struct sim_event *ev)
{
	sim_thaw("srv");
}

/* How long the client's end takes while the server says nothing for @ms. */
static uint64_t end_in_silence(uint64_t ms)
{
	struct sim_event ev;
	uint64_t us, took_us;

	start(60000);
	CHECK(world_write(c, 0, 4096, 0x5a) == 0);
	sim_freeze("srv");
	sim_event_init(&ev, thaw);
	us = sim_now_us();
	sim_event_at(&ev, us + ms * 1000);
	world_client_stop(w, c);
	took_us = sim_now_us() - us;
	/* The server is not left with a writer. */
	world_run_ms(w, ms);
	c = world_client_opens(w, NULL);
	CHECK(world_read(c, 0, 4096, 0x5a) == 0);
	world_destroy(w);
	return took_us / 1000;
}

#define CLOSE_MS 5000u			/* as client.c has it */

SIM_TEST(end_has_a_time)
{
	uint64_t ms = end_in_silence(CLOSE_MS - 20);

	CHECK(ms >= CLOSE_MS - 20 && ms < CLOSE_MS - 10);
	ms = end_in_silence(CLOSE_MS + 20);
	CHECK(ms >= CLOSE_MS - 1 && ms < CLOSE_MS + 10);
	ms = end_in_silence(4 * CLOSE_MS);
	CHECK(ms >= CLOSE_MS - 1 && ms < CLOSE_MS + 10);
}
