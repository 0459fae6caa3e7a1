/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports whose size changes while they are open (doc/decisions.md D17): who opens one next has the
 * size of now, and who has it open is not disturbed. */
#include <errno.h>
#include <string.h>

#include "dev-priv.h"
#include "raw-srv.h"
#include "world.h"

#define SMALL (WORLD_DISK_SIZE / 2)
#define LARGE (2 * WORLD_DISK_SIZE)

static struct world *w;
static struct world_client *c;
static struct raw_srv srv;

static void start(unsigned npaths)
{
	w = world_serve(NULL);
	c = world_client_opens(w, CLIENT(.npaths = npaths));
	world_run_ms(w, 50);
	world_forget(w);
}

/* ---- openers of a device that is open ---- */

struct opener {
	struct dev_open_req req;
	bool ended;
};

static void opener_done(struct dev_open_req *req)
{
	container_of(req, struct opener, req)->ended = true;
}

static bool opener_ended(void *arg)
{
	return ((struct opener *)arg)->ended;
}

static void open_begin(struct opener *o)
{
	*o = (struct opener){ .req = { .name = "disk0", .mode = RNBD_ACCESS_RW,
				       .done = opener_done } };
	dev_open_start(world_client_clt(c), &o->req);
}

/* Returns its status, without a reference. */
static int open_end(struct opener *o, uint64_t ms)
{
	CHECK(sim_run_until(opener_ended, o, ms));
	if (!o->req.status) {
		CHECK(o->req.dev == world_client_dev(c));
		dev_close(o->req.dev);
	}
	return o->req.status;
}

static int open_again(void)
{
	struct opener o;

	open_begin(&o);
	return open_end(&o, 1000);
}

static uint64_t size(void)
{
	return dev_size(world_client_dev(c));
}

/* ---- more ---- */

SIM_TEST(grows_while_it_is_open)
{
	struct world_io *before;

	start(1);
	sim_disk_resize(world_disk(w), LARGE);
	CHECK(size() == WORLD_DISK_SIZE);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	before = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 1, false);
	CHECK(open_again() == 0 && size() == LARGE);
	CHECK(world_traced(w, "export has grown: 2097152 bytes instead of 1048576"));
	CHECK(world_write(c, LARGE - 4096, 4096, 2) == 0);
	sim_disk_release(world_disk(w));
	CHECK(world_io_end(before, 1, 1000) == 0);
	CHECK(world_write(c, WORLD_DISK_SIZE - 4096, 8192, 3) == 0);
	CHECK(world_read(c, WORLD_DISK_SIZE - 4096, 8192, 3) == 0);
	CHECK(world_read(c, LARGE - 4096, 4096, 2) == 0);
	CHECK(world_read(c, LARGE, 512, 0) == -EIO);
	CHECK(!world_traced(w, "lost"));
}

/* A client that has nothing open yet, of a server that has long been started. */
SIM_TEST(grows_before_it_is_opened)
{
	w = world_serve(NULL);
	sim_disk_resize(world_disk(w), LARGE);
	c = world_client_opens(w, NULL);
	CHECK(size() == LARGE);
	CHECK(world_write(c, LARGE - 512, 512, 1) == 0);
}

/* What was asked for before somebody came is not the answer to him, on either end. */
SIM_TEST(asked_before)
{
	struct opener a, b, d;

	start(1);
	sim_disk_hold_size(world_disk(w));
	open_begin(&a);
	world_run_ms(w, 10);
	sim_disk_resize(world_disk(w), LARGE);
	open_begin(&b);
	open_begin(&d);
	world_run_ms(w, 10);
	CHECK(!a.ended && !b.ended && !d.ended);
	sim_disk_release(world_disk(w));
	CHECK(open_end(&a, 100) == 0);
	CHECK(open_end(&b, 100) == 0 && open_end(&d, 100) == 0);
	CHECK(size() == LARGE);
}

/* The same of two sessions. */
SIM_TEST(asked_before_by_another)
{
	struct world_client *c2;
	struct opener a;

	start(1);
	sim_disk_hold_size(world_disk(w));
	open_begin(&a);
	world_run_ms(w, 10);
	sim_disk_resize(world_disk(w), LARGE);
	c2 = world_client_start(w, CLIENT(.host = "clt2", .name = "two", .mode = RNBD_ACCESS_RO));
	world_run_ms(w, 50);
	CHECK(!a.ended && world_client_opened(c2) == 1);
	sim_disk_release(world_disk(w));
	CHECK(open_end(&a, 100) == 0);
	CHECK(world_wait_open(c2, 100) == 0);
	CHECK(dev_size(world_client_dev(c2)) == LARGE);
}

/* The storage does not answer: the first one waits for a time, others do not, and all go by what is
 * known. */
SIM_TEST(storage_does_not_answer)
{
	struct opener a;
	uint64_t began_us;

	start(1);
	sim_disk_resize(world_disk(w), LARGE);
	sim_disk_hold_size(world_disk(w));
	began_us = sim_now_us();
	open_begin(&a);
	CHECK(open_end(&a, 2000) == 0 && size() == WORLD_DISK_SIZE);
	CHECK(sim_now_us() - began_us >= 1000000);
	began_us = sim_now_us();
	open_begin(&a);
	CHECK(open_end(&a, 2000) == 0 && size() == WORLD_DISK_SIZE);
	CHECK(sim_now_us() - began_us < 10000);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
	CHECK(open_again() == 0 && size() == LARGE);
}

SIM_TEST(storage_refuses_to_tell)
{
	start(1);
	sim_disk_fail_size(world_disk(w), -EIO);
	CHECK(open_again() == 0 && size() == WORLD_DISK_SIZE);
	CHECK(world_traced(w, "disk0: 'disk0' does not report its size: Input/output error"));
	CHECK(world_write(c, WORLD_DISK_SIZE - 512, 512, 1) == 0);
	CHECK(world_write(c, WORLD_DISK_SIZE, 512, 1) == -EIO);
	sim_disk_fail_size(world_disk(w), 0);
	sim_disk_resize(world_disk(w), LARGE);
	CHECK(open_again() == 0 && size() == LARGE);
}

/* ---- looks that are lost ---- */

SIM_TEST(path_is_lost_meanwhile)
{
	struct opener a, b;

	start(1);
	sim_disk_hold_size(world_disk(w));
	open_begin(&a);
	world_run_ms(w, 10);
	open_begin(&b);
	sim_cut("clt", "srv");
	sim_disk_resize(world_disk(w), LARGE);
	CHECK(open_end(&a, 500) == 0 && open_end(&b, 500) == 0);
	CHECK(size() == WORLD_DISK_SIZE);
	/* The dead path is not kept by what it waits for. */
	world_run_ms(w, 100);
	CHECK(world_traced(w, "lingering -> gone"));
	sim_disk_release(world_disk(w));
	sim_heal("clt", "srv");
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(size() == LARGE);
	CHECK(world_write(c, LARGE - 512, 512, 1) == 0);
}

SIM_TEST(one_of_two_paths_is_lost_meanwhile)
{
	struct opener a;

	start(2);
	sim_disk_hold_size(world_disk(w));
	open_begin(&a);
	world_run_ms(w, 10);
	sim_disk_resize(world_disk(w), LARGE);
	sim_cut("clt", "srv");
	world_run_ms(w, 50);
	sim_disk_release(world_disk(w));
	CHECK(open_end(&a, 5000) == 0);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(open_again() == 0 && size() == LARGE);
}

/* The server is away: who opens what is open is not held up. */
SIM_TEST(server_is_away)
{
	struct opener a;

	start(1);
	world_server_kill(w, SIM_KILL_PROCESS);
	world_run_ms(w, 100);
	open_begin(&a);
	CHECK(open_end(&a, 10) == 0);
	sim_disk_resize(world_disk(w), LARGE);
	world_server_start(w, NULL);
	CHECK(world_write(c, 0, 512, 1) == 0 && size() == LARGE);
}

/* ---- less ---- */

SIM_TEST(shrinks_while_it_is_open)
{
	start(1);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	sim_disk_resize(world_disk(w), SMALL);
	CHECK(open_again() == -EMEDIUMTYPE && size() == WORLD_DISK_SIZE);
	CHECK(world_traced(w,
			   "export has shrunk: 524288 bytes instead of 1048576: "
			   "no other client can open it"));
	/* What is left goes on. */
	CHECK(world_read(c, 0, 4096, 1) == 0);
	CHECK(world_write(c, SMALL - 4096, 4096, 2) == 0);
	CHECK(world_write(c, SMALL, 4096, 2) == -EIO);
	CHECK(world_write(c, SMALL - 512, 1024, 2) == -EIO);
	CHECK(world_read(c, SMALL, 4096, 2) == -EIO);
	CHECK(world_read(c, WORLD_DISK_SIZE - 512, 512, 2) == -EIO);
	/* The log has a line for each new size, however often somebody looks. */
	world_forget(w);
	CHECK(open_again() == -EMEDIUMTYPE && !world_traced(w, "has shrunk"));
	sim_disk_resize(world_disk(w), SMALL / 2);
	CHECK(open_again() == -EMEDIUMTYPE);
	CHECK(world_traced(w, "export has shrunk: 262144 bytes"));
	CHECK(world_flush(c) == 0);
	/* As it was. */
	sim_disk_resize(world_disk(w), WORLD_DISK_SIZE);
	CHECK(open_again() == 0);
	CHECK(world_write(c, WORLD_DISK_SIZE - 512, 512, 3) == 0);
	world_forget(w);
	sim_disk_resize(world_disk(w), SMALL / 2);
	CHECK(open_again() == -EMEDIUMTYPE && world_traced(w, "has shrunk"));
}

/* Everybody has closed it: then it is as small as it is. */
SIM_TEST(shrinks_and_is_closed)
{
	struct opener a;

	start(1);
	sim_disk_hold_size(world_disk(w));
	sim_disk_resize(world_disk(w), SMALL);
	open_begin(&a);
	world_run_ms(w, 10);
	/* Who waits is the last one, and is refused. */
	dev_close(world_client_dev(c));
	world_run_ms(w, 10);
	CHECK(!world_traced(w, "device 0 closed"));
	sim_disk_release(world_disk(w));
	CHECK(open_end(&a, 100) == -EMEDIUMTYPE);
	world_run_ms(w, 10);
	CHECK(world_traced(w, "device 0 closed"));
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(size() == SMALL);
	CHECK(world_write(c, SMALL - 512, 512, 1) == 0);
	CHECK(world_write(c, SMALL, 512, 1) == -EIO);
}

/* A session that comes back is told, too, by a server that was not restarted. */
SIM_TEST(shrinks_while_the_path_is_lost)
{
	start(1);
	sim_cut("clt", "srv");
	sim_disk_resize(world_disk(w), SMALL);
	world_run_ms(w, 50);
	sim_heal("clt", "srv");
	world_run_ms(w, 5000);
	CHECK(world_traced(w,
			   "export came back with 524288 bytes instead of 1048576: "
			   "it is not used"));
	CHECK(size() == WORLD_DISK_SIZE);
	sim_disk_resize(world_disk(w), WORLD_DISK_SIZE);
	CHECK(world_write(c, 0, 4096, 1) == 0);
}

/* It had grown since it was opened first, so more was promised than then. */
SIM_TEST(shrinks_to_more_than_at_first)
{
	start(1);
	sim_disk_resize(world_disk(w), LARGE);
	CHECK(open_again() == 0 && size() == LARGE);
	sim_cut("clt", "srv");
	sim_disk_resize(world_disk(w), LARGE - SMALL);
	world_run_ms(w, 50);
	sim_heal("clt", "srv");
	world_run_ms(w, 5000);
	CHECK(world_traced(w,
			   "export came back with 1572864 bytes instead of 2097152: "
			   "it is not used"));
	CHECK(size() == LARGE);
	sim_disk_resize(world_disk(w), LARGE);
	CHECK(world_write(c, 0, 4096, 1) == 0);
}

/* ---- a kernel's server ---- */

static void raw_start(void)
{
	w = world_create(1);
	raw_srv_start(&srv, false);
	c = world_client_opens(w, NULL);
	world_run_ms(w, 20);
	world_forget(w);
}

static void raw_end(void)
{
	world_client_stop(w, c);
	world_run_ms(w, 100);
	raw_srv_stop(&srv);
}

SIM_TEST(kernel_grows)
{
	raw_start();
	srv.told_size = LARGE;
	CHECK(open_again() == 0 && size() == LARGE);
	CHECK(srv.nopens == 2 && srv.nstrays == 0);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	srv.told_size = SMALL;
	CHECK(open_again() == -EMEDIUMTYPE && size() == LARGE);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	raw_end();
}

SIM_TEST(refuses_to_tell)
{
	raw_start();
	srv.no_open = -EACCES;
	CHECK(open_again() == 0 && size() == WORLD_DISK_SIZE);
	CHECK(world_traced(w, "its size cannot be read: Permission denied"));
	world_forget(w);
	CHECK(open_again() == 0 && !world_traced(w, "its size cannot be read"));
	srv.no_open = 0;
	CHECK(open_again() == 0);
	srv.no_open = -EACCES;
	CHECK(open_again() == 0 && world_traced(w, "its size cannot be read"));
	srv.no_open = 0;
	CHECK(world_write(c, 0, 4096, 1) == 0);
	raw_end();
}

/* The server has closed the device by itself: the look has opened another one, which is closed
 * again, and nobody is told that all is well. */
SIM_TEST(server_has_closed_it)
{
	struct peer_srv_sess *sess;

	raw_start();
	sess = srv.peer.cons[0].path->sess;
	strcpy(sess->devs[0], "other");
	CHECK(open_again() == 0);
	CHECK(srv.nopens == 2 && !sess->devs[1][0]);
	CHECK(world_traced(w, "is not open on the server any more"));
	world_forget(w);
	CHECK(open_again() == 0 && !world_traced(w, "is not open on the server any more"));
	sess->devs[0][0] = '\0';
	CHECK(world_write(c, 0, 4096, 1) == -ENOTCONN);
	dev_close(world_client_dev(c));
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	raw_end();
}
