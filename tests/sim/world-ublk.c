/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the queue of each process, until it is over. */
#include <assert.h>
#include <stdlib.h>

#include "sim-wait.h"
#include "ublk-queue.h"
#include "world-ublk.h"

#define LEAVE_MS 600000			/* far above any fault of a test */

struct world_ublk {
	struct world *w;
	struct world_client *c;
	struct sim_ublk *disk;
	struct ublk_queue queue;
	bool over;
};

static void queue_is_over(struct ublk_queue *q, int status)
{
	container_of(q, struct world_ublk, queue)->over = true;
	CHECK(status == 0);
}

struct world_ublk *world_ublk_start(struct world *w, const struct world_client_conf *conf,
				    uint64_t ms, struct sim_ublk *disk, int fd)
{
	struct world_ublk *p = calloc(1, sizeof(*p));
	struct world_client_conf waits = *conf;
	unsigned nloops;

	assert(p);
	waits.wait = sim_wait_loops();
	p->w = w;
	p->disk = disk;
	p->c = world_client_start(w, &waits);
	CHECK(world_wait_open(p->c, ms) == 0);
	p->queue.loop = world_client_loops(p->c, &nloops)[0];
	p->queue.h = world_client_handle(p->c);
	p->queue.fd = fd;
	p->queue.depth = WORLD_UBLK_DEPTH;
	p->queue.io_bytes = WORLD_UBLK_IO_BYTES;
	p->queue.over = queue_is_over;
	CHECK(ublk_queue_begin(&p->queue) == 0);
	sim_ublk_go(disk);
	return p;
}

struct world_client *world_ublk_client(struct world_ublk *p)
{
	return p->c;
}

static bool is_over(void *arg)
{
	return ((const struct world_ublk *)arg)->over;
}

/* The requests of a process that was killed fail as those of one that leaves, and nobody hears of
 * them. */
void world_ublk_kill(struct world_ublk *p)
{
	sim_ublk_kill(p->disk);
	ublk_queue_leave(&p->queue);
	world_client_kill_later(p->w, p->c, SIM_KILL_PROCESS, is_over, p, free);
}

void world_ublk_leave_begin(struct world_ublk *p)
{
	ublk_queue_leave(&p->queue);
}

void world_ublk_leave(struct world_ublk *p)
{
	world_ublk_leave_begin(p);
	client_lose_patience(world_client_clt(p->c));
	CHECK(sim_run_until(is_over, p, LEAVE_MS));
	world_client_stop(p->w, p->c);
	sim_ublk_kill(p->disk);
	free(p);
}
