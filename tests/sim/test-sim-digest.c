/* SPDX-License-Identifier: BSD-3-Clause */
/* digest=crc32c: a bit flips on the way, in each place of a request and of an answer of each kind.
 * The path ends, nobody sees wrong data, the storage never gets any, and the request is done over
 * another attempt. */
#include <string.h>

#include "raw-srv.h"
#include "rtrs-req.h"
#include "srv-state.h"
#include "world.h"

#define LARGE 16384u			/* several pieces of a wire */
#define STEP 997			/* bits of data: each of this distance */

static struct world *w;
static struct world_client *c;
static uint8_t fill;			/* of all that was written */

static void start(enum srv_invalidate invalidate, unsigned npaths)
{
	struct world_server_conf server = world_server_defaults;
	struct world_client_conf conf = world_client_defaults;

	conf.digest = RTRS_DIGEST_CRC32C;
	conf.npaths = npaths;
	server.invalidate = invalidate;
	w = world_create(1);
	world_server_start(w, &server);
	c = world_client_start(w, &conf);
	CHECK(world_wait_open(c, 10000) == 0);
	world_run_ms(w, 20);
	fill = 0;
}

static uint64_t server_errors(void)
{
	return counter_get(&world_server_srv(w)->digest_errors);
}

static uint64_t client_errors(void)
{
	struct clt_path *path;
	uint64_t n = 0;

	clt_sess_for_each(path, &world_client_clt(c)->sess)
		n += path->digest_errors;
	return n;
}

static unsigned ups(void)
{
	struct clt_path *path;
	unsigned n = 0;

	clt_sess_for_each(path, &world_client_clt(c)->sess)
		n += path->ups;
	return n;
}

static bool is_done(void *arg)
{
	return ((struct world_io *)arg)->done;
}

/* The first LARGE bytes of the disk are @want. */
static bool disk_is(uint8_t want)
{
	const uint8_t *bytes = sim_disk_content(world_disk(w));

	for (uint32_t i = 0; i < LARGE; i++) {
		if (bytes[i] != want)
			return false;
	}
	return true;
}

static bool was_told(void *before)
{
	return server_errors() + client_errors() != *(uint64_t *)before;
}

static bool is_up_again(void *before)
{
	return ups() > *(unsigned *)before;
}

static uint8_t after(enum rnbd_io_op op)
{
	return op == RNBD_OP_WRITE ? (uint8_t)(fill + 1) : op == RNBD_OP_WRITE_ZEROES ? 0 : fill;
}

/* A bit flips in a message of @op.  @told: an end finds the wrong digest, before the storage has
 * anything of a request; else the protocol may be broken in another way.  The operation ends well,
 * over another attempt. */
static void survives(struct sim_flip flip, enum rnbd_io_op op, bool told)
{
	bool from_client = !strcmp(flip.from, "clt");
	uint64_t server = server_errors(), client = client_errors(), all = server + client;
	uint8_t next = after(op);
	unsigned up = ups();
	struct world_io *io;

	sim_flip(&flip);
	io = world_io_start(c, op, 0, op == RNBD_OP_FLUSH ? 0 : LARGE, next, false);
	if (told) {
		CHECK(sim_run_until(was_told, &all, 10000));
		CHECK(server_errors() - server == from_client);
		CHECK(client_errors() - client == !from_client);
	}
	if (told && from_client)
		CHECK(!sim_disk_inflight(world_disk(w)) && disk_is(fill));
	CHECK(sim_run_until(is_done, io, 60000));
	CHECK(flip.done && sim_run_until(is_up_again, &up, 10000));
	CHECK(world_io_end(io, next, 1) == 0);
	fill = next;
	CHECK(disk_is(fill));
	sim_flip(NULL);
}

static struct sim_flip request(bool imm, int bit)
{
	return (struct sim_flip){ .from = "clt", .to = "srv", .imm = imm, .bit = bit,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
}

static struct sim_flip answer(bool imm, int bit)
{
	return (struct sim_flip){ .from = "srv", .to = "clt", .imm = imm, .bit = bit,
				  .opcode = IBV_WR_SEND_WITH_IMM };
}

static struct sim_flip read_data(int bit)
{
	return (struct sim_flip){ .from = "srv", .to = "clt", .bit = bit,
				  .opcode = IBV_WR_RDMA_WRITE };
}

static const struct {
	enum rnbd_io_op op;
	int head;			/* bytes of message, header and digest */
} kinds[] = {
	{ RNBD_OP_WRITE, 32 + 4 + 4 },
	{ RNBD_OP_READ, 32 + 8 + 16 + 4 },
	{ RNBD_OP_FLUSH, 32 + 8 + 4 },
	{ RNBD_OP_WRITE_ZEROES, 32 + 4 + 4 },
};

/* Each @step-th place of requests and answers. */
static void all_places(int step)
{
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (int bit = 1; bit <= 8 * kinds[k].head; bit += step)
			survives(request(false, -bit), kinds[k].op, true);
		for (int bit = 0; bit < 32; bit += step)
			survives(request(true, bit), kinds[k].op, false);
		for (int bit = 0; bit < 8 * (int)sizeof(struct rtrs_msg_rsp); bit += step)
			survives(answer(false, bit), kinds[k].op, true);
		for (int bit = 0; bit < 32; bit += step)
			survives(answer(true, bit), kinds[k].op, true);
	}
	for (int bit = 0; bit < 8 * (int)LARGE; bit += STEP * step) {
		survives(request(false, bit), RNBD_OP_WRITE, true);
		survives(read_data(bit), RNBD_OP_READ, true);
	}
}

SIM_TEST(each_bit)
{
	start(SRV_INVALIDATE_AUTO, 1);
	all_places(1);
	world_destroy(w);
}

/* The same with the other ways to protect the chunks, which have other answers. */
SIM_TEST(each_protection)
{
	static const enum srv_invalidate ways[] = { SRV_INVALIDATE_ALWAYS, SRV_INVALIDATE_COPY,
						    SRV_INVALIDATE_NEVER };

	for (unsigned i = 0; i < ARRAY_SIZE(ways); i++) {
		start(ways[i], 1);
		all_places(13);
		world_destroy(w);
	}
}

/* Both ends say which request it was. */
SIM_TEST(is_told)
{
	start(SRV_INVALIDATE_AUTO, 1);
	survives(request(false, 8 * 100), RNBD_OP_WRITE, true);
	CHECK(world_traced(w, "a request did not arrive as it was sent: write of 16384 bytes at 0 "
			      "of disk0: its digest is "));
	survives(read_data(8 * 100), RNBD_OP_READ, true);
	CHECK(world_traced(w, "an answer did not arrive as it was sent: its digest is "));
	CHECK(world_traced(w, ": read of 16384 bytes at 0 of disk0; reconnecting"));
	world_destroy(w);
}

/* Another path takes the request at once. */
SIM_TEST(fails_over)
{
	start(SRV_INVALIDATE_AUTO, 2);
	survives(request(false, -1), RNBD_OP_WRITE, true);
	survives(read_data(0), RNBD_OP_READ, true);
	world_destroy(w);
}

static enum clt_digest digests_of(struct world_client *client)
{
	return world_client_clt(client)->sess.io.atts[0]->digest;
}

/* Messages that set a path up: SESS_INFO, which has a checksum of its own and no digest, PROBE both
 * ways, OPEN. */
SIM_TEST(handshake)
{
	for (unsigned skip = 0; skip < 4; skip++) {
		for (int bit = 1; bit < 8 * 36; bit += 5) {
			struct sim_flip there = request(false, -bit), back = read_data(bit);

			there.skip = skip;
			back.skip = skip / 2;
			for (unsigned i = 0; i < 2; i++) {
				sim_flip(i ? &back : &there);
				start(SRV_INVALIDATE_AUTO, 1);
				CHECK(i ? back.done : there.done);
				CHECK(digests_of(c) == CLT_DIGEST_ON);
				CHECK(world_write(c, 0, LARGE, 1) == 0 && disk_is(1));
				world_destroy(w);
			}
		}
	}
}

/* A message on connection 0 looks like a heartbeat: it is not left without an answer. */
SIM_TEST(looks_like_a_heartbeat)
{
	struct sim_flip flip = request(true, 31);

	flip.skip = 3;
	sim_flip(&flip);
	start(SRV_INVALIDATE_AUTO, 1);
	CHECK(flip.done && world_traced(w, "heartbeat with "));
	CHECK(world_write(c, 0, LARGE, 1) == 0 && disk_is(1));
	world_destroy(w);
}

/* A client without digests beside one with them. */
SIM_TEST(only_where_wanted)
{
	struct world_client_conf conf = world_client_defaults;
	struct world_client *plain;

	start(SRV_INVALIDATE_AUTO, 1);
	conf.host = "clt2";
	conf.name = "plain";
	conf.mode = RNBD_ACCESS_RO;
	plain = world_client_start(w, &conf);
	CHECK(world_wait_open(plain, 1000) == 0);
	CHECK(digests_of(plain) == CLT_DIGEST_NONE);
	CHECK(world_write(c, 0, LARGE, 7) == 0 && world_read(plain, 0, LARGE, 7) == 0);
	world_destroy(w);
}

/* A server that does not know the feature, a kernel's and an older one of ours; and one that says
 * that it does, and whose answers have no digests. */
SIM_TEST(refuses_a_server_without)
{
	static const uint32_t features[] = { 0, RNBD_EXT_ALL, RNBD_EXT_DIGEST, RNBD_EXT_DIGEST };
	static struct raw_srv srv;
	struct world_client_conf conf = world_client_defaults;

	conf.digest = RTRS_DIGEST_CRC32C;
	for (unsigned i = 0; i < ARRAY_SIZE(features); i++) {
		w = world_create(1);
		raw_srv_start(&srv, i % 2);
		srv.features = features[i];
		c = world_client_start(w, &conf);
		world_run_ms(w, 3000);
		CHECK(world_client_opened(c) != 0);
		CHECK(world_traced(w, !(features[i] & RNBD_EXT_DIGEST) ?
				   "digest=crc32c: the server has no digests" : i % 2 ?
				   "answer that is too short for a digest" :
				   "answer to request 0 without a digest"));
		world_client_stop(w, c);
		world_run_ms(w, 100);
		raw_srv_stop(&srv);
		world_destroy(w);
	}
}

int main(int argc, char **argv)
{
	if (!rtrs_digest_works()) {
		puts("this build has no ISA-L");
		return 77;
	}
	return sim_test_main(argc, argv);
}
