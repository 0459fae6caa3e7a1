/* SPDX-License-Identifier: BSD-3-Clause */
/* Our client against a server that revokes keys, and against one that answers wrongly (raw-srv.h):
 * what breaks the protocol costs the path, once, with one line; the requests are sent again. */
#include <errno.h>
#include <string.h>

#include "raw-srv.h"
#include "rtrs-imm.h"
#include "world.h"

static struct world *w;
static struct world_client *c;
static struct raw_srv srv;

static void open_ended(struct dev_open_req *req)
{
	req->name = NULL;
}

static bool open_answered(void *arg)
{
	return !((struct dev_open_req *)arg)->name;
}

static void start_as(const struct world_client_conf *conf, bool new_rkey)
{
	w = world_create(1);
	raw_srv_start(&srv, new_rkey);
	c = world_client_opens(w, conf);
	world_run_ms(w, 20);
	world_forget(w);
}

static void start(bool new_rkey)
{
	start_as(NULL, new_rkey);
}

static void end(void)
{
	world_client_stop(w, c);
	world_run_ms(w, 100);
	raw_srv_stop(&srv);
}

static void work(void)
{
	for (unsigned i = 0; i < 3 * PEER_SRV_DEPTH; i++)
		CHECK(world_write(c, i * 4096, 4096, (uint8_t)(i + 1)) == 0);
	/* More than fits one request, and more parts than permits. */
	CHECK(world_write(c, 0, 16 * RAW_SRV_IO, 0x77) == 0);
	CHECK(world_read(c, 0, 16 * RAW_SRV_IO, 0x77) == 0);
	CHECK(world_read(c, 20 * 8192, 4096, 0) == 0);
	CHECK(world_flush(c) == 0);
}

SIM_TEST(static_keys)
{
	start(false);
	work();
	CHECK(srv.nrevoked == 0);
	world_expect(w, "");
	end();
}

/* Each request finds its chunk under a key that the answer before has brought. */
SIM_TEST(new_rkey)
{
	start(true);
	work();
	CHECK(srv.nrevoked > 100 / 2 && srv.nrevoked >= srv.nrequests);
	world_expect(w, "");
	end();
}

SIM_TEST(new_rkey_that_is_the_old_one)
{
	start(true);
	srv.same_key = true;
	work();
	world_expect(w, "");
	end();
}

SIM_TEST(new_rkey_over_a_reconnect)
{
	struct world_io *io;

	start(true);
	for (unsigned k = 1; k < 20; k++) {
		io = world_io_start(c, RNBD_OP_WRITE, 0, 4 * RAW_SRV_IO, (uint8_t)k, false);
		sim_cut_at_message("clt", "srv", k);
		CHECK(world_io_end(io, 0, 5000) == 0);
		CHECK(world_read(c, 0, 4 * RAW_SRV_IO, (uint8_t)k) == 0);
		sim_cut_at_message("clt", "srv", 0);
		/* so that it comes back at once the next time, too */
		world_run_ms(w, 6000);
	}
	end();
}

/* A kernel's server takes nothing but the answer for a sign of life. */
SIM_TEST(heartbeats_are_answered)
{
	start(false);
	for (unsigned i = 0; i < 20; i++) {
		raw_srv_heartbeat(&srv);
		world_run_ms(w, 1000);
		CHECK(srv.peer.nhb_acks == i + 1);
	}
	world_expect(w, "");
	end();
}

/* ---- wrong answers ---- */

static void evil(bool new_rkey, enum raw_evil what, const char *line)
{
	start(new_rkey);
	srv.evil = what;
	CHECK(world_write(c, 4096, 4096, 0x42) == 0);
	world_run_ms(w, 50);
	if (!world_traced(w, line))
		world_expect(w, line);
	world_forget(w);
	CHECK(world_read(c, 4096, 4096, 0x42) == 0);
	work();
	world_expect(w, "");
	end();
}

SIM_TEST(unknown_id)
{
	evil(false, RAW_UNKNOWN_ID, "answer to request 13, which is not in flight");
}

SIM_TEST(idle_id) { evil(false, RAW_IDLE_ID, "answer to request 2, which is not in flight"); }

/* A small and a large request are in flight, on two connections: somebody looks at both. */
static void evil_among_two(bool new_rkey, enum raw_evil what, const char *line)
{
	/* Where no send completion is waited for, a permit is used again at once, and a second
	 * answer passes for that of its next request: a lie that is found out later, and does its
	 * harm. */
	bool lie = !(sim_caps() & FAB_CAP_REREG_MR) && what == RAW_TWICE;
	struct world_io *a, *b;

	if (lie)
		line = "lost: connection ";
	start(new_rkey);
	srv.evil = what;
	a = world_io_start(c, RNBD_OP_WRITE, 0, 2 * RAW_SRV_IO, 0x42, false);
	b = world_io_start(c, RNBD_OP_WRITE, 2 * RAW_SRV_IO, 14 * RAW_SRV_IO, 0x42, false);
	CHECK(world_io_end(a, 0, 1000) == 0 && world_io_end(b, 0, 1000) == 0);
	if (!world_traced(w, line))
		world_expect(w, line);
	if (!lie)
		CHECK(world_read(c, 0, 16 * RAW_SRV_IO, 0x42) == 0);
	end();
}

SIM_TEST(answered_twice) { evil_among_two(false, RAW_TWICE, "which is not in flight"); }
SIM_TEST(key_sent_twice) { evil_among_two(true, RAW_TWICE, "which is not in flight"); }

SIM_TEST(answered_on_another_connection)
{
	evil_among_two(false, RAW_OTHER_CON, "which is not in flight");
}

SIM_TEST(unknown_immediate)
{
	evil(false, RAW_UNKNOWN_IMM, "immediate 0x50000001 of unknown type");
}

SIM_TEST(plain_send) { evil(false, RAW_PLAIN_SEND, "unexpected message of 0 bytes"); }

SIM_TEST(odd_status)
{
	start(false);
	srv.evil = RAW_ODD_STATUS;
	CHECK(world_write(c, 4096, 4096, 0x42) == -511);
	work();
	world_expect(w, "");
	end();
}

SIM_TEST(key_for_another_chunk) { evil(true, RAW_KEY_WRONG_BUF, "RKEY_RSP for another chunk"); }

SIM_TEST(key_message_of_wrong_type)
{
	evil(true, RAW_KEY_WRONG_TYPE, "message type is not RKEY_RSP");
}

SIM_TEST(key_message_too_short) { evil(true, RAW_KEY_SHORT, "RKEY_RSP shorter than 8 bytes"); }

/* The request is answered, but the next one in that chunk goes out under the dead key. */
SIM_TEST(p09_key_missing)
{
	start(true);
	srv.evil = RAW_KEY_MISSING;
	CHECK(world_write(c, 4096, 4096, 0x42) == 0);
	CHECK(world_write(c, 4096, 4096, 0x43) == 0);
	world_run_ms(w, 50);
	CHECK(world_traced(w, "lost: "));
	CHECK(world_read(c, 4096, 4096, 0x43) == 0);
	end();
}

/* ---- windows: whose the invalidate is ---- */

static void start_windows(bool new_rkey)
{
	start_as(CLIENT(.registration = CLT_REG_WINDOW), new_rkey);
}

SIM_TEST(windows)
{
	for (unsigned k = 0; k < 4; k++) {
		start_windows(k & 1);
		/* Then it is done here; a window that stayed bound could not be bound again. */
		srv.no_inval = k & 2;
		work();
		work();
		world_expect(w, "");
		end();
	}
}

/* What a server does to the window of one READ; @line NULL: it may. */
static void evil_window(enum raw_evil what, const char *line)
{
	start_windows(false);
	/* With windows of type 1 the server has nothing to say in it. */
	if (srv.nasked == 0) {
		end();
		return;
	}
	CHECK(world_write(c, 4096, 4096, 0x42) == 0 && world_flush(c) == 0);
	srv.evil = what;
	CHECK(world_read(c, 4096, 4096, 0x42) == 0);
	world_run_ms(w, 50);
	if (!line || !world_traced(w, line))
		world_expect(w, line ? line : "");
	world_forget(w);
	work();
	world_expect(w, "");
	end();
}

SIM_TEST(p08_says_invalidated_and_did_not)
{
	evil_window(RAW_INVAL_LIE,
		    "answer to request 1, which says that its key was invalidated, and it was not");
}

SIM_TEST(invalidated_and_does_not_say_so) { evil_window(RAW_INVAL_SILENT, NULL); }
SIM_TEST(invalidated_twice) { evil_window(RAW_INVAL_TWICE, "lost: connection "); }

/* The key of a READ that has returned: dead, but where keys are static. */
SIM_TEST(late_write)
{
	for (unsigned k = 0; k < CLT_NREGS; k++) {
		bool lost;

		start_as(CLIENT(.registration = (enum clt_registration)k), false);
		CHECK(world_write(c, 4096, 4096, 0x42) == 0 && world_flush(c) == 0);
		CHECK(world_read(c, 4096, 4096, 0x42) == 0);
		srv.evil = RAW_LATE_WRITE;
		CHECK(world_write(c, 8192, 4096, 0x43) == 0);
		world_run_ms(w, 50);
		lost = world_client_clt(c)->sess.paths[0]->att.mode != FRWR_STATIC;
		CHECK(world_traced(w, "lost: connection 1: ") == lost);
		CHECK(world_read(c, 8192, 4096, 0x43) == 0);
		end();
	}
}

/* ---- Linux 6.1 offers no zeroes, always, and takes WRITE_ZEROES for a READ ---- */

static bool zeroes_asked_for(void)
{
	return srv.ops & 1u << RNBD_OP_WRITE_ZEROES;
}

/* Both kinds, whole blocks and parts of some. */
static void all_zeroes_are_refused(void)
{
	struct world_io *io = world_io_start(c, RNBD_OP_WRITE_ZEROES, 4096, 8192, 0, false);

	CHECK(!dev_can_zero(world_client_dev(c)) && !dev_can_nounmap(world_client_dev(c)));
	CHECK(world_io_end(io, 0, 1000) == -EOPNOTSUPP);
	io = world_io_start(c, RNBD_OP_WRITE_ZEROES, 4000, 8192, 0, true);
	CHECK(world_io_end(io, 0, 1000) == -EOPNOTSUPP);
	CHECK(world_write(c, 4096, 8192, 0) == 0);	/* as nbdkit does then */
	CHECK(!zeroes_asked_for());
}

SIM_TEST(p22_no_zeroes_where_none_are_offered)
{
	start(false);
	all_zeroes_are_refused();
	end();
}

/* The session comes back to such a server, and has asked another for zeroes. */
SIM_TEST(p22_no_zeroes_from_the_next_server)
{
	struct world_io *io, *unaligned;

	w = world_serve(NULL);
	c = world_client_opens(w, NULL);
	CHECK(dev_can_zero(world_client_dev(c)) && dev_can_nounmap(world_client_dev(c)));
	CHECK(world_write(c, 0, 16384, 0x42) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE_ZEROES, SIM_HOLD_BEFORE, 2);
	io = world_io_start(c, RNBD_OP_WRITE_ZEROES, 0, 8192, 0, false);
	unaligned = world_io_start(c, RNBD_OP_WRITE_ZEROES, 12000, 2048, 0, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 2);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	raw_srv_start(&srv, false);
	CHECK(world_io_end(io, 0, 10000) == -EOPNOTSUPP);
	CHECK(world_io_end(unaligned, 0, 10000) == -EOPNOTSUPP);
	world_run_ms(w, 1000);
	CHECK(world_flush(c) == -EIO);		/* what the server before has not flushed */
	all_zeroes_are_refused();
	end();
}

/* ---- one device under two names: a kernel's server locks up ---- */

static int open_as(const char *name)
{
	struct dev_open_req req = { .name = name, .mode = RNBD_ACCESS_RW, .done = open_ended };

	dev_open_start(world_client_clt(c), &req);
	CHECK(sim_run_until(open_answered, &req, 1000));
	if (!req.status)
		dev_close(req.dev);
	world_run_ms(w, 50);
	return req.status;
}

SIM_TEST(p37_one_device_under_two_names)
{
	static const char *const same[] = {
		"/disk0", "//disk0", "disk0/", "./disk0", "disk0/.", ".//./disk0",
	};
	static const char *const others[] = {
		"disk00", "disk", "a/disk0", ".disk0", "disk0.", "x./disk0", ".", "/", "disk0/p1",
	};

	start(false);
	CHECK(srv.nopens == 1);
	for (unsigned i = 0; i < ARRAY_SIZE(same); i++) {
		CHECK(open_as(same[i]) == -EEXIST && srv.nopens == 1);
		CHECK(world_traced(w, "already open under the name disk0"));
		world_forget(w);
	}
	CHECK(open_as("disk0") == 0 && srv.nopens == 2);	/* which asks for its size */
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		CHECK(open_as(others[i]) == 0 && srv.nopens == 3 + i);
	end();
	/* Names of our server's exports are no paths. */
	w = world_serve(NULL);
	c = world_client_opens(w, NULL);
	CHECK(open_as("/disk0") == -ENOENT);
}

/* Any errno that a server may answer an OPEN with is an answer, also one that means something else
 * in here. */
SIM_TEST(open_is_refused)
{
	for (int err = 1; err <= (int)RTRS_IMM_ERRNO_MASK; err++) {
		w = world_create(1);
		raw_srv_start(&srv, false);
		srv.no_open = -err;
		c = world_client_start(w, NULL);
		CHECK(world_wait_open(c, 1000) < 0);
		CHECK(srv.nopens == 1);
		end();
	}
}
