/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a device, and of its requests, when the session comes back and the device does
 * not, or not at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "dev-priv.h"
#include "world.h"

#define NIOS 40u

static struct world *w;
static struct world_client *c;
static struct world_io *ios[NIOS];

/* A server and a client with its device open. */
static void start(uint32_t depth, uint64_t io_timeout_ms)
{
	w = world_serve(SERVER(.queue_depth = depth));
	c = world_client_opens(w, CLIENT(.io_timeout_ms = io_timeout_ms));
	world_run_ms(w, 20);
}

/* More writes than there are permits; all permits are in flight. */
static void start_writes(void)
{
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1000);
	world_ios_start(c, RNBD_OP_WRITE, ios, NIOS, 1);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) > 0);
}

static void restart(uint32_t depth, const char *export_name)
{
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_server_start(w, SERVER(.queue_depth = depth, .export_name = export_name));
}

/* ---- requests hold all permits ---- */

/* Without an answer to the OPEN nobody else would end them. */
static void lost_for_good(uint32_t depth)
{
	start(depth, 5000);
	start_writes();
	restart(depth, "other");
	CHECK(world_ios_end(ios, NIOS, -EIO, 0, 7000));
	/* From now on at once. */
	CHECK(world_io_end(world_io_start(c, RNBD_OP_READ, 0, 512, 0, false), 0, 1) == -EIO);
	/* And when it is there again, all is well. */
	restart(depth, NULL);
	world_run_ms(w, 8000);
	CHECK(world_write(c, 0, 512, 1) == 0);
}

SIM_TEST(lost_device_fails_its_requests)
{
	lost_for_good(16);
	lost_for_good(2);
	lost_for_good(1);
}

/* Somebody else has the device for a while. */
static void open_again(uint32_t depth)
{
	struct world_client *c2;

	start(depth, CLOCK_NEVER);
	start_writes();
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	restart(depth, NULL);
	c2 = world_client_opens(w, CLIENT(.host = "clt2", .name = "two"));
	sim_heal("clt", "srv");
	world_run_ms(w, 60000);
	CHECK(world_traced(w, "cannot be opened again: open for writing by another session"));
	for (unsigned i = 0; i < NIOS; i++)
		CHECK(!ios[i]->done);
	world_client_stop(w, c2);
	CHECK(world_ios_end(ios, NIOS, 0, 0, 8000));
	CHECK(world_traced(w, "open again"));
}

SIM_TEST(lost_device_is_opened_again)
{
	open_again(16);
	open_again(2);
	open_again(1);
}

static void opened(struct dev_open_req *req)
{
	if (!req->status)
		dev_close(req->dev);
	req->name = NULL;
}

static bool answered(void *arg)
{
	return !((struct dev_open_req *)arg)->name;
}

/* Other devices of the session are opened while requests for the lost one hold all permits. */
static void open_another(uint32_t depth)
{
	struct dev_open_req req[3];

	start(depth, CLOCK_NEVER);
	start_writes();
	restart(depth, "other");
	world_run_ms(w, 10000);
	for (unsigned i = 0; i < ARRAY_SIZE(req); i++) {
		req[i] = (struct dev_open_req){
			.name = i == 1 ? "other" : "nodisk",
			.mode = RNBD_ACCESS_RW,
			.done = opened,
		};
		dev_open_start(world_client_clt(c), &req[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(req); i++) {
		CHECK(sim_run_until(answered, &req[i], 1000));
		CHECK(req[i].status == (i == 1 ? 0 : -ENOENT));
	}
	restart(depth, NULL);
	CHECK(world_ios_end(ios, NIOS, 0, 0, 8000));
}

SIM_TEST(other_devices_are_opened)
{
	open_another(16);
	open_another(2);
	open_another(1);
}

/* ---- what a server has receives for ---- */

#define NNAMES 700u

struct names {
	struct dev_open_req req[NNAMES];
	char name[NNAMES][16];
	unsigned nopen;
};

static struct names names;

static void name_opened(struct dev_open_req *req)
{
	names.nopen++;
	CHECK(req->status == -ENOENT);
}

static bool all_named(void *arg)
{
	return names.nopen == NNAMES;
}

static unsigned inflight(unsigned cid)
{
	return atomic_load(&world_client_clt(c)->sess.paths[0]->att.cons[cid].inflight);
}

/* All that can be asked for at once, of a server that does not get to look at it: what is on its
 * way never exceeds what a kernel has receives for, 512 on connection 0 with room for heartbeats,
 * and the queue depth on others. */
static void never_too_many(uint32_t depth)
{
	start(depth, CLOCK_NEVER);
	sim_freeze("srv");
	names.nopen = 0;
	for (unsigned i = 0; i < NNAMES; i++) {
		snprintf(names.name[i], sizeof(names.name[i]), "n%u", i);
		names.req[i] = (struct dev_open_req){
			.name = names.name[i], .mode = RNBD_ACCESS_RW, .done = name_opened,
		};
		dev_open_start(world_client_clt(c), &names.req[i]);
	}
	world_ios_start(c, RNBD_OP_WRITE, ios, NIOS, 1);
	world_run_ms(w, 100);
	CHECK(inflight(0) + inflight(1) + inflight(2) > 0);
	CHECK(inflight(0) <= MIN(depth, 500u) && inflight(1) <= depth && inflight(2) <= depth);
	sim_thaw("srv");
	CHECK(sim_run_until(all_named, NULL, 20000));
	CHECK(world_ios_end(ios, NIOS, 0, 0, 20000));
	CHECK(!world_traced(w, "lost"));
}

SIM_TEST(p38_never_more_than_receives)
{
	never_too_many(1);
	never_too_many(16);
	never_too_many(2048);
}

/* The peer comes back with a queue depth of 1, and with more again. */
SIM_TEST(depth_shrinks_to_one)
{
	start(16, CLOCK_NEVER);
	start_writes();
	restart(1, NULL);
	for (unsigned i = 0; i < NIOS; i++) {
		int status = world_io_end(ios[i], 0, 5000);

		CHECK(status == 0 || status == -EIO);
	}
	start_writes();
	restart(16, NULL);
	CHECK(world_ios_end(ios, NIOS, 0, 0, 5000));
	CHECK(world_blocks_are(c, NIOS, 1));
}

/* ---- another device under the same name ---- */

/* @dev comes back as @other, which it must not, then as it was. */
static void comes_back(const struct world_server_conf *conf, const struct world_server_conf *other,
		       const char *line)
{
	struct world_io *io;

	w = world_serve(conf);
	c = world_client_opens(w, CLIENT(.io_timeout_ms = 5000));
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, other);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 1, false);
	CHECK(!line == (world_io_end(io, 0, 7000) == 0));
	if (line)
		CHECK(world_traced(w, line));
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, conf);
	world_run_ms(w, 3000);
	CHECK(world_write(c, 0, 4096, 1) == 0);
}

SIM_TEST(comes_back_as_another)
{
	struct world_server_conf normal = world_server_defaults, big = normal, no_fua = normal;
	struct world_server_conf through = normal;

	big.block_size = 4096;
	no_fua.no_fua = true;
	through.write_through = true;
	comes_back(&normal, &big,
		   "disk0: export came back with blocks of 4096 bytes instead of 512");
	comes_back(&normal, &no_fua, "disk0: export came back without FUA");
	comes_back(&through, &normal, "disk0: export came back with a write cache");
	/* These keep what was promised. */
	comes_back(&normal, &through, NULL);
	comes_back(&big, &big, NULL);
}

/* ---- an RDMA device that goes and comes back ---- */

/* With requests in flight.  Each path fails once, with one line at the side whose device it is; all
 * is done when the device is back. */
static void lose_device(const char *host)
{
	start(16, CLOCK_NEVER);
	start_writes();
	world_forget(w);
	sim_lose_device(host);
	world_run_ms(w, 100);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 20000);
	for (unsigned i = 0; i < NIOS; i++)
		CHECK(!ios[i]->done);
	sim_give_device_back(host);
	CHECK(world_ios_end(ios, NIOS, 0, 0, 60000));
	CHECK(world_blocks_are(c, NIOS, 1));
	CHECK(world_traced(w, "connected again after"));
}

SIM_TEST(client_loses_its_device)
{
	lose_device("clt");
	CHECK(world_traced(w,
			   "clt path srv: lost: connection 0: "
			   "the RDMA device was removed; reconnecting"));
	CHECK(world_traced(w,
			   "clt path srv: cannot connect: "
			   "no device reaches the address; trying again"));
}

SIM_TEST(server_loses_its_device)
{
	lose_device("srv");
	CHECK(world_traced(w,
			   "srv sess/clt@srv: path down: connection 0: "
			   "the RDMA device was removed"));
	CHECK(world_traced(w,
			   "srv sim://srv: not listening any more: "
			   "the RDMA device was removed; trying again"));
	CHECK(world_traced(w, "srv sim://srv: listening again"));
	CHECK(!world_traced(w, "cannot listen again"));
}

/* The connections have failed and wait for their flushes, which do not come. */
static void goes_while_draining(const char *host, const char *peer, unsigned steps)
{
	start(16, CLOCK_NEVER);
	start_writes();
	sim_cut_seen_by(host, peer);
	while (steps--)
		sim_step(sim_now_us() + 1000);
	sim_lose_device(host);
	world_run_ms(w, 100);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 5000);
	sim_give_device_back(host);
	CHECK(world_ios_end(ios, NIOS, 0, 0, 60000));
}

SIM_TEST(device_goes_while_draining)
{
	for (unsigned steps = 0; steps < 20; steps++) {
		goes_while_draining("clt", "srv", steps);
		goes_while_draining("srv", "clt", steps);
	}
}

/* In the middle of a set-up, wherever that is. */
SIM_TEST(lost_while_it_is_set_up)
{
	for (unsigned ms = 0; ms < 14; ms++) {
		w = world_serve(NULL);
		c = world_client_start(w, NULL);
		world_run_ms(w, ms);
		sim_lose_device(ms % 2 ? "clt" : "srv");
		world_run_ms(w, 3000);
		CHECK(world_client_opened(c) == 1 || ms > 8);
		sim_give_device_back(ms % 2 ? "clt" : "srv");
		CHECK(world_wait_open(c, 60000) == 0);
		CHECK(world_write(c, 0, 4096, 1) == 0);
	}
}

/* The server is stopped meanwhile, and the client gives up. */
SIM_TEST(lost_for_ever)
{
	start(16, 2000);
	start_writes();
	sim_lose_device("srv");
	CHECK(world_ios_end(ios, NIOS, -EIO, 0, 60000));
	sim_disk_release(world_disk(w));
	world_server_stop(w);
	world_destroy(w);
	start(16, 2000);
	start_writes();
	sim_lose_device("clt");
	CHECK(world_ios_end(ios, NIOS, -EIO, 0, 60000));
	sim_disk_release(world_disk(w));
}

/* ---- sizes ---- */

/* Requests are cut to the size that the server has now, not to what it had at first, and those that
 * were on their way are cut anew. */
SIM_TEST(p06_restart_with_smaller_requests)
{
	struct world_io *write, *read;

	start(16, 60000);
	CHECK(world_write(c, 0, 65536, 1) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1000);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, 1000);
	read = world_io_start(c, RNBD_OP_READ, 0, 65536, 0, false);
	write = world_io_start(c, RNBD_OP_WRITE, 131072, 65536, 3, false);
	world_run_ms(w, 20);
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_server_start(w, SERVER(.max_io_size = 8192));
	CHECK(world_io_end(read, 1, 5000) == 0);
	CHECK(world_io_end(write, 0, 5000) == 0);
	CHECK(world_read(c, 131072, 65536, 3) == 0);
	CHECK(world_write(c, 65536, 65536, 2) == 0);
	CHECK(world_read(c, 0, 65536, 1) == 0);
	CHECK(world_read(c, 65536, 65536, 2) == 0);
}

/* Sectors and their number are of 512 bytes whatever the blocks. */
SIM_TEST(p23_sectors_of_a_disk_with_4k_blocks)
{
	w = world_serve(SERVER(.block_size = 4096));
	c = world_client_opens(w, NULL);
	CHECK(dev_size(world_client_dev(c)) == WORLD_DISK_SIZE);
	CHECK(world_write(c, 3 * 4096, 4096, 0x5a) == 0);
	CHECK(sim_disk_content(world_disk(w))[3 * 4096 - 1] == 0);
	CHECK(sim_disk_content(world_disk(w))[3 * 4096] == 0x5a);
	CHECK(sim_disk_content(world_disk(w))[4 * 4096 - 1] == 0x5a);
	CHECK(sim_disk_content(world_disk(w))[4 * 4096] == 0);
	CHECK(world_write(c, WORLD_DISK_SIZE - 4096, 4096, 1) == 0);
}

static void start_4k(void)
{
	w = world_serve(SERVER(.block_size = 4096));
	c = world_client_opens(w, NULL);
}

/* Parts of a block, and the whole of it, by several threads at once: each sector is somebody's last
 * word. */
SIM_TEST(parts_of_a_block_at_once)
{
	struct world_io *io[3];

	for (unsigned whole = 0; whole < 2; whole++) {
		const uint8_t *block;

		start_4k();
		block = sim_disk_content(world_disk(w));
		io[0] = world_io_start(c, RNBD_OP_WRITE, 0, 512, 1, false);
		io[1] = world_io_start(c, RNBD_OP_WRITE, 1024, 512, 2, false);
		io[2] = world_io_start(c, RNBD_OP_WRITE, whole ? 0 : 2048, whole ? 4096 : 512, 3,
				       false);
		for (unsigned i = 0; i < 3; i++)
			CHECK(world_io_end(io[i], 0, 1000) == 0);
		CHECK(block[0] == 1 || (whole && block[0] == 3));
		CHECK(block[1024] == 2 || (whole && block[1024] == 3));
		CHECK(block[2048] == 3);
		CHECK(block[4095] == (whole ? 3 : 0));
	}
}

/* ---- a write is given up and still in the storage ---- */

enum between {
	NOTHING,
	/* the device is closed while its server is away, and opened later */
	REOPEN,
};

/* Give up a write, come back, write again, and only then let the storage go on. */
static void given_up(enum between between)
{
	struct world_io *io, *other;
	struct sim_disk *d;

	start(16, 200);
	d = world_disk(w);
	sim_disk_hold(d, RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0xAA, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(d) == 1);
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	CHECK(world_io_end(io, 0, 1000) == -EIO);
	if (between == REOPEN) {
		dev_close(world_client_dev(c));
		world_run_ms(w, 10);
	}
	sim_heal("clt", "srv");
	world_run_ms(w, 5000);
	if (between == REOPEN)
		world_client_open(c, RNBD_ACCESS_RW);
	/* It waits for the storage, but not for ever. */
	world_run_ms(w, 15000);
	if (between == NOTHING)
		CHECK(world_write(c, 0, 4096, 0xBB) == -EIO);
	else
		CHECK(world_client_opened(c) == 1);
	sim_disk_release(d);
	CHECK(world_wait_open(c, 10000) == 0);
	world_run_ms(w, 1000);
	other = world_io_start(c, RNBD_OP_READ, 65536, 4096, 0, false);
	CHECK(world_write(c, 0, 4096, 0xBB) == 0);
	CHECK(world_flush(c) == 0);
	CHECK(world_io_end(other, 0, 1000) == 0);
	world_run_ms(w, 1000);
	CHECK(world_read(c, 0, 4096, 0xBB) == 0);
}

SIM_TEST(given_up) { given_up(NOTHING); }
SIM_TEST(given_up_and_opened_again) { given_up(REOPEN); }

/* A device that a READ keeps in the storage is taken up again only in the mode in which it was
 * open. */
SIM_TEST(opened_again_in_another_mode)
{
	struct world_io *io;

	start(16, 200);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_READ, 0, 4096, 0, false);
	world_run_ms(w, 10);
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	CHECK(world_io_end(io, 0, 1000) == -EIO);
	dev_close(world_client_dev(c));
	world_run_ms(w, 10);
	sim_heal("clt", "srv");
	world_run_ms(w, 5000);
	world_client_open(c, RNBD_ACCESS_RO);
	world_run_ms(w, 1000);
	CHECK(world_client_opened(c) == 1);
	sim_disk_release(world_disk(w));
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(world_write(c, 0, 4096, 1) == -EPERM);
}

/* What io_gave_up() does, without its last step. */
static void give_up(void *arg)
{
	struct dev *dev = arg;

	atomic_store(&dev->given_up_epoch, clt_sess_epoch(&dev->clt->sess));
}

static void give_up_last_step(void *arg)
{
	struct dev *dev = arg;

	loop_post(dev->clt->sess.loop, &dev->given_up_msg);
}

static void run_in_client(void (*fn)(void *arg))
{
	struct sim_fiber *f = world_client_fiber(c, fn, world_client_dev(c));

	world_run_ms(w, 1);
	CHECK(sim_fiber_done(f));
	sim_fiber_free(f);
}

/* A request is given up in the moment in which its device was opened again.  The service loop has
 * not heard of it, and nothing is to be sent that would not be kept behind it. */
SIM_TEST(given_up_when_it_was_opened)
{
	struct world_io *io;

	start(16, 60000);
	run_in_client(give_up);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4096, 0xCC, false);
	world_run_ms(w, 100);
	CHECK(!io->done && sim_disk_content(world_disk(w))[0] == 0);
	run_in_client(give_up_last_step);
	CHECK(world_io_end(io, 0, 10000) == 0);
	CHECK(world_traced(w, "disk0: an old request was abandoned after the export was opened "
			   "again"));
	CHECK(world_traced(w,
			   "disk0: waits for the end of abandoned requests in the server's "
			   "storage"));
	CHECK(world_read(c, 0, 4096, 0xCC) == 0);
}

/* The device is open on the server, and the path is not up yet. */
static bool is_open_in_the_handshake(void *arg)
{
	const struct dev *dev = world_client_dev(c);

	return dev->open_epoch == 2 && atomic_load(&dev->state) == DEV_OPEN &&
	       !clt_sess_is_up(&world_client_clt(c)->sess);
}

/* What io_gave_up() does for a request of the epoch before. */
static void give_up_of_before(void *arg)
{
	struct dev *dev = arg;

	atomic_store(&dev->given_up_epoch, clt_sess_epoch(&dev->clt->sess) - 1);
	loop_post(dev->clt->sess.loop, &dev->given_up_msg);
}

/* A request is given up when its device was opened again, in the handshake.  There is no path that
 * could fail, and no answer to an OPEN is to come. */
SIM_TEST(given_up_in_the_handshake)
{
	uint64_t begun_us;

	start(16, 60000);
	sim_delay("clt", "srv", 2000, 0);
	sim_cut("clt", "srv");
	CHECK(sim_run_until(is_open_in_the_handshake, NULL, 10000));
	run_in_client(give_up_of_before);
	CHECK(is_open_in_the_handshake(NULL));
	begun_us = sim_now_us();
	CHECK(world_write(c, 0, 4096, 0xCC) == 0);
	/* The answer to CLOSE opens it again, not the timer. */
	CHECK(sim_now_us() - begun_us < 1000 * 1000);
	CHECK(world_traced(w,
			   "disk0: waits for the end of abandoned requests in the server's "
			   "storage"));
	CHECK(!world_traced(w, "disk0: an old request was abandoned after the export was opened "
			    "again"));
	CHECK(world_read(c, 0, 4096, 0xCC) == 0);
}

/* ---- closed while it is opened again ---- */

static unsigned closing_answers;	/* to OPENs of a device that is CLOSING */
/* paths to be lost in the moment in which an OPEN is answered */
static unsigned losses_with_answer;

int __real_dev_answer(struct dev *dev, struct dev_ctl *ctl, bool first);
int __wrap_dev_answer(struct dev *dev, struct dev_ctl *ctl, bool first);
int __wrap_dev_answer(struct dev *dev, struct dev_ctl *ctl, bool first)
{
	bool closing = atomic_load(&dev->state) == DEV_CLOSING;
	int r = __real_dev_answer(dev, ctl, first);

	/* Any thread can look here. */
	CHECK(!closing || atomic_load(&dev->state) == DEV_CLOSING);
	closing_answers += closing;
	if (losses_with_answer) {
		losses_with_answer--;
		clt_path_fail(dev->clt->sess.paths[0], -ECONNRESET, "by the test");
		clt_epoch_left(&dev->clt->sess, dev->clt->sess.paths[0]);
	}
	return r;
}

/* The path of a handshake was lost, and the session knows it, before the answer to an OPEN is
 * looked at: the message that says who the server is has no path any more. */
SIM_TEST(path_lost_with_the_answer)
{
	start(8, 60000);
	CHECK(world_write(c, 0, 4096, 0x31) == 0);
	losses_with_answer = 2;
	sim_cut("clt", "srv");
	CHECK(world_write(c, 0, 4096, 0x32) == 0);
	CHECK(!losses_with_answer);
	CHECK(world_flush(c) == 0);
}

static bool is_reopening(void *arg)
{
	const struct dev *dev = world_client_dev(c);

	return atomic_load(&world_client_clt(c)->sess.paths[0]->att.state) == CLT_PATH_OPENING &&
		dev->ctl.done;
}

/* A device that its last user has left does not look open again. */
SIM_TEST(closed_while_it_is_opened_again)
{
	start(8, 60000);
	sim_cut("clt", "srv");
	CHECK(sim_run_until(is_reopening, NULL, 10000));
	dev_close(world_client_dev(c));
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 1000) == 0);
	CHECK(closing_answers == 1);
	CHECK(world_write(c, 0, 4096, 0x31) == 0);
}

static bool is_asked_for_by_the_timer(void *arg)
{
	const struct dev *dev = world_client_dev(c);

	return atomic_load(&dev->state) == DEV_LOST && dev->ctl.done &&
		clt_sess_is_up(&world_client_clt(c)->sess);
}

static bool no_device(void *arg)
{
	return list_empty(&world_client_clt(c)->devs);
}

/* The last user of a LOST device leaves while an OPEN is on its way that the server refuses: there
 * is nothing to close, and the device goes with the answer. */
SIM_TEST(closed_while_an_open_is_refused)
{
	start(8, 60000);
	restart(8, "other");
	CHECK(sim_run_until(is_asked_for_by_the_timer, NULL, 10000));
	dev_close(world_client_dev(c));
	CHECK(sim_run_until(no_device, NULL, 1000));
	world_run_ms(w, 100);
	restart(8, NULL);
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 10000) == 0);
	CHECK(world_write(c, 0, 4096, 0x31) == 0);
}

/* The last user leaves while the handshake opens the device again, and then the path is lost: the
 * device goes with its message, and no CLOSE is owed. */
SIM_TEST(closed_while_its_handshake_is_lost)
{
	start(8, 60000);
	sim_cut("clt", "srv");
	CHECK(sim_run_until(is_reopening, NULL, 10000));
	dev_close(world_client_dev(c));
	world_run_ms(w, 0);
	CHECK(is_reopening(NULL) && atomic_load(&world_client_dev(c)->state) == DEV_CLOSING);
	sim_cut("clt", "srv");
	CHECK(sim_run_until(no_device, NULL, 1000));
	world_client_open(c, RNBD_ACCESS_RW);
	CHECK(world_wait_open(c, 10000) == 0);
	CHECK(world_write(c, 0, 4096, 0x31) == 0);
}
