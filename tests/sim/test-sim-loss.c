/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledged writes that are gone, and whom the client tells (doc/decisions.md D13). */
#include <errno.h>

#include "clock.h"
#include "dev-priv.h"
#include "world.h"

static struct world *w;
static struct world_client *c;

static void wait_open(struct world_client *client)
{
	CHECK(world_wait_open(client, 1000) == 0);
}

/* A server with blocks of @block_size, and a client with its device open, that waits for ever.
 * @seed: of what is random. */
static void start_seeded(uint64_t seed, uint32_t block_size)
{
	w = world_create(seed);
	world_server_start(w, SERVER(.block_size = block_size));
	c = world_client_start(w, CLIENT(.io_timeout_ms = CLOCK_NEVER));
	wait_open(c);
	world_run_ms(w, 20);
}

static void start_blocks(uint32_t block_size)
{
	start_seeded(1, block_size);
}

static void start(void)
{
	start_blocks(512);
}

static void power_off_and_on(void)
{
	world_server_kill(w, SIM_KILL_POWER);
	sim_power_on("srv");
	world_server_start(w, NULL);
}

/* What was written with FUA is there after a power cut, of whole blocks and of parts. */
SIM_TEST(fua_survives)
{
	for (uint32_t len = 512; len <= 4096; len += 4096 - 512) {
		start_blocks(4096);
		for (unsigned i = 0; i < 32; i++)
			CHECK(world_io_end(world_io_start(c, RNBD_OP_WRITE, i * 4096, len, 7, true),
					   0, 1000) == 0);
		power_off_and_on();
		for (unsigned i = 0; i < 32; i++)
			CHECK(world_read(c, i * 4096, len, 7) == 0);
	}
}

/* A write that is acknowledged while a FLUSH runs is not covered by it. */
SIM_TEST(flush_covers_what_was_before)
{
	struct world_io *flush;

	start();
	CHECK(world_write(c, 0, 4096, 1) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_FLUSH, SIM_HOLD_AFTER, 1);
	flush = world_io_start(c, RNBD_OP_FLUSH, 0, 0, 0, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	CHECK(world_write(c, 4096, 4096, 2) == 0);
	sim_disk_release(world_disk(w));
	CHECK(world_io_end(flush, 0, 1000) == 0);
	power_off_and_on();
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
}

/* FLUSHes that run when the server is back cover the same writes, and all hear of the loss. */
SIM_TEST(all_flushes_hear_of_a_loss)
{
	struct world_io *flush[3];

	start();
	CHECK(world_write(c, 0, 4096, 1) == 0);
	world_server_kill(w, SIM_KILL_POWER);
	for (unsigned i = 0; i < ARRAY_SIZE(flush); i++)
		flush[i] = world_io_start(c, RNBD_OP_FLUSH, 0, 0, 0, false);
	sim_power_on("srv");
	world_server_start(w, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(flush); i++)
		CHECK(world_io_end(flush[i], 0, 10000) == -EIO);
	CHECK(world_flush(c) == 0);
}

/* The first edge of a write was acknowledged before the reboot.  A FLUSH tells of the loss before
 * the second edge is written, so another has to tell of it behind the write. */
SIM_TEST(loss_of_an_edge)
{
	struct world_io *write, *flush;

	/* A seed with which the power cut takes the edge. */
	start_seeded(4, 4096);
	write = world_io_start(c, RNBD_OP_WRITE, 2048, 4096, 7, false);
	while (sim_disk_content(world_disk(w))[2048] != 7)
		world_run_ms(w, 1);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, 1);
	world_run_ms(w, 20);
	CHECK(sim_disk_held(world_disk(w)) == 1 && !write->done);
	world_server_kill(w, SIM_KILL_POWER);
	CHECK(sim_disk_content(world_disk(w))[2048] == 0);
	flush = world_io_start(c, RNBD_OP_FLUSH, 0, 0, 0, false);
	sim_power_on("srv");
	world_server_start(w, SERVER(.block_size = 4096));
	CHECK(world_io_end(flush, 0, 10000) == -EIO && !write->done);
	CHECK(world_io_end(write, 7, 10000) == 0);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
}

/* One part of a write was acknowledged before the reboot, the other one after it. */
SIM_TEST(loss_of_a_part)
{
	struct world_io *io;

	start();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4 * 65536, 1, false);
	world_run_ms(w, 50);
	CHECK(sim_disk_held(world_disk(w)) == 1 && !io->done);
	power_off_and_on();
	CHECK(world_io_end(io, 0, 10000) == 0);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
}

/* A discard with FUA fails for it, too, but an error of a discard is easily ignored. */
SIM_TEST(discard_does_not_stand_for_flush)
{
	start();
	CHECK(world_write(c, 0, 4096, 1) == 0);
	world_server_kill(w, SIM_KILL_POWER);
	sim_power_on("srv");
	world_server_start(w, NULL);
	for (unsigned i = 0; i < 2; i++)
		CHECK(world_io_end(world_io_start(c, RNBD_OP_DISCARD, 8192, 4096, 0, true), 0,
				   5000) == -EIO);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	CHECK(world_io_end(world_io_start(c, RNBD_OP_DISCARD, 8192, 4096, 0, true), 0, 5000) == 0);
}

/* ---- each handle is told (doc/decisions.md D13) ---- */

static struct sim_event release_event;

static void release(struct sim_event *ev)
{
	sim_disk_release(world_disk(w));
}

static struct dev_handle second, third;

static int do_by(struct dev_handle *h, enum rnbd_io_op op, uint64_t off, bool fua)
{
	return world_io_end(world_io_start_by(c, h, op, off, op == RNBD_OP_FLUSH ? 0 : 4096, 1,
					      fua), 0, 10000);
}

static int flush_by(struct dev_handle *h)
{
	return do_by(h, RNBD_OP_FLUSH, 0, false);
}

static int write_by(struct dev_handle *h)
{
	return do_by(h, RNBD_OP_WRITE, 65536, false);
}

/* Two NBD clients of one gateway have written: neither takes the error away from the other one. */
SIM_TEST(each_handle_hears_of_a_loss)
{
	start();
	dev_handle_init(&second, world_client_dev(c));
	dev_handle_init(&third, world_client_dev(c));
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(write_by(&second) == 0);
	power_off_and_on();
	CHECK(flush_by(&third) == -EIO);	/* as an open file, it need not have written */
	CHECK(flush_by(&third) == 0);
	CHECK(flush_by(&second) == -EIO);
	CHECK(flush_by(&second) == 0);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	/* Nothing is unflushed, and nobody is to be told anything. */
	power_off_and_on();
	CHECK(flush_by(&third) == 0 && flush_by(&second) == 0 && world_flush(c) == 0);
}

/* Two losses are one error: there is nothing that the first one would tell of alone. */
SIM_TEST(two_losses_are_told_at_once)
{
	start();
	dev_handle_init(&second, world_client_dev(c));
	CHECK(world_write(c, 0, 4096, 1) == 0);
	power_off_and_on();
	CHECK(flush_by(&second) == -EIO);
	CHECK(write_by(&second) == 0);
	power_off_and_on();
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	CHECK(flush_by(&second) == -EIO);	/* of the second one */
	CHECK(flush_by(&second) == 0);
}

SIM_TEST(late_handle_hears_nothing)
{
	start();
	CHECK(world_write(c, 0, 4096, 1) == 0);
	power_off_and_on();
	world_run_ms(w, 5000);	/* the session is back, and the loss is known */
	dev_handle_init(&second, world_client_dev(c));
	CHECK(flush_by(&second) == 0);
	dev_handle_fini(&second);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
}

/* A handle that had written is closed before it was told, as when an NBD connection breaks: its
 * client comes back with another one, and is told there.  Neither who was told for himself nor who
 * has not written leaves that. */
SIM_TEST(heir_hears_of_a_loss)
{
	start();
	dev_handle_init(&second, world_client_dev(c));
	dev_handle_init(&third, world_client_dev(c));
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(write_by(&second) == 0);
	power_off_and_on();
	world_run_ms(w, 5000);
	dev_handle_fini(&third);
	dev_handle_init(&third, world_client_dev(c));
	CHECK(flush_by(&third) == 0);
	dev_handle_fini(&second);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	dev_handle_init(&second, world_client_dev(c));
	CHECK(flush_by(&second) == -EIO);
	CHECK(flush_by(&second) == 0);
	dev_handle_init(&third, world_client_dev(c));
	CHECK(flush_by(&third) == 0);
}

/* As above, while the server is away: nobody knows yet that something is lost. */
SIM_TEST(heir_of_a_handle_closed_in_the_outage)
{
	start();
	dev_handle_init(&second, world_client_dev(c));
	CHECK(write_by(&second) == 0);
	world_server_kill(w, SIM_KILL_POWER);
	world_run_ms(w, 10);
	dev_handle_fini(&second);
	sim_power_on("srv");
	world_server_start(w, NULL);
	world_run_ms(w, 5000);
	dev_handle_init(&second, world_client_dev(c));
	CHECK(flush_by(&second) == -EIO);
	CHECK(flush_by(&second) == 0);
	dev_handle_init(&third, world_client_dev(c));
	CHECK(flush_by(&third) == 0);
}

/* FUA promises no less than a FLUSH, and tells like one. */
SIM_TEST(fua_tells_of_a_loss)
{
	start();
	dev_handle_init(&second, world_client_dev(c));
	CHECK(world_write(c, 0, 4096, 1) == 0);
	power_off_and_on();
	CHECK(do_by(&second, RNBD_OP_WRITE, 8192, true) == -EIO);
	CHECK(do_by(&second, RNBD_OP_WRITE, 8192, true) == 0);
	CHECK(flush_by(&second) == 0);
	CHECK(do_by(world_client_handle(c), RNBD_OP_WRITE_ZEROES, 8192, true) == -EIO);
	CHECK(world_flush(c) == 0);
}

static struct world_client *another_client(enum rnbd_access_mode mode)
{
	return world_client_start(w, CLIENT(.host = "clt2", .name = "sess2", .mode = mode));
}

/* A server that was killed in a sync of one session tells each handle of another one. */
SIM_TEST(handles_of_two_sessions)
{
	struct world_client *c2;

	start();
	c2 = another_client(RNBD_ACCESS_MIGRATION);
	wait_open(c2);
	dev_handle_init(&second, world_client_dev(c));
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(world_write(c2, 8192, 4096, 1) == 0);
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c2) == -EIO);
	CHECK(world_flush(c2) == -EIO);
	CHECK(flush_by(&second) == -EIO);	/* the server's, which is latched */
	world_server_kill(w, SIM_KILL_PROCESS);
	world_server_start(w, NULL);
	CHECK(flush_by(&second) == -EIO);
	CHECK(flush_by(&second) == 0);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
	CHECK(world_flush(c2) == -EIO);
	CHECK(world_flush(c2) == 0);
}

/* A sync fails while the session comes back: its device goes, the error with it, and the OPEN that
 * follows begins anew.  Whenever that is, the FLUSH that was waiting for the sync does not
 * succeed. */
SIM_TEST(sync_fails_while_the_session_comes_back)
{
	struct world_io *flush;

	for (unsigned us = 0; us < 40000; us += 250) {
		start();
		sim_delay("clt", "srv", 1000, 0);
		CHECK(world_write(c, 0, 4096, 1) == 0);
		sim_disk_hold(world_disk(w), RNBD_OP_FLUSH, SIM_HOLD_BEFORE, 1);
		sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
		flush = world_io_start(c, RNBD_OP_FLUSH, 0, 0, 0, false);
		world_run_ms(w, 10);
		CHECK(sim_disk_held(world_disk(w)) == 1);
		sim_cut("clt", "srv");
		sim_event_init(&release_event, release);
		sim_event_at(&release_event, sim_now_us() + us);
		CHECK(world_io_end(flush, 0, 10000) == -EIO);
	}
}

/* A write, or one of which some parts are acknowledged and one is not: then the client counts
 * nothing as unflushed. */
static struct world_io *write_unflushed(bool in_parts)
{
	struct world_io *io;

	if (in_parts)
		sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	io = world_io_start(c, RNBD_OP_WRITE, 0, 4 * 65536, 1, false);
	world_run_ms(w, 50);
	CHECK(io->done == !in_parts && (int)sim_disk_held(world_disk(w)) == in_parts);
	return io;
}

/* While a client was away another one took its place, had a sync fail, and left.  The first one
 * opens its device behind that, long after it has asked the server who it is. */
static void sync_failed_before_the_device_is_back(uint64_t seed, bool in_parts)
{
	struct world_client *c2;
	struct world_io *io;

	start_seeded(seed, 512);
	io = write_unflushed(in_parts);
	sim_drop("clt", "srv");
	sim_cut("clt", "srv");
	world_run_ms(w, 1000);
	sim_disk_release(world_disk(w));
	c2 = another_client(RNBD_ACCESS_RW);
	wait_open(c2);
	sim_heal("clt", "srv");
	world_run_ms(w, 10000);
	CHECK(world_traced(w, "cannot be opened again"));
	sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, -EIO, 1);
	CHECK(world_flush(c2) == -EIO);
	world_client_stop(w, c2);
	/* In some orders what is asked last is answered first. */
	sim_delay("clt", "srv", 100, 5000);
	CHECK(world_io_end(io, 0, 10000) == 0);
	CHECK(world_flush(c) == -EIO);
	CHECK(world_flush(c) == 0);
}

SIM_TEST(sync_failed_before_the_device_is_back)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		sync_failed_before_the_device_is_back(seed, false);
		sync_failed_before_the_device_is_back(seed, true);
	}
}
