/* SPDX-License-Identifier: BSD-3-Clause */
/* The load generator: keeps a number of IOs of a device in flight, on the loop of the session, and
 * measures how long IOs take. */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev.h"
#include "lat.h"

/* ---- blocks that describe themselves ----
 *
 * A block has a head with the offset, the writer and the number of the write.  The rest follows
 * from the head, so that any wrong byte is found. */

#define VERIFY_MIN 512			/* bytes of a block */

/* The writer of a block, and the number of the write. */
struct verify_id {
	uint64_t writer;
	uint64_t seq;
};

/* ---- the load ---- */

enum { LOAD_READ, LOAD_WRITE, LOAD_NDIRS };

struct load_conf {
	bool random;			/* else block after block, and around */
	unsigned read_percent;
	uint32_t block;			/* bytes of an IO */
	unsigned depth;
	uint64_t off, size;		/* the part of the device to use */
	uint64_t runtime_s;		/* 0: no end */
	uint64_t ios;			/* 0: no end */
	uint64_t seed;
	bool fua;
	bool verify;
};

struct load_side {
	uint64_t ios;
	struct lat lat;
};

struct load_io;

/* Called with the state of the load, at most once a second, on the thread in load_run(). */
typedef void load_look_fn(const struct look *now);

enum load_phase {
	LOAD_RUNS,
	LOAD_READS_BACK,		/* verify: reads all written blocks */
	LOAD_ENDS,			/* begins nothing new */
	LOAD_ENDED,
};

struct load {
	/* result, when load_run() has returned */
	struct load_side side[LOAD_NDIRS];
	uint64_t elapsed_ns, cpu_ns;	/* without the reading back; CPU time of this process */
	uint64_t verified, differing;	/* blocks */
	int status;			/* 0, or the first error: -errno, with @error */
	char error[256];

	/* private */
	struct load_conf conf;
	struct dev_handle *h;
	struct loop *loop;
	struct verify_id id;
	struct load_io *ios;		/* [conf.depth] */
	uint8_t *mem;
	uint32_t *written;		/* verify: [nblocks], load_io.seq of the block's last write
					 * by this load, or 0 */
	uint64_t nblocks;
	enum load_phase phase;
	unsigned inflight;
	uint64_t begun, next, random, began_ns, began_cpu_ns;
	struct list ready;		/* IOs to be stepped */
	struct loop_task step;
	struct loop_timer timer, look_timer;
	struct loop_msg stop_msg;
	struct look_back back;
	load_look_fn *look;
	struct loop_call *hearer;	/* load_run() waits for @look_now, or the end; or NULL */
	struct look look_now;
};

/* Make the IOs.  @conf fits the device of @h (target_fit()); @h outlives @l.  0 or
 * -ENOMEM. */
int load_init(struct load *l, struct loop *loop, struct dev_handle *h,
	      const struct load_conf *conf);
/* Free the IOs; load_run() has returned, or was not called. */
void load_fini(struct load *l);
/* Run the load; any thread but the loop's.  Blocks until nothing is in flight.  @look: NULL for
 * none. */
void load_run(struct load *l, load_look_fn *look);
/* End the load early, or the reading back, after the IOs in flight.  Any thread; from a signal
 * handler, too. */
void load_stop(struct load *l);

#endif
