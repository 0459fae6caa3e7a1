/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator: keeps a number of IOs of one device in flight, on the loop of its session, and
 * counts how long they take. */
#ifndef LOAD_H
#define LOAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "lat.h"
#include "look.h"
#include "verify.h"

enum { LOAD_READ, LOAD_WRITE, LOAD_NDIRS };

struct load_conf {
	bool random;			/* else one block after the other, and around */
	unsigned read_percent;
	uint32_t block;			/* bytes of an IO */
	unsigned depth;
	uint64_t off, size;		/* the part of the device that is used */
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

/* Told how the load does, once a second, by the thread that runs it. */
typedef void load_look_fn(const struct look *now);

enum load_phase {
	LOAD_RUNS,
	LOAD_READS_BACK,		/* verify: what was written */
	LOAD_ENDS,			/* nothing new */
	LOAD_ENDED,
};

struct load {
	/* result, when load_run() has returned */
	struct load_side side[LOAD_NDIRS];
	uint64_t elapsed_ns, cpu_ns;	/* without reading back; CPU time is that of this process */
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
	uint32_t *written;		/* verify: [nblocks], what of ours is there */
	uint64_t nblocks;
	enum load_phase phase;
	unsigned inflight;
	uint64_t begun, next, random, began_ns, began_cpu_ns;
	struct list ready;		/* IOs to be stepped */
	struct loop_task step;
	struct loop_timer timer, look_timer;
	struct loop_msg start_msg, stop_msg;
	struct look_back back;
	load_look_fn *look;
	sem_t news;			/* @look_now is a new one, or @over */
	pthread_mutex_t lock;		/* the next two */
	struct look look_now;
	bool over;
};

/* @conf fits the device of @h (target_fit() of target.h).  0 or -ENOMEM. */
int load_init(struct load *l, struct loop *loop, struct dev_handle *h,
	      const struct load_conf *conf);
void load_fini(struct load *l);
/* Run it; any thread but the loop's.  Blocks until nothing is in flight.  @look: NULL for none. */
void load_run(struct load *l, load_look_fn *look);
/* End it early, or its reading back; what is in flight is waited for.  From a signal handler,
 * too. */
void load_stop(struct load *l);

#endif
