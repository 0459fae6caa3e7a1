/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with its IO on several loops: requests of any offset, with permits that the loops
 * take from each other and blocks that they share, while all connections are cut again and again.
 * Each request ends on the loop that has begun the request, and nothing is lost or mixed up. */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "../mock/mock-hca.h"
#include "clt-loop.h"
#include "clt-rig.h"
#include "dev-req.h"

#define LOOPS 3u
#define JOBS 4u				/* of a loop, each with a request in flight */
#define ROUNDS 250u
#define CUTS 3u
#define AREA (64u << 10)		/* shared in pieces of 64 bytes, all unaligned */
#define PIECE 64u
#define PIECES (AREA / (PIECE * LOOPS * JOBS))

static sem_t ended;
static atomic_uint cuts;

/* Writes pieces of its own, and reads them back. */
struct job {
	struct loop *loop;
	unsigned number, seed, round;
	struct loop_msg begin;
	struct loop_task step;
	struct dev_req req;
	bool reads;
	unsigned piece;
	uint8_t mine[PIECES][PIECE], buf[PIECE];
};

static struct job jobs[LOOPS * JOBS];

static void news(struct dev_req *q)
{
	struct job *j = container_of(q, struct job, req);

	check(loop_running() == j->loop);
	loop_defer(j->loop, &j->step);
}

static void job_next(struct job *j)
{
	uint64_t off;

	j->piece = (unsigned)rand_r(&j->seed) % PIECES;
	j->reads = rand_r(&j->seed) % 2;
	off = (j->piece * LOOPS * JOBS + j->number) * (uint64_t)PIECE;
	j->req.fn = news;
	if (j->reads) {
		dev_req_read(&j->req, &handle, j->buf, PIECE, off);
		return;
	}
	memset(j->mine[j->piece], (int)(j->round + 1), PIECE);
	dev_req_write(&j->req, &handle, j->mine[j->piece], PIECE, off, false);
}

static void job_step(struct loop_task *task)
{
	struct job *j = container_of(task, struct job, step);

	while (dev_req_step(&j->req)) {
		check(!dev_req_status(&j->req));
		check(!j->reads || !memcmp(j->buf, j->mine[j->piece], PIECE));
		/* However late the thread that cuts is scheduled. */
		if (++j->round >= ROUNDS && atomic_load(&cuts) == CUTS) {
			sem_post(&ended);
			return;
		}
		job_next(j);
	}
}

static void job_begin(struct loop_msg *msg)
{
	struct job *j = container_of(msg, struct job, begin);

	job_next(j);
	loop_defer(j->loop, &j->step);
}

static void jobs_start(void)
{
	atomic_store(&cuts, 0);
	for (unsigned i = 0; i < LOOPS * JOBS; i++) {
		struct job *j = &jobs[i];

		*j = (struct job){ .loop = run.loops[i % LOOPS], .number = i, .seed = i + 1 };
		loop_msg_init(&j->begin, job_begin);
		loop_task_init(&j->step, job_step);
		loop_post(j->loop, &j->begin);
	}
}

/* Cut all connections, each time some hundred requests were served: see thread-clt.c. */
static void cut_until_ended(void)
{
	unsigned long next = mock_server_answers() + 200;
	unsigned n = 0;

	while (n < LOOPS * JOBS) {
		if (!sem_trywait(&ended))
			n++;
		if (atomic_load(&cuts) < CUTS && mock_server_answers() >= next) {
			mock_cut();
			atomic_fetch_add(&cuts, 1);
			next = mock_server_answers() + 200;
		}
		sched_yield();
	}
}

static void world(unsigned depth, int new_rkey, unsigned connections)
{
	struct mock_server_conf conf = { .queue_depth = depth, .max_io_size = 16384,
					 .disk_size = AREA, .new_rkey = new_rkey };
	struct clt_sess_conf sess = {
		.wait = &clt_loop_wait, .connections = connections, .poll_us = 20,
	};

	mock_server_start(&conf);
	rig_open(&sess, LOOPS, NULL);
	jobs_start();
	cut_until_ended();
	rig_close();
	mock_server_stop();
}

int main(void)
{
	rig_quiet();
	sem_init(&ended, 0, 0);
	world(64, 0, LOOPS);
	world(64, 1, 2 * LOOPS + 1);
	world(4, 0, LOOPS);		/* fewer permits than requests */
	sem_destroy(&ended);
	return 0;
}
