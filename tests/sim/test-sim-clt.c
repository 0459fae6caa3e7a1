/* SPDX-License-Identifier: BSD-3-Clause */
/* Client and server together, and what happens between them when things go wrong: in traces. */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "dev-req.h"
#include "process.h"
#include "world.h"

static struct world *w;
static struct world_client *c;

static bool is_done(void *arg)
{
	return ((struct world_io *)arg)->done;
}

/* A server and a client with its device open; the trace begins after that. */
static void start_as(enum clt_registration registration)
{
	w = world_serve(NULL);
	c = world_client_opens(w, CLIENT(.registration = registration));
	world_run_ms(w, 20);
	world_forget(w);
}

static void start(void)
{
	start_as(CLT_REG_AUTO);
}

/* For tests that know what happens to the millisecond, and in which order.  How long a request is
 * on its way is chance; windows are requests more. */
static void start_exact(void)
{
	start_as(CLT_REG_STATIC);
}

static char expected[8192];

static void add_line(unsigned ms, const char *what, const char *who, const char *tail)
{
	size_t n = strlen(expected);

	snprintf(expected + n, sizeof(expected) - n, "[%3u.%03u] %s%s%s\n", ms / 1000, ms % 1000,
		 what, who, tail);
}

/* The trace is @before, then the path comes up from the moment @ms on, then @after.  @who: the
 * path's name before the server knows its session; @device: what becomes of the client's device, or
 * NULL: it has none yet. */
static void expect_up(const char *before, unsigned ms, const char *who, const char *device,
		      const char *after)
{
	snprintf(expected, sizeof(expected), "%s", before);
	add_line(ms, "clt path srv: path: all up: connecting -> info", "", "");
	add_line(ms + 1, "srv ", who, ": handshake: req: awaited -> seen");
	add_line(ms + 1, "srv ", who, ": handshake: free: seen -> named");
	add_line(ms + 1, "srv sess/clt@srv: path: info: connecting -> connected", "", "");
	add_line(ms + 1, "srv sess/clt@srv: path up, 3 connections, session sess", "", "");
	add_line(ms + 1, "srv sess: session opened by sess/clt@srv", "", "");
	add_line(ms + 2, "clt path srv: path: INFO_RSP: info -> opening", "", "");
	add_line(ms + 2, "clt sess: handshake: start: idle -> admitted", "", "");
	add_line(ms + 2, "clt sess: handshake: begin: admitted -> greets", "", "");
	add_line(ms + 4, "clt sess: handshake: answer: greets -> met", "", "");
	add_line(ms + 4, "clt sess: handshake: probe: met -> probes", "", "");
	add_line(ms + 6, "clt sess: handshake: answer: probes -> met", "", "");
	add_line(ms + 6, "clt sess: handshake: probe back: met -> probed", "", "");
	ms += 8;
	add_line(ms, "clt sess: handshake: answer: probed -> met", "", "");
	if (device) {
		add_line(ms, "clt sess: handshake: device: met -> opens", "", "");
		add_line(ms + 1, "srv sess: device 0 ", device, ": disk0, rw");
		add_line(ms + 2, "clt sess: handshake: answer: opens -> met", "", "");
		add_line(ms + 2, "clt sess: handshake: unsure: met -> asks", "", "");
		ms += 4;
		add_line(ms, "clt sess: handshake: answer: asks -> met", "", "");
	}
	add_line(ms, "clt sess: handshake: ready: met -> idle", "", "");
	add_line(ms, "clt path srv: path: opened: opening -> up", "", "");
	snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s", after);
	world_expect(w, expected);
}

/* Lines of a path that come together: an attempt that fails, a path that was @was and is lost
 * because of @why, the next attempt. */
#define CLT_LINE(at, what) "[" at "] clt path srv: " what "\n"
#define CLT_FAILS(at) \
	CLT_LINE(at, "path: fail: connecting -> failing") \
	CLT_LINE(at, "path: lost: failing -> draining") \
	CLT_LINE(at, "path: drained: draining -> back-off")
#define CLT_LOST(at, was, why) \
	CLT_LINE(at, "path: fail: " was " -> failing") \
	CLT_LINE(at, "lost: " why "; reconnecting") \
	"[" at "] clt sess: session: path down: up -> down\n" \
	CLT_LINE(at, "path: lost: failing -> draining")
#define CLT_RETRIES(at) \
	CLT_LINE(at, "path: lost: failing -> draining") \
	CLT_LINE(at, "path: drained: draining -> back-off") \
	CLT_LINE(at, "path: retry: back-off -> connecting")

SIM_TEST(p11_connect)
{
	w = world_serve(NULL);
	c = world_client_opens(w, NULL);
	CHECK(world_write(c, 4096, 8192, 0x11) == 0);
	CHECK(world_read(c, 4096, 8192, 0x11) == 0);
	CHECK(world_flush(c) == 0);
	world_client_stop(w, c);
	world_run_ms(w, 10);
	expect_up("[  0.000] clt path srv: path: start: idle -> connecting\n"
		  "[  0.000] clt disk0: device: wanted: new -> opening\n",
		  6, "clt@srv", NULL,
		  "[  0.014] clt path srv: connected: 2 connections, queue depth 16, max IO "
		  "65536\n"
		  "[  0.014] clt sess: session: path up: new -> up\n"
		  "[  0.015] srv sess: device 0 opened: disk0, rw\n"
		  "[  0.016] clt disk0: device: opened: opening -> open\n"
		  "[  0.022] clt disk0: device: dropped: open -> closing\n"
		  "[  0.023] srv sess: device 0 closed: disk0\n"
		  "[  0.024] clt disk0: device: closed: closing -> gone\n"
		  "[  0.024] clt sess: session: close: up -> closing\n"
		  "[  0.024] clt path srv: path: close: up -> closing\n"
		  "[  0.024] clt path srv: path: drained: closing -> closed\n"
		  "[  0.024] clt sess: session: path closed: closing -> closed\n"
		  SRV_LOST("  0.025", "sess/clt@srv", "connection 0: disconnected")
		  "[  0.025] srv sess/clt@srv: path: quiet: lingering -> gone\n");
}

SIM_TEST(nobody_listens)
{
	w = world_create(1);
	c = world_client_start(w, NULL);
	world_run_ms(w, 50);
	CHECK(world_client_opened(c) == 1);
	world_server_start(w, NULL);
	CHECK(world_wait_open(c, 1000) == 0);
	expect_up("[  0.000] clt path srv: path: start: idle -> connecting\n"
		  "[  0.000] clt disk0: device: wanted: new -> opening\n"
		  "[  0.002] clt path srv: path: fail: connecting -> failing\n"
		  "[  0.002] clt path srv: cannot connect: connection refused (no "
		  "rtrs-server listens there, or a firewall rejects it; port 1234 is the "
		  "default); trying again\n"
		  "[  0.002] clt sess: session: path down: new -> down\n"
		  CLT_RETRIES("  0.002")
		  CLT_FAILS("  0.004")
		  "[  0.089] clt path srv: path: retry: back-off -> connecting\n",
		  95, "clt@srv", NULL,
		  "[  0.103] clt path srv: connected: 2 connections, queue depth 16, max IO "
		  "65536\n"
		  "[  0.103] clt sess: session: path up: down -> up\n"
		  "[  0.104] srv sess: device 0 opened: disk0, rw\n"
		  "[  0.105] clt disk0: device: opened: opening -> open\n");
}

/* As when nbdkit has changed its user since the probe, or descriptors are short for a while: no
 * end, but an attempt that failed. */
SIM_TEST(no_connection_manager)
{
	w = world_serve(NULL);
	sim_refuse_cm(2, -EACCES);
	c = world_client_opens(w, NULL);
	CHECK(world_traced(w,
			   "cannot connect: cannot create a connection manager: Permission denied; "
			   "trying again"));
	CHECK(world_write(c, 0, 512, 1) == 0);
	world_client_stop(w, c);

	/* The probe has one attempt, and is told. */
	sim_refuse_cm(1, -ENODEV);
	c = world_client_start(w, CLIENT(.once = true));
	CHECK(world_wait_open(c, 1000) < 0);
	CHECK(world_client_clt(c)->result == -ENODEV);
	CHECK(!strcmp(world_client_clt(c)->cause, "this machine has no RDMA device"));
}

SIM_TEST(no_such_device)
{
	w = world_serve(NULL);
	c = world_client_start(w, CLIENT(.device = "nodisk"));
	CHECK(world_wait_open(c, 1000) == -ENOENT);
	expect_up("[  0.000] clt path srv: path: start: idle -> connecting\n"
		  "[  0.000] clt nodisk: device: wanted: new -> opening\n",
		  6, "clt@srv", NULL,
		  "[  0.014] clt path srv: connected: 2 connections, queue depth 16, max IO "
		  "65536\n"
		  "[  0.014] clt sess: session: path up: new -> up\n"
		  "[  0.015] srv sess: open of nodisk as rw refused: No such file or "
		  "directory\n"
		  "[  0.016] clt nodisk: device: refused: opening -> gone\n");
}

SIM_TEST(name_in_use)
{
	struct world_client *c2;

	start_exact();
	c2 = world_client_start(w, CLIENT(.host = "clt2"));
	world_run_ms(w, 9);
	CHECK(world_client_opened(c2) == 1);
	world_expect(w, "[  0.036] clt2 path srv: path: start: idle -> connecting\n"
			"[  0.036] clt2 disk0: device: wanted: new -> opening\n"
			"[  0.042] clt2 path srv: path: all up: connecting -> info\n"
			"[  0.043] srv clt2@srv: handshake: req: awaited -> seen\n"
			"[  0.043] srv clt2@srv: handshake: tell: seen -> told\n"
			"[  0.043] srv clt2@srv: path not set up: session name sess of a client "
			"without a name is in use by sess/clt@srv\n"
			"[  0.044] clt2 path srv: path: fail: info -> failing\n"
			"[  0.044] clt2 path srv: cannot connect: the server refused session "
			"'sess': another client of the same identity has it (expected a different "
			"sessname for each client; the server's log names the other one); trying "
			"again\n"
			"[  0.044] clt2 sess: session: path down: new -> down\n"
			"[  0.044] clt2 path srv: path: lost: failing -> draining\n"
			"[  0.044] clt2 path srv: path: drained: draining -> back-off\n"
			"[  0.044] clt2 path srv: path: retry: back-off -> connecting\n");
	/* It goes on trying. */
	world_client_stop(w, c);
	CHECK(world_wait_open(c2, 3000) == 0);
}

SIM_TEST(silent_peer)
{
	start_exact();
	sim_drop("clt", "srv");
	world_run_ms(w, 60000);
	sim_heal("clt", "srv");
	world_run_ms(w, 3000);
	CHECK(world_write(c, 0, 512, 1) == 0);
	expect_up("[ 10.008] clt path srv: path: silence: up -> silent\n"
		  SRV_GONE(" 35.007", "sess/clt@srv", "heartbeat missed 5 times")
		  CLT_LOST(" 35.008", "silent", "no sign of life for 30 s")
		  "[ 35.008] clt path srv: path: drained: draining -> back-off\n"
		  "[ 35.008] clt path srv: path: retry: back-off -> connecting\n"
		  "[ 55.008] clt path srv: path: fail: connecting -> failing\n"
		  "[ 55.008] clt path srv: cannot connect: no answer to the connect request "
		  "in 20000 ms; trying again\n"
		  "[ 55.008] clt path srv: path: lost: failing -> draining\n"
		  "[ 55.008] clt path srv: path: drained: draining -> back-off\n"
		  "[ 55.101] clt path srv: path: retry: back-off -> connecting\n"
		  SRV_NOT_UP(" 60.036", "clt@srv", "its client has restarted"),
		  60041, "clt@srv", "opened",
		  "[ 60.053] clt path srv: connected again after 25045 ms\n"
		  "[ 60.053] clt sess: session: path up: down -> up\n");
}

/* Who is told to end while its server stands still: when the first heartbeat has been without
 * answer for an interval the path is lost and requests fail.  Nobody else gives it up before the
 * last one. */
SIM_TEST(no_patience_with_a_silent_peer)
{
	struct world_io *io;

	for (unsigned told_s = 1; told_s < 16; told_s += 5) {
		start_exact();
		sim_drop("clt", "srv");
		io = world_io_start(c, RNBD_OP_WRITE, 0, 512, 1, false);
		world_run_ms(w, told_s * 1000);
		CHECK(!io->done && world_client_clt(c)->away == (told_s > 10));
		client_lose_patience(world_client_clt(c));
		world_run_ms(w, 9500 - MIN(told_s * 1000, 9500u));
		CHECK(!io->done || told_s > 10);
		CHECK(world_io_end(io, 0, 600) == -EIO);
		CHECK(world_traced(w,
				   "lost: no sign of life for 5 s, "
				   "and no request waits any longer"));
	}
}

/* Storage that holds a request, of a server that lives: who may be told to end listens after two
 * heartbeats, and no longer when requests end again.  Who is told has an error within the bound. */
SIM_TEST(no_patience_with_held_storage)
{
	struct client *clt;
	struct world_io *io;

	start_exact();
	clt = world_client_clt(c);
	for (unsigned told = 0; told < 2; told++) {
		sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
		io = world_io_start(c, RNBD_OP_WRITE, 0, 512, 1, false);
		world_run_ms(w, 4000);
		CHECK(!io->done && !clt->away);
		world_run_ms(w, 6000);
		CHECK(!io->done && clt->away);
		if (told)
			break;
		sim_disk_release(world_disk(w));
		CHECK(world_io_end(io, 0, 100) == 0);
		world_run_ms(w, 5000);
		CHECK(!clt->away);
	}
	client_lose_patience(clt);
	world_run_ms(w, END_WAITS_MS - 1000);
	CHECK(!io->done);
	CHECK(world_io_end(io, 0, 2000) == -EIO);
	CHECK(world_traced(w, "lost: requests are still in flight at the end"));
	sim_disk_release(world_disk(w));
}

/* A large request is held, too, while its parts end one by one. */
SIM_TEST(large_request_is_held)
{
	struct world_io *io;

	start_exact();
	sim_disk_delay(world_disk(w), 4000000, 0);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 1 << 20, 1, false);
	world_run_ms(w, 11000);
	CHECK(!io->done && world_client_clt(c)->away);
	CHECK(world_io_end(io, 0, 60000) == 0);
}

/* A client that is busy listens for nothing, however many of its requests are always in flight. */
SIM_TEST(busy_is_not_held)
{
	struct world_io *io[2];

	start_exact();
	sim_disk_delay(world_disk(w), 3000000, 0);
	io[0] = world_io_start(c, RNBD_OP_WRITE, 0, 512, 1, false);
	for (unsigned i = 1; i < 20; i++) {
		world_run_ms(w, 1500);
		io[i % 2] = world_io_start(c, RNBD_OP_WRITE, i * 512, 512, 1, false);
		CHECK(world_io_end(io[!(i % 2)], 0, 2000) == 0);
		CHECK(!world_client_clt(c)->away);
	}
	CHECK(world_io_end(io[1], 0, 5000) == 0);
}

/* It is not lost for who is patient, and not for who is told to end when it has been heard again,
 * before or after the tick that finds this out. */
SIM_TEST(silence_ends)
{
	for (unsigned told_ms = 100; told_ms < 8000; told_ms += 5900) {
		start_exact();
		sim_drop("clt", "srv");
		world_run_ms(w, 20000);
		CHECK(world_client_clt(c)->away);
		sim_heal("clt", "srv");
		world_run_ms(w, told_ms);
		CHECK(world_client_clt(c)->away == (told_ms < 5000));
		client_lose_patience(world_client_clt(c));
		world_run_ms(w, 60000);
		CHECK(!world_client_clt(c)->away);
		CHECK(world_write(c, 0, 512, 1) == 0);
		world_expect(w, "[ 10.008] clt path srv: path: silence: up -> silent\n"
				"[ 25.008] clt path srv: path: answer: silent -> up\n");
	}
}

/* Both ends hear something every second: nobody is taken for dead. */
SIM_TEST(busy_path_lives)
{
	start_exact();
	for (unsigned i = 0; i < 100; i++) {
		CHECK(world_write(c, 512 * i, 512, 3) == 0);
		world_run_ms(w, 1000);
	}
	world_expect(w, "");
}

/* So do heartbeats on an idle one, and for a day neither end takes more memory. */
SIM_TEST(idle_day)
{
	size_t before;

	start_exact();
	world_run_ms(w, 600000);
	before = mallinfo2().uordblks;
	world_run_ms(w, 24 * 3600 * 1000);
	CHECK(mallinfo2().uordblks <= before);
	CHECK(world_read(c, 0, 512, 0) == 0);
	world_expect(w, "");
}

/* A machine that stops for a while is not lost as long as it is back within 30 s. */
SIM_TEST(short_freeze)
{
	start_exact();
	sim_freeze("srv");
	world_run_ms(w, 25000);
	sim_thaw("srv");
	CHECK(world_write(c, 0, 512, 1) == 0);
	world_expect(w, "[ 10.008] clt path srv: path: silence: up -> silent\n");
}

/* ---- the connection breaks ---- */

SIM_TEST(cut)
{
	start_exact();
	sim_cut("clt", "srv");
	world_note(w, "cut");
	CHECK(world_write(c, 0, 512, 1) == 0);
	world_run_ms(w, 10);
	expect_up("[  0.036] --- cut\n"
		  "[  0.036] srv sess/clt@srv: path down: connection 0: disconnected\n"
		  "[  0.036] srv sess/clt@srv: path: fail: connected -> draining\n"
		  CLT_LOST("  0.036", "up", "connection 0 was closed by the server")
		  "[  0.036] srv sess/clt@srv: path: drained: draining -> lingering\n"
		  "[  0.036] srv sess: session closed\n"
		  "[  0.036] srv sess: device 0 closed: disk0\n"
		  "[  0.036] srv sess/clt@srv: path: quiet: lingering -> gone\n"
		  "[  0.036] clt path srv: path: drained: draining -> back-off\n"
		  "[  0.036] clt path srv: path: retry: back-off -> connecting\n",
		  42, "clt@srv", "opened",
		  "[  0.054] clt path srv: connected again after 18 ms\n"
		  "[  0.054] clt sess: session: path up: down -> up\n");
}

/* The server takes the old path for alive when the client is back (doc/decisions.md D14). */
SIM_TEST(p26_come_back_to_a_stale_path)
{
	start_exact();
	sim_cut_seen_by("clt", "srv");
	world_note(w, "cut, seen by clt");
	CHECK(world_write(c, 0, 512, 1) == 0);
	world_run_ms(w, 10);
	expect_up("[  0.036] --- cut, seen by clt\n"
		  CLT_LOST("  0.036", "up", "connection 0 was closed by the server")
		  "[  0.036] clt path srv: path: drained: draining -> back-off\n"
		  "[  0.036] clt path srv: path: retry: back-off -> connecting\n"
		  SRV_GONE("  0.037", "sess/clt@srv", "its client has reconnected"),
		  42, "sess/clt@srv", "opened",
		  "[  0.054] clt path srv: connected again after 18 ms\n"
		  "[  0.054] clt sess: session: path up: down -> up\n");
}

/* Storage that is slow with the old path's requests keeps nobody out. */
SIM_TEST(come_back_while_storage_is_busy)
{
	struct world_io *io;

	start_exact();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x21, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	sim_cut("clt", "srv");
	world_note(w, "cut");
	world_run_ms(w, 100);
	CHECK(!io->done);
	CHECK(world_write(c, 8192, 4096, 0x22) == 0);
	sim_disk_release(world_disk(w));
	world_note(w, "storage goes on");
	CHECK(world_io_end(io, 0, 1000) == 0);
	CHECK(world_read(c, 0, 4096, 0x21) == 0);
	expect_up("[  0.046] --- cut\n"
		  "[  0.046] srv sess/clt@srv: path down: connection 0: disconnected\n"
		  "[  0.046] srv sess/clt@srv: path: fail: connected -> draining\n"
		  CLT_LOST("  0.046", "up", "connection 0 was closed by the server")
		  "[  0.046] clt path srv: path: drained: draining -> back-off\n"
		  "[  0.046] clt path srv: path: retry: back-off -> connecting\n"
		  "[  0.046] srv sess/clt@srv: path: drained: draining -> lingering\n"
		  "[  0.046] srv sess: session closed\n",
		  52, "sess/clt@srv", "taken up again",
		  "[  0.064] clt path srv: connected again after 18 ms\n"
		  "[  0.064] clt sess: session: path up: down -> up\n"
		  "[  0.148] --- storage goes on\n"
		  "[  0.148] srv sess/clt@srv: path: quiet: lingering -> gone\n");
}

/* ---- every moment of a connect ---- */

enum who { BOTH, CLT, SRV };

static void cut_now(void *arg)
{
	enum who who = *(enum who *)arg;

	if (who == BOTH)
		sim_cut("clt", "srv");
	else
		sim_cut_seen_by(who == CLT ? "clt" : "srv", who == CLT ? "srv" : "clt");
}

/* Cut at step @k.  Returns false when the client was up before it. */
static bool connect_with_cut(enum who who, unsigned k)
{
	bool in_time;

	w = world_create(1);
	sim_shuffle(true);
	world_server_start(w, NULL);
	sim_at_step(k, cut_now, &who);
	c = world_client_start(w, NULL);
	/* A client that is not told can only wait for an answer until its patience ends. */
	CHECK(world_wait_open(c, who == SRV ? 32000 : 1000) == 0);
	in_time = sim_steps() >= k;
	sim_at_step(0, NULL, NULL);
	CHECK(world_write(c, 0, 512, 1) == 0);
	CHECK(world_read(c, 0, 512, 1) == 0);
	return in_time;
}

static void cut_at_each_step(enum who who)
{
	unsigned k = 1;

	while (connect_with_cut(who, k))
		k++;
	CHECK(k > 60);
}

SIM_TEST(cut_at_each_step_of_connect) { cut_at_each_step(BOTH); }
SIM_TEST(client_loses_each_step_of_connect) { cut_at_each_step(CLT); }
SIM_TEST(server_loses_each_step_of_connect) { cut_at_each_step(SRV); }

/* The same for a write of several parts, message by message; it is done exactly as asked. */
SIM_TEST(cut_at_each_message_of_a_write)
{
	for (unsigned k = 1;; k++) {
		struct world_io *io;
		unsigned before;

		start();
		io = world_io_start(c, RNBD_OP_WRITE, 512, 150000 / 512 * 512, 0x5A, false);
		before = sim_messages("clt", "srv");
		sim_cut_at_message("clt", "srv", k);
		CHECK(world_io_end(io, 0, 3000) == 0);
		before = sim_messages("clt", "srv") - before;
		sim_cut_at_message("clt", "srv", 0);
		CHECK(world_read(c, 512, 150000 / 512 * 512, 0x5A) == 0);
		CHECK(world_read(c, 0, 512, 0) == 0);
		world_destroy(w);
		if (before < k)
			break;
	}
}

SIM_TEST(duplicate_connect)
{
	w = world_serve(NULL);
	sim_duplicate_connect("clt", "srv");
	c = world_client_opens(w, NULL);
	expect_up("[  0.000] clt path srv: path: start: idle -> connecting\n"
		  "[  0.000] clt disk0: device: wanted: new -> opening\n"
		  "[  0.001] srv clt: connection refused: connection number is taken "
		  "(Connection reset by peer)\n"
		  "[  0.002] clt path srv: path: fail: connecting -> failing\n"
		  "[  0.002] clt path srv: cannot connect: connection 0 was refused: "
		  "Connection reset by peer (does its --allow contain this address? its log "
		  "says why); trying again\n"
		  "[  0.002] clt sess: session: path down: new -> down\n"
		  CLT_RETRIES("  0.002")
		  SRV_NOT_UP("  0.003", "clt@srv", "connection 0: disconnected"),
		  8, "clt@srv", NULL,
		  "[  0.016] clt path srv: connected: 2 connections, queue depth 16, max IO "
		  "65536\n"
		  "[  0.016] clt sess: session: path up: down -> up\n"
		  "[  0.017] srv sess: device 0 opened: disk0, rw\n"
		  "[  0.018] clt disk0: device: opened: opening -> open\n");
}

/* ---- the fence (doc/decisions.md D6) ---- */

/* A write is held in the storage and its path dies.  When its copy on the next path is answered, a
 * later write goes to the same place.  The first copy must not come last. */
static void fence(enum sim_hold hold, unsigned cuts)
{
	struct sim_disk *d;
	struct world_io *io;

	start();
	d = world_disk(w);
	sim_disk_hold(d, RNBD_OP_WRITE, hold, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0xAA, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(d) == 1);
	while (cuts--) {
		sim_cut("clt", "srv");
		world_run_ms(w, 300);
	}
	/* Without a fence it is answered by now; when what is held has reached the medium nothing
	 * else shows. */
	CHECK(!io->done || hold == SIM_HOLD_BEFORE);
	if (!io->done)
		sim_disk_release(d);
	CHECK(world_io_end(io, 0, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 0xBB) == 0);
	sim_disk_release(d);
	world_run_ms(w, 1000);
	CHECK(world_read(c, 0, 4096, 0xBB) == 0);
}

SIM_TEST(fence_before_the_medium) { fence(SIM_HOLD_BEFORE, 1); }
SIM_TEST(fence_after_the_medium) { fence(SIM_HOLD_AFTER, 1); }
SIM_TEST(fence_over_three_lives) { fence(SIM_HOLD_BEFORE, 3); }

/* ---- time-outs, restarts ---- */

SIM_TEST(p15_io_timeout)
{
	struct world_io *io;
	uint64_t lost_us;

	w = world_serve(NULL);
	c = world_client_opens(w, CLIENT(.io_timeout_ms = 5000));
	world_run_ms(w, 20);
	world_server_kill(w, SIM_KILL_PROCESS);
	lost_us = sim_now_us();
	io = world_io_start(c, RNBD_OP_WRITE, 0, 512, 1, false);
	CHECK(sim_run_until(is_done, io, 4900) == false);
	CHECK(world_io_end(io, 0, 300) == -EIO);
	CHECK(sim_now_us() - lost_us >= 5000 * 1000);
	/* From now on at once. */
	lost_us = sim_now_us();
	CHECK(world_write(c, 0, 512, 1) == -EIO);
	CHECK(sim_now_us() - lost_us < 1000);
	world_server_start(w, NULL);
	world_run_ms(w, 5000);
	CHECK(world_write(c, 0, 512, 1) == 0);
}

SIM_TEST(server_restarts)
{
	struct world_io *io;

	start_exact();
	io = world_io_start(c, RNBD_OP_WRITE, 0, 65536 * 4, 0x31, false);
	sim_run_ms(2);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_run_ms(w, 200);
	world_server_start(w, NULL);
	world_note(w, "srv started");
	CHECK(world_io_end(io, 0, 5000) == 0);
	CHECK(world_read(c, 0, 65536 * 4, 0x31) == 0);
	world_run_ms(w, 10);
	expect_up("[  0.038] --- srv killed\n"
		  CLT_LOST("  0.039", "up", "connection 0 was closed by the server")
		  "[  0.039] clt path srv: path: drained: draining -> back-off\n"
		  "[  0.039] clt path srv: path: retry: back-off -> connecting\n"
		  "[  0.041] clt path srv: path: fail: connecting -> failing\n"
		  "[  0.041] clt path srv: cannot connect: connection refused (no "
		  "rtrs-server listens there, or a firewall rejects it; port 1234 is the "
		  "default); trying again\n"
		  "[  0.041] clt path srv: path: lost: failing -> draining\n"
		  "[  0.041] clt path srv: path: drained: draining -> back-off\n"
		  "[  0.118] clt path srv: path: retry: back-off -> connecting\n"
		  CLT_FAILS("  0.120")
		  "[  0.238] --- srv started\n"
		  "[  0.355] clt path srv: path: retry: back-off -> connecting\n",
		  361, "clt@srv", "opened",
		  "[  0.373] clt path srv: connected again after 334 ms\n"
		  "[  0.373] clt sess: session: path up: down -> up\n");
}

static void restart_with_depth(uint32_t depth)
{
	struct world_io *io[24];

	start();
	for (unsigned i = 0; i < 10; i++)	/* receives that are not posted again yet */
		CHECK(world_write(c, 0, 512, 1) == 0);
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 100);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 15);	/* one permit is for user messages */
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_server_start(w, SERVER(.queue_depth = depth));
	/* In flight under a permit that is no more: those begin anew. */
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 5000));
	world_ios_start(c, RNBD_OP_WRITE, io, ARRAY_SIZE(io), 1);
	CHECK(world_ios_end(io, ARRAY_SIZE(io), 0, 0, 5000));
	CHECK(world_blocks_are(c, ARRAY_SIZE(io), 1));
	CHECK(!world_traced(w, "no receive is posted"));
}

SIM_TEST(p05_restart_with_less_depth) { restart_with_depth(5); }
SIM_TEST(p05_restart_with_more_depth) { restart_with_depth(64); }

SIM_TEST(server_stops_in_good_order)
{
	struct world_io *io;

	start_exact();
	sim_disk_delay(world_disk(w), 50000, 0);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x44, false);
	world_run_ms(w, 10);
	world_server_stop(w);
	/* What it had taken was finished and answered. */
	CHECK(io->done && world_io_end(io, 0, 1) == 0);
	world_expect(w, SRV_GONE("  0.089", "sess/clt@srv", "server is shutting down"));
}

static bool enough;

static void write_on_and_on(void *arg)
{
	static const uint8_t buf[4096] = { 1 };

	while (!enough)
		CHECK(dev_call_write(arg, buf, sizeof(buf), 0, false) == 0);
}

static bool fiber_done(void *arg)
{
	return sim_fiber_done(arg);
}

/* Nor does a client that always has another request keep it from its end. */
SIM_TEST(server_stops_under_load)
{
	struct sim_fiber *f[4];
	uint64_t us;

	start();
	enough = false;
	sim_disk_delay(world_disk(w), 20000, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		f[i] = world_client_fiber(c, write_on_and_on, world_client_handle(c));
		world_run_ms(w, 7);
	}
	us = sim_now_us();
	world_server_stop(w);
	CHECK(sim_now_us() - us < 200000);
	enough = true;
	world_server_start(w, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		CHECK(sim_run_until(fiber_done, f[i], 10000));
		sim_fiber_free(f[i]);
	}
}

/* ---- what survives (doc/decisions.md D13) ---- */

SIM_TEST(reboot_is_told_by_the_first_flush)
{
	start();
	CHECK(world_write(c, 0, 4096, 0x51) == 0);
	world_server_kill(w, SIM_KILL_POWER);
	world_run_ms(w, 500);
	sim_power_on("srv");
	world_server_start(w, NULL);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	/* Now there is nothing that could have been lost. */
	world_server_kill(w, SIM_KILL_POWER);
	sim_power_on("srv");
	world_server_start(w, NULL);
	CHECK(world_flush(c) == 0);
}

SIM_TEST(restart_loses_nothing)
{
	start();
	CHECK(world_write(c, 0, 4096, 0x51) == 0);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, NULL);
	CHECK(world_flush(c) == 0);
	world_server_kill(w, SIM_KILL_POWER);
	sim_power_on("srv");
	world_server_start(w, NULL);
	CHECK(world_read(c, 0, 4096, 0x51) == 0);
}

static void release(struct sim_event *ev)
{
	sim_disk_release(world_disk(w));
}

/* A write of a server that was killed is still in the storage: the next server waits for it, so
 * that it does not come over what is written, and flushed, after it. */
SIM_TEST(write_of_a_dead_server)
{
	struct sim_event ev;
	struct world_io *io;

	start();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0x0a, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_event_init(&ev, release);
	sim_event_at(&ev, sim_now_us() + 7000000);
	world_server_start(w, NULL);
	CHECK(world_io_end(io, 0, 60000) == 0);
	CHECK(world_write(c, 0, 4096, 0x0b) == 0);
	CHECK(world_flush(c) == 0);
	world_run_ms(w, 10000);
	CHECK(world_read(c, 0, 4096, 0x0b) == 0);
}

/* Nobody knows how a sync ended whose server was killed, so it has failed. */
SIM_TEST(sync_of_a_dead_server)
{
	struct world_io *io;

	start();
	CHECK(world_write(c, 0, 4096, 0x51) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_FLUSH, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_FLUSH, 0, 0, 0, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_server_start(w, NULL);
	CHECK(world_io_end(io, 0, 60000) == -EIO);
	CHECK(world_flush(c) == 0);
}

/* One that has the device open beside the first. */
static struct world_client *second_client(enum rnbd_access_mode mode)
{
	struct world_client *c2;

	c2 = world_client_opens(w, CLIENT(.host = "clt2", .name = "sess2", .mode = mode));
	return c2;
}

/* It was told to somebody else. */
static void failed_sync_outlives_the_server(bool killed)
{
	struct world_client *c2;

	start();
	c2 = second_client(RNBD_ACCESS_RO);
	CHECK(world_write(c, 0, 4096, 0x61) == 0);
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c2) == -EIO);
	if (killed)
		world_server_kill(w, SIM_KILL_PROCESS);
	else
		world_server_stop(w);
	world_server_start(w, NULL);
	CHECK(world_flush(c2) == 0);	/* it has written nothing */
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	world_server_stop(w);
	world_server_start(w, NULL);
	CHECK(world_flush(c) == 0);
}

SIM_TEST(failed_sync_outlives_the_server)
{
	failed_sync_outlives_the_server(false);
	failed_sync_outlives_the_server(true);
}

/* Who only reads does not keep the error: it goes with the one who writes. */
SIM_TEST(readers_keep_no_failed_sync)
{
	struct world_client *c2;

	start();
	c2 = second_client(RNBD_ACCESS_RO);
	CHECK(world_write(c, 0, 4096, 0x61) == 0);
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == -EIO);
	world_client_stop(w, c);
	CHECK(world_flush(c2) == -EIO);
	c = world_client_opens(w, NULL);
	CHECK(world_write(c, 0, 4096, 0x62) == 0);
	CHECK(world_flush(c) == 0);
	CHECK(world_flush(c2) == 0);
}

SIM_TEST(failed_sync_is_latched)
{
	struct world_client *c2;

	start();
	c2 = second_client(RNBD_ACCESS_MIGRATION);
	CHECK(world_write(c, 0, 4096, 0x61) == 0);
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c2) == -EIO);
	CHECK(world_io_end(world_io_start(c2, RNBD_OP_WRITE, 0, 512, 1, true), 0, 1000) == -EIO);
	CHECK(world_write(c2, 0, 512, 1) == 0);
	world_client_stop(w, c);
	CHECK(world_flush(c2) == -EIO);
	world_client_stop(w, c2);
	/* Nobody has it open any more: a new life. */
	c = world_client_opens(w, NULL);
	CHECK(world_flush(c) == 0);
}

/* The error is gone when the last one who writes is.  Who came after the failure, has written
 * since, and was away then hears of a loss, too. */
SIM_TEST(failed_sync_is_told_to_who_was_away)
{
	struct world_client *c2;

	start();
	CHECK(world_write(c, 0, 4096, 0x61) == 0);
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c) == -EIO);
	c2 = second_client(RNBD_ACCESS_MIGRATION);
	CHECK(world_write(c2, 0, 512, 1) == 0);
	sim_drop("clt2", "srv");
	sim_cut("clt2", "srv");
	world_client_stop(w, c);
	sim_heal("clt2", "srv");
	CHECK(world_flush(c2) == -EIO);
	CHECK(world_flush(c2) == 0);
}

/* ---- sessions that share a device (doc/protocol.md 8.2, 8.7) ---- */

static int open_second(const char *name, enum rnbd_access_mode mode, struct world_client **c2)
{
	*c2 = world_client_start(w, CLIENT(.host = "clt2", .name = name, .mode = mode));
	return world_wait_open(*c2, 20000);
}

SIM_TEST(sharing_rules)
{
	struct world_client *c2;

	start();
	CHECK(open_second("two", RNBD_ACCESS_RW, &c2) == -EPERM);
	world_client_stop(w, c2);
	CHECK(open_second("two", RNBD_ACCESS_RO, &c2) == 0);
	CHECK(world_write(c, 0, 512, 7) == 0);
	CHECK(world_read(c2, 0, 512, 7) == 0);
	CHECK(world_write(c2, 0, 512, 8) == -EPERM);
	world_client_stop(w, c2);
	CHECK(open_second("two", RNBD_ACCESS_MIGRATION, &c2) == 0);
	CHECK(world_write(c2, 0, 512, 9) == 0);
	CHECK(world_read(c, 0, 512, 9) == 0);
}

SIM_TEST(killed_client_frees_the_device)
{
	struct world_client *c2;
	struct world_io *io;

	start();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 1, false);
	world_run_ms(w, 10);
	world_client_kill(w, c, SIM_KILL_PROCESS);
	/* Its last write is still in the storage: the device is not free before that has ended. */
	CHECK(open_second("two", RNBD_ACCESS_RW, &c2) == -EPERM);
	world_client_stop(w, c2);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
	CHECK(open_second("two", RNBD_ACCESS_RW, &c2) == 0);
	CHECK(world_write(c2, 0, 4096, 2) == 0);
	CHECK(world_io_end(io, 0, 60000) == -EIO);
	CHECK(world_read(c2, 0, 4096, 2) == 0);
}

/* Who comes while such a device is about to be free waits for it. */
SIM_TEST(open_waits_for_a_device_that_closes)
{
	struct world_client *c2;
	struct world_io *io;

	start();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 1, false);
	world_run_ms(w, 10);
	world_client_kill(w, c, SIM_KILL_PROCESS);
	world_run_ms(w, 10);
	c2 = world_client_start(w, CLIENT(.host = "clt2", .name = "two"));
	world_run_ms(w, 1000);
	CHECK(world_client_opened(c2) == 1);
	sim_disk_release(world_disk(w));
	CHECK(world_wait_open(c2, 1000) == 0);
	CHECK(world_io_end(io, 0, 60000) == -EIO);
}

/* Nobody tells the server: the device is taken until heartbeats are missed. */
SIM_TEST(client_that_lost_power)
{
	struct world_client *c2;

	start();
	world_client_kill(w, c, SIM_KILL_POWER);
	CHECK(open_second("two", RNBD_ACCESS_RW, &c2) == -EPERM);
	world_client_stop(w, c2);
	world_run_ms(w, 36000);
	CHECK(open_second("two", RNBD_ACCESS_RW, &c2) == 0);
}

static void kill_client_now(void *arg)
{
	world_client_kill(w, arg, SIM_KILL_PROCESS);
}

/* A client dies at step @k of its connect; the next one must find everything free. */
SIM_TEST(client_killed_at_each_step_of_connect)
{
	for (unsigned k = 1; k < 150; k += 2) {
		struct world_client *c2;

		w = world_create(k);
		sim_shuffle(true);
		world_server_start(w, NULL);
		c = world_client_start(w, NULL);
		sim_at_step(k, kill_client_now, c);
		world_run_ms(w, 50);
		CHECK(open_second("sess", RNBD_ACCESS_RW, &c2) == 0);
		CHECK(world_write(c2, 0, 512, 8) == 0);
	}
}

static void restart_server_now(void *arg)
{
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, NULL);
}

/* The server dies at step @k of a connect and a write and is back at once. */
SIM_TEST(server_killed_at_each_step)
{
	for (unsigned k = 1; k < 250; k += 2) {
		struct world_io *io;

		w = world_create(k);
		sim_shuffle(true);
		world_server_start(w, NULL);
		sim_at_step(k, restart_server_now, NULL);
		c = world_client_opens(w, NULL);
		io = world_io_start(c, RNBD_OP_WRITE, 0, 150000 / 512 * 512, 0x77, false);
		CHECK(world_io_end(io, 0, 2000) == 0);
		sim_at_step(0, NULL, NULL);
		CHECK(world_read(c, 0, 150000 / 512 * 512, 0x77) == 0);
	}
}

SIM_TEST(session_loss_frees_the_device)
{
	struct world_client *c2;

	start();
	world_client_stop(w, c);
	CHECK(open_second("two", RNBD_ACCESS_RW, &c2) == 0);
	CHECK(world_write(c2, 0, 512, 8) == 0);
}
