/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices with short queues and few pieces in a request, at the server, at the client and at both:
 * they lower the depth and nothing fails, on connection 0 and on those of IO; below the smallest
 * that can work, and for a depth that was told already, one clear line says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raw-clt.h"
#include "world.h"

/* A request at a time. */
#define SRV_LEAST 19u
#define CLT_LEAST 4u
#define NIOS 250u

static struct world *w;
static struct world_client *c;
static struct raw_clt raw;

/* Does the server learn of its device with its first client only? */
static bool any_address;

/* Windows take queues, too. */
static enum clt_registration registration = CLT_REG_STATIC;
static enum srv_invalidate invalidate = SRV_INVALIDATE_COPY;

static void start(uint32_t depth)
{
	world_server_start(w, SERVER(.any_address = any_address, .invalidate = invalidate,
				     .queue_depth = depth, .max_io_size = 4096));
	c = world_client_start(w, CLIENT(.registration = registration));
}

static unsigned depth_of(const struct world_client *client)
{
	return world_client_clt((struct world_client *)client)->sess.io.slots.n;
}

static void opened(struct dev_open_req *req)
{
	req->name = NULL;
}

static bool answered(void *arg)
{
	return !((struct dev_open_req *)arg)->name;
}

/* All that can be under way at once: writes and then reads, each of its own, and user messages
 * among them; then idle for as long as heartbeats take to be missed. */
static void work_hard(void)
{
	struct dev_open_req req[8];
	struct world_io *ios[NIOS];

	world_ios_start(c, RNBD_OP_WRITE, ios, NIOS, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(req); i++) {
		req[i] = (struct dev_open_req){
			.name = "nodisk", .mode = RNBD_ACCESS_RW, .done = opened,
		};
		dev_open_start(world_client_clt(c), &req[i]);
	}
	CHECK(world_ios_end(ios, NIOS, 0, 0, 20000));
	for (unsigned i = 0; i < ARRAY_SIZE(req); i++)
		CHECK(sim_run_until(answered, &req[i], 20000) && req[i].status == -ENOENT);
	world_ios_start(c, RNBD_OP_READ, ios, NIOS, 0);
	CHECK(world_ios_end(ios, NIOS, 0, 1, 20000));
	world_run_ms(w, 40000);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(!world_traced(w, "; reconnecting") && !world_traced(w, "@srv: path down: "));
}

/* With queues of @srv and @clt requests (0: long ones) the client uses @depth. */
static void works(uint32_t srv, uint32_t clt, unsigned depth)
{
	w = world_create(1);
	sim_offer_limits("srv", srv, 0);
	sim_offer_limits("clt", clt, 0);
	start(64);
	CHECK(world_wait_open(c, 1000) == 0);
	if (depth_of(c) != depth) {
		fprintf(stderr, "queues of %u and %u give %u\n", srv, clt, depth_of(c));
		CHECK(depth_of(c) == depth);
	}
	work_hard();
}

static void small_servers(void)
{
	works(SRV_LEAST, 0, 1);
	works(SRV_LEAST + 2, 0, 1);
	works(SRV_LEAST + 3, 0, 2);
	works(60, 0, 14);
	works(207, 0, 63);
	/* No longer short, but not as long as the service connection would like. */
	works(208, 0, 64);
	works(512, 0, 64);
}

SIM_TEST(small_server)
{
	small_servers();
	any_address = true;
	small_servers();
	any_address = false;
}

/* To take a key away and to give one for each request, and the first ones all at once. */
static void small_servers_with_windows(unsigned depth_with_small_client)
{
	invalidate = SRV_INVALIDATE_ALWAYS;
	works(SRV_LEAST + 2, 0, 1);
	works(SRV_LEAST + 6, 0, 1);
	works(SRV_LEAST + 7, 0, 2);
	works(60, 0, 8);
	works(335, 0, 63);
	works(336, 0, 64);
	works(60, 20, depth_with_small_client);
	invalidate = SRV_INVALIDATE_COPY;
}

SIM_TEST(small_server_with_windows)
{
	small_servers_with_windows(8);
	any_address = true;
	small_servers_with_windows(8);
	any_address = false;
	/* The longest answers: their clients have windows, too. */
	registration = CLT_REG_WINDOW;
	small_servers_with_windows(6);
	registration = CLT_REG_STATIC;
}

SIM_TEST(small_client)
{
	works(0, CLT_LEAST, 1);
	works(0, CLT_LEAST + 1, 1);
	works(0, CLT_LEAST + 2, 2);
	works(0, 33, 15);
	works(0, 130, 64);
}

/* A bind, a request and an invalidate for each. */
SIM_TEST(small_client_with_windows)
{
	registration = CLT_REG_WINDOW;
	works(0, CLT_LEAST, 1);
	works(0, CLT_LEAST + 1, 1);
	works(0, CLT_LEAST + 2, 2);
	works(0, 33, 11);
	works(0, 130, 43);
	works(60, 20, 6);
	sim_offer_windows(true, false);
	works(0, CLT_LEAST, 1);
	works(0, 33, 11);
	sim_offer_windows(true, true);
	registration = CLT_REG_STATIC;
}

SIM_TEST(both_small)
{
	works(SRV_LEAST, CLT_LEAST, 1);
	works(60, CLT_LEAST, 1);
	works(SRV_LEAST, 130, 1);
	works(60, 20, 9);
	works(60, 60, 14);
}

/* With any kind of memory at the client. */
SIM_TEST(small_kind_devices)
{
	sim_offer_local_dma_lkey(true);
	sim_offer_rereg(true);
	works(0, CLT_LEAST, 1);
	works(SRV_LEAST, CLT_LEAST, 1);
	works(60, 20, 9);
}

/* The path as a kernel's client uses it: user messages under all permits at once. */
SIM_TEST(small_server_and_user_messages)
{
	struct rnbd_msg_open open;
	unsigned depth;

	CHECK(rnbd_open_encode(&open, "nodisk", RNBD_ACCESS_RW) == 0);
	for (uint32_t n = SRV_LEAST; n <= SRV_LEAST + 3 * (RAW_BUFS - 1); n += 3) {
		w = world_create(1);
		sim_offer_limits("srv", n, 0);
		world_server_start(w, NULL);
		raw_clt_init(&raw, "clt", 1, 1, 2);
		CHECK(raw_clt_open(&raw, "sess", RNBD_ACCESS_RW) == 0);
		depth = raw.path.geom.queue_depth;
		CHECK(depth == (n - SRV_LEAST) / 3 + 1);
		for (unsigned turn = 0; turn < 3; turn++) {
			for (unsigned i = 0; i < depth; i++)
				raw_clt_submit(&raw, 0, i, RTRS_DIR_READ, &open, sizeof(open),
					       sizeof(struct rnbd_msg_open_rsp), false);
			for (unsigned i = 0; i < depth; i++)
				CHECK(raw_clt_wait(&raw, i, 10000) &&
				      raw.path.answers[i].status == -ENOENT);
		}
		raw_clt_fini(&raw);
	}
}

/* What the server can still do without. */
SIM_TEST(few_pieces)
{
	w = world_create(1);
	sim_offer_limits("srv", 0, 1);
	sim_offer_limits("clt", 0, 2);
	start(16);
	CHECK(world_wait_open(c, 1000) == 0);
	work_hard();
}

/* ---- too small ---- */

static void never_works(uint32_t srv_wr, uint32_t clt_wr, uint32_t clt_sge, const char *line)
{
	w = world_create(1);
	sim_offer_limits("srv", srv_wr, 0);
	sim_offer_limits("clt", clt_wr, clt_sge);
	start(16);
	world_run_ms(w, 100);
	CHECK(world_client_opened(c) == 1);
	CHECK(world_traced(w, line));
	/* It tries on, and a better device will do. */
	sim_offer_limits("srv", 0, 0);
	sim_offer_limits("clt", 0, 0);
	CHECK(world_wait_open(c, 10000) == 0);
}

SIM_TEST(too_small_server)
{
	static const char line[] =
		"the device's queues are too small: 18 requests, expected at least 19";

	/* Known when it listens. */
	w = world_create(1);
	sim_offer_limits("srv", SRV_LEAST - 1, 0);
	CHECK(!strncmp(world_server_refuses(w, NULL), "cannot listen on sim://10.0.0.2:1234: ",
		       38));
	CHECK(strstr(world_server_refuses(w, NULL), line));
	world_destroy(w);
	/* Not before the first client. */
	any_address = true;
	never_works(SRV_LEAST - 1, 0, 0, line);
	never_works(1, 0, 0,
		    "clt: connection refused: the device's queues are too small: "
		    "1 requests, expected at "
		    "least 19 (Cannot allocate memory)");
	any_address = false;
}

SIM_TEST(too_small_client)
{
	never_works(0, CLT_LEAST - 1, 0,
		    "cannot connect: connection 0: the device is too small: queues of "
		    "3 requests with 4 pieces, expected at least 4 with 2; trying again");
	never_works(0, 1, 0, "queues of 1 requests");
	never_works(0, 0, 1, "queues of 16384 requests with 1 pieces");
}

/* No windows at all: an error for those who want them, and no matter for others. */
SIM_TEST(no_windows)
{
	sim_offer_windows(false, false);
	w = world_create(1);
	registration = CLT_REG_WINDOW;
	start(16);
	world_run_ms(w, 100);
	CHECK(world_client_opened(c) == 1);
	CHECK(world_traced(w,
			   "cannot connect: connection 0: registration=window: "
			   "the device has no windows "
			      "of type 1; use registration=static; trying again"));
	/* Until there is a device that has some. */
	sim_offer_windows(true, true);
	CHECK(world_wait_open(c, 10000) == 0);
	work_hard();
	/* That one is gone again: requests wait. */
	sim_offer_windows(false, false);
	sim_cut("clt", "srv");
	world_run_ms(w, 1000);
	CHECK(world_traced(w, "no windows of type 1"));
	sim_offer_windows(true, false);
	CHECK(world_write(c, 0, 4096, 7) == 0 && world_read(c, 0, 4096, 7) == 0);
	world_destroy(w);
	sim_offer_windows(false, false);
	registration = CLT_REG_AUTO;
	if (!getenv("SIM_REGISTRATION"))
		works(0, 33, 15);
	registration = CLT_REG_STATIC;
}

/* ---- lowered once, for all ---- */

/* What the first client was told holds for the second, whose device could do less, or more. */
static void second_device(const char *lowered)
{
	struct world_client *c2;

	w = world_create(1);
	sim_offer_limits("srv", 60, 0);
	start(64);
	CHECK(world_wait_open(c, 1000) <= 0 && depth_of(c) == 14);
	CHECK(world_traced(w, lowered));
	sim_offer_limits("srv", 57, 0);
	c2 = world_client_start(w, CLIENT(.host = "clt2", .name = "two", .mode = RNBD_ACCESS_RO));
	world_run_ms(w, 100);
	CHECK(world_client_opened(c2) == 1);
	CHECK(world_traced(w,
			   "refused: the device's queues allow a depth of 13, "
			   "but an earlier client got 14: set --queue-depth=13"));
	sim_offer_limits("srv", 0, 0);
	CHECK(world_wait_open(c2, 10000) <= 0 && depth_of(c2) == 14);
	work_hard();
}

SIM_TEST(second_device)
{
	second_device("srv sim://srv: queue depth lowered from 64 to 14: "
		      "the device has queues of 60");
	any_address = true;
	second_device("srv queue depth lowered from 64 to 14: the device has queues of 60");
	any_address = false;
}

/* What a device that is known can do is told to those, too, who come through a better one first. */
SIM_TEST(known_before_the_first_client)
{
	w = world_create(1);
	sim_offer_limits("srv", 60, 0);
	world_server_start(w, NULL);
	CHECK(world_traced(w,
			   "sim://srv: queue depth lowered from 16 to 14: "
			   "the device has queues of 60"));
	sim_offer_limits("srv", 0, 0);
	c = world_client_start(w, NULL);
	CHECK(world_wait_open(c, 1000) <= 0 && depth_of(c) == 14);
	sim_offer_limits("srv", 60, 0);
	sim_cut("clt", "srv");
	world_run_ms(w, 5000);
	CHECK(world_write(c, 0, 4096, 1) == 0);
	CHECK(!world_traced(w, "refused"));
}

/* A client whose next device is smaller goes on with less; and with more when it is back. */
SIM_TEST(come_back_over_another_device)
{
	static const uint32_t sizes[] = { 20, CLT_LEAST, 12, 0 };

	w = world_create(1);
	start(64);
	CHECK(world_wait_open(c, 1000) <= 0);
	CHECK(depth_of(c) == 64);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned limit = sizes[i] ? sizes[i] / 2 - 1 : 64;
		struct world_io *ios[NIOS];

		world_ios_start(c, RNBD_OP_WRITE, ios, NIOS, (uint8_t)i);
		world_run_ms(w, 2);
		sim_offer_limits("clt", sizes[i], 0);
		sim_cut("clt", "srv");
		/* Those that hold a permit that is gone begin anew with another one. */
		CHECK(world_ios_end(ios, NIOS, 0, 0, 20000));
		CHECK(atomic_load(&world_client_clt(c)->sess.io.slots.limit) == limit);
		world_forget(w);
		work_hard();
	}
}

int main(int argc, char **argv)
{
	sim_offer_local_dma_lkey(false);
	sim_offer_rereg(false);
	return sim_test_main(argc, argv);
}
