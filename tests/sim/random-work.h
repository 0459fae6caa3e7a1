/* SPDX-License-Identifier: BSD-3-Clause */
/* The load of random runs: threads of a client that write, read, flush, and ask for holes.  The
 * seed chooses; the history (history.h) judges. */
#ifndef RANDOM_WORK_H
#define RANDOM_WORK_H

#include "history.h"
#include "world.h"

#define RANDOM_AREA 256u		/* sectors in use, so that operations meet */
#define RANDOM_MAX_SECTORS 96u		/* of one operation */

/* A request of a worker. */
struct random_io {
	enum rnbd_io_op op;
	unsigned sector, n;
	bool fua, unmap;
	uint8_t *buf;
};

struct random_worker {
	struct world *w;
	struct history *h;
	struct dev_handle *handle;
	/* Carry @io out to its end, and return its status: a user who is no thread of the client,
	 * and does not ask for holes.  NULL: by @handle, on this thread of the client. */
	int (*carry)(struct random_worker *wk, const struct random_io *io);
	unsigned number;		/* in the trace */
	unsigned user;			/* of the history: who has @handle */
	struct sim_fiber *fiber;
	unsigned ops;			/* still to do; may be changed meanwhile */
	unsigned pause_us;		/* at most, at times, behind an operation */
	bool lenient;			/* requests may fail: the session's patience is short */
	uint8_t buf[RANDOM_MAX_SECTORS * RNBD_SECTOR_SIZE];
};

/* The function of a fiber: do all operations of @arg, a struct random_worker.  What is not legal
 * ends the test. */
void random_work(void *arg);
/* Let others run for @us, at least.  In a fiber. */
void random_work_pause(uint64_t us);
/* End the test: the history, or an answer, is wrong. */
_Noreturn void random_work_failed(const char *what);

#endif
