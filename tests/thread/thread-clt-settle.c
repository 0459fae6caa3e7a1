/* SPDX-License-Identifier: BSD-3-Clause */
/* The moments in which the loop of a request could wait for a count that has come already, or go on
 * before it.  A path is lost with a request in flight; the service thread gives the parts back, and
 * the request's own loop takes them.  clt_loop_wait with a stage in front brings both threads to
 * the place in question. */
#include <semaphore.h>

#include "../mock/mock-hca.h"
#include "cleanup.h"
#include "clt-io-priv.h"
#include "clt-loop.h"
#include "clt-rig.h"
#include "dev-req.h"

#define PART 16384u
#define MINE 1				/* the loop of the requests; 0 is the service loop */

#define wait_until(cond)                                                                           \
	do {                                                                                       \
		while (!(cond))                                                                    \
			__real_sched_yield();                                                      \
	} while (0)

int __real_sched_yield(void);
int __wrap_sched_yield(void);
void __real_loop_post(struct loop *loop, struct loop_msg *msg);
void __wrap_loop_post(struct loop *loop, struct loop_msg *msg);

static struct clt_wait_ops staged_wait;
static const uint8_t data[2 * PART];

static struct {
	unsigned parts;
	struct loop_msg begin;
	struct loop_task step;
	struct dev_req req;
	sem_t ended;
	atomic_bool begun;
} job;

/* What both threads have done so far. */
static struct {
	atomic_uint counted;		/* by the service thread */
	atomic_bool settles, yields, settled;	/* the request's loop */
} seen;

/* ---- the stage ---- */

static _Thread_local bool settling;
static _Thread_local struct clt_waiter *counting;

int __wrap_sched_yield(void)
{
	if (settling) {
		/* The counts of two parts are there for a single one that was taken. */
		check(job.parts == 1);
		atomic_store(&seen.yields, true);
	}
	return __real_sched_yield();
}

/* From the count on the operation may be gone, and its message. */
void __wrap_loop_post(struct loop *loop, struct loop_msg *msg)
{
	if (counting && msg == &counting->msg)
		check(atomic_load(&counting->word) == atomic_load(&seen.counted));
	__real_loop_post(loop, msg);
}

static void count_at_last(struct clt_waiter *w)
{
	counting = w;
	clt_loop_wait.count(w);
	counting = NULL;
	atomic_fetch_add(&seen.counted, 1);
}

static void staged_count(struct clt_waiter *w)
{
	if (w->home != run.loops[MINE] || loop_running() != run.loop) {
		clt_loop_wait.count(w);
	} else if (job.parts == 2) {
		/* The second part is pushed and counted between the loop's look at the finished
		 * parts, of which there is one, and its look at the counts. */
		count_at_last(w);
		wait_until(atomic_load(&seen.settles));
	} else {
		/* The loop learns of the part before it is counted. */
		__real_loop_post(w->home, &w->msg);
		wait_until(atomic_load(&seen.yields) || atomic_load(&seen.settled));
		check(!atomic_load(&seen.settled));
		count_at_last(w);
	}
}

static void staged_settle(struct clt_waiter *w, unsigned n)
{
	if (w->home != run.loops[MINE] || atomic_load(&seen.settled)) {
		clt_loop_wait.settle(w, n);	/* the path is back, and the parts were sent */
		return;
	}
	check(n == 1);
	atomic_store(&seen.settles, true);
	wait_until(job.parts == 1 || atomic_load(&seen.counted) == 2);
	settling = true;
	clt_loop_wait.settle(w, n);
	settling = false;
	atomic_store(&seen.settled, true);
}

/* ---- the request ---- */

static struct clt_con *my_con(void)
{
	return &run.clt.sess.paths[0]->att.cons[1 + MINE];
}

static void job_step(struct loop_task *task)
{
	if (!dev_req_step(&job.req))
		return;
	check(!dev_req_status(&job.req));
	sem_post(&job.ended);
}

static void news(struct dev_req *q)
{
	loop_defer(run.loops[MINE], &job.step);
}

static struct mock_conn *mock_of(struct clt_con *con)
{
	return container_of(con->fab, struct mock_conn, fab);
}

static void hold(struct clt_con *con)
{
	LOCK_SCOPE(&mock_lock);
	mock_of(con)->hold = true;
}

static void job_begin(struct loop_msg *msg)
{
	hold(my_con());
	job.req.fn = news;
	dev_req_write(&job.req, &handle, data, job.parts * PART, 0, false);
	job_step(&job.step);
	atomic_store(&job.begun, true);
}

static bool all_in_flight(struct clt_con *con)
{
	if (!atomic_load(&job.begun))
		return false;
	LOCK_SCOPE(&mock_lock);
	return mock_of(con)->tail - mock_of(con)->executed == job.parts;
}

static void lose(unsigned parts)
{
	atomic_store(&seen.counted, 0);
	atomic_store(&seen.settles, false);
	atomic_store(&seen.yields, false);
	atomic_store(&seen.settled, false);
	atomic_store(&job.begun, false);
	job.parts = parts;
	loop_msg_init(&job.begin, job_begin);
	loop_task_init(&job.step, job_step);
	loop_post(run.loops[MINE], &job.begin);
	wait_until(all_in_flight(my_con()));
	mock_cut();
	while (sem_wait(&job.ended))
		;
	check(atomic_load(&seen.counted) == parts);
}

/* ---- */

int main(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = PART,
					   .disk_size = 1 << 20 };

	rig_quiet();
	sem_init(&job.ended, 0, 0);
	mock_server_start(&server);
	staged_wait = clt_loop_wait;
	staged_wait.count = staged_count;
	staged_wait.settle = staged_settle;
	rig_open(&(struct clt_sess_conf){ .wait = &staged_wait, .connections = 1 + MINE }, 1 + MINE,
		 NULL);

	lose(2);
	lose(1);

	rig_close();
	mock_server_stop();
	sem_destroy(&job.ended);
	return 0;
}
