/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of chunks that were idle for a minute goes back to the system, and no earlier; a request
 * that comes at the moment when it goes loses no byte; data that is still being sent keeps its
 * chunk. */
#include <sys/mman.h>

#include "srv-con.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "world.h"

#define DEPTH 16u
#define CHUNKS 15u			/* from 1 on; chunk 0 is for messages */
#define LEN 65536u
#define PAGE 4096u

static struct world *w;
static struct world_client *c;

static void start(uint64_t seed, enum srv_invalidate invalidate)
{
	struct world_server_conf conf = world_server_defaults;
	struct world_client_conf clt = world_client_defaults;

	conf.queue_depth = DEPTH;
	conf.max_io_size = LEN;
	conf.invalidate = invalidate;
	clt.connections = 3;
	/* Silence alone ends no path here. */
	conf.hb_interval_ms = clt.hb_interval_ms = 100000;
	conf.hb_missed_max = clt.hb_misses = 5;
	w = world_create(seed);
	sim_shuffle(true);
	world_server_start(w, &conf);
	c = world_client_start(w, &clt);
	CHECK(world_wait_open(c, 1000) == 0);
}

static void end(void)
{
	CHECK(!world_traced(w, "path down"));
	world_destroy(w);
	sim_shuffle(false);
}

/* Pages that @n chunks from @first on have in memory. */
static unsigned pages(unsigned first, unsigned n)
{
	struct srv_sess *sess = list_entry(world_server_srv(w)->sessions.next, struct srv_sess,
					   link);
	struct srv_path *path = list_entry(sess->paths.next, struct srv_path, link);
	static unsigned char in_core[DEPTH * (LEN / PAGE + 1)];
	size_t len = n * path->chunks.geom->chunk_size;
	unsigned sum = 0;

	CHECK(len <= sizeof(in_core) * PAGE);
	CHECK(mincore(srv_chunk(&path->chunks, first), len, in_core) == 0);
	for (unsigned i = 0; i < len / PAGE; i++)
		sum += in_core[i] & 1;
	return sum;
}

/* Use all chunks: write the disk, and read it. */
static void use(uint8_t byte)
{
	struct world_io *ios[CHUNKS];

	for (unsigned i = 0; i < CHUNKS; i++)
		ios[i] = world_io_start(c, RNBD_OP_WRITE, i * LEN, LEN, (uint8_t)(byte + i), false);
	for (unsigned i = 0; i < CHUNKS; i++)
		CHECK(world_io_end(ios[i], 0, 5000) == 0);
	for (unsigned i = 0; i < CHUNKS; i++)
		ios[i] = world_io_start(c, RNBD_OP_READ, i * LEN, LEN, 0, false);
	for (unsigned i = 0; i < CHUNKS; i++)
		CHECK(world_io_end(ios[i], (uint8_t)(byte + i), 5000) == 0);
}

/* Run until no chunk takes memory. */
static void trimmed(void)
{
	for (unsigned s = 0; pages(0, DEPTH); s++) {
		CHECK(s < 2 * SRV_TRIM_MS / 1000);
		world_run_ms(w, 1000);
	}
}

SIM_TEST(a_minute)
{
	const unsigned data = CHUNKS * LEN / PAGE;

	start(1, SRV_INVALIDATE_AUTO);
	for (uint8_t i = 1; i < 4; i++) {
		use(i);
		world_run_ms(w, SRV_TRIM_MS - 1000);
		CHECK(pages(1, CHUNKS) >= data);
		/* The test uses one chunk, and the server gives all others back. */
		CHECK(world_write(c, 0, LEN, i) == 0);
		world_run_ms(w, 20000);
		CHECK(pages(1, 1) >= LEN / PAGE && !pages(2, CHUNKS - 1));
		CHECK(world_read(c, LEN, LEN, (uint8_t)(i + 1)) == 0);
		trimmed();
	}
	end();
}

/* Chunks without keys of their own: nobody could hold the client back. */
SIM_TEST(kept)
{
	static const enum srv_invalidate ways[] = { SRV_INVALIDATE_COPY, SRV_INVALIDATE_NEVER };

	for (unsigned i = 0; i < ARRAY_SIZE(ways); i++) {
		start(1, ways[i]);
		use(1);
		world_run_ms(w, 3 * SRV_TRIM_MS);
		CHECK(pages(1, CHUNKS) >= CHUNKS * LEN / PAGE);
		end();
	}
}

/* Run until @us of the world's time. */
static void run_to(uint64_t us)
{
	while (sim_step(sim_now_us() - sim_age_us() + us))
		;
}

/* The moment in which chunk 1 goes: the thread of the connection with its last answer runs. */
static uint64_t moment_us(uint64_t seed)
{
	uint64_t us;

	start(seed, SRV_INVALIDATE_AUTO);
	use(1);
	run_to((sim_age_us() / 1000 + 1) * 1000);
	while (pages(1, 1))
		run_to(sim_age_us() + 1000);
	us = sim_age_us();
	end();
	return us;
}

/* A write is begun so long before this moment: it is placed before, meanwhile or afterwards, and
 * may be placed and not be looked at yet. */
static void write_before(uint64_t seed, uint64_t moment, unsigned lead_us)
{
	struct world_io *io;

	start(seed, SRV_INVALIDATE_AUTO);
	use(1);
	run_to(moment - lead_us);
	CHECK(pages(1, 1));
	io = world_io_start(c, RNBD_OP_WRITE, 0, LEN, 0x77, false);
	CHECK(world_io_end(io, 0, 5000) == 0);
	CHECK(world_read(c, 0, LEN, 0x77) == 0);
	end();
}

/* A message takes 1 ms, and the 17 pieces of a write follow each other within 170 us. */
SIM_TEST(a_write_at_the_moment)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint64_t moment = moment_us(seed);

		for (unsigned lead_us = 990; lead_us < 1200; lead_us += 5)
			write_before(seed, moment, lead_us);
	}
}

/* The client hears nothing: the answers may still have to be sent, and do not lose their data. */
SIM_TEST(unsent_answers)
{
	struct world_io *ios[CHUNKS];

	start(1, SRV_INVALIDATE_AUTO);
	use(1);
	for (unsigned i = 0; i < CHUNKS; i++)
		ios[i] = world_io_start(c, RNBD_OP_READ, i * LEN, LEN, 0, false);
	run_to(sim_age_us() + 1500);	/* they have been asked for */
	sim_drop_oneway("srv", "clt");
	world_run_ms(w, 2 * SRV_TRIM_MS);
	CHECK(pages(1, CHUNKS) >= CHUNKS * LEN / PAGE);
	sim_heal("clt", "srv");
	for (unsigned i = 0; i < CHUNKS; i++)
		CHECK(world_io_end(ios[i], (uint8_t)(1 + i), 5000) == 0);
	trimmed();
	end();
}
