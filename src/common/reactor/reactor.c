/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one ring and the loop around the ring.
 *
 * The main thread creates the ring disabled, so that a host without io_uring fails the start
 * before any thread runs.  The thread that runs the ring enables the ring, and alone submits from
 * then on.  reactor_stop() ends the loop; the caller knows of operations still in flight.
 * reactor_destroy() closes the ring after the thread has ended.  A ring that fails in the loop
 * ends reactor_run() with the error. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "process.h"
#include "reactor-ring.h"

/* After a pass with more completions the thread sleeps: what comes meanwhile is one more pass. */
#define SPIN_BURST 8u

/* ---- life ---- */

static bool inbox_ready(struct loop_watch *w)
{
	loop_run_inbox(w->loop);
	return false;
}

static void reactor_stop_msg(struct loop_msg *msg)
{
	container_of(msg, struct reactor, stop_msg)->stopped = true;
}

static void timeout_done(struct reactor_op *op, int res, unsigned flags)
{
	struct reactor *r = container_of(op, struct reactor, timeout);

	r->timeout_ms = CLOCK_NEVER;
	r->due = true;
}

/* -ENOENT: the timeout has completed meanwhile. */
static void timeout_moved(struct reactor_op *op, int res, unsigned flags)
{
}

int reactor_create(const char *name, unsigned ring_entries, struct reactor **out)
{
	struct reactor *r = calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		log_err(name, "out of memory");
		return -ENOMEM;
	}
	snprintf(r->name, sizeof(r->name), "%s", name);
	list_init(&r->ready);
	list_init(&r->closed);
	loop_msg_init(&r->stop_msg, reactor_stop_msg);
	r->timeout.done = timeout_done;
	r->moved.done = timeout_moved;
	r->timeout_ms = CLOCK_NEVER;
	rc = loop_init(&r->loop);
	if (rc) {
		log_err(r->name, "cannot create an eventfd: %s", fds_strerror(rc));
		goto err_free;
	}
	rc = reactor_ring_init(r->name, &r->ring, ring_entries);
	if (rc)
		goto err_loop;
	*out = r;
	return 0;

err_loop:
	loop_fini(&r->loop);
err_free:
	free(r);
	return rc;
}

void reactor_destroy(struct reactor *r)
{
	if (!r)
		return;
	assert(!reactor_storage(r));
	/* Run a stop that came too late for the thread, or to a thread never run. */
	loop_run_inbox(&r->loop);
	assert(loop_inbox_empty(&r->loop));
	/* The inbox alone is still watched; closing the ring ends the watch. */
	io_uring_queue_exit(&r->ring);
	free(r->inbox_watch.impl);
	loop_fini(&r->loop);
	free(r);
}

int reactor_enable(struct reactor *r)
{
	int rc;

	if (r->enabled)
		return 0;
	/* liburing 2.3 declares io_uring_enable_rings() without exporting the function. */
	rc = io_uring_register((unsigned)r->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	if (rc < 0) {
		log_err(r->name, "cannot enable the io_uring: %s", strerror(-rc));
		return rc;
	}
	r->enabled = true;
	r->inbox_watch.fd = r->loop.eventfd;
	r->inbox_watch.events = POLLIN;
	r->inbox_watch.ready = inbox_ready;
	return loop_watch(&r->loop, &r->inbox_watch);
}

void reactor_stop(struct reactor *r)
{
	loop_post(&r->loop, &r->stop_msg);
}

void reactor_set_poll(struct reactor *r, unsigned us)
{
	spin_init(&r->spin, us);
}

const char *reactor_name(const struct reactor *r)
{
	return r->name;
}

struct loop *reactor_loop(struct reactor *r)
{
	return &r->loop;
}

/* ---- the loop ---- */

/* Returns true when an operation completed while this thread polled. */
static bool reactor_busy_poll(struct reactor *r)
{
	bool few = r->burst <= SPIN_BURST;

	r->burst = 0;
	if (!few || !spin_begin(&r->spin))
		return false;
	do {
		io_uring_submit_and_get_events(&r->ring);
		if (io_uring_cq_ready(&r->ring))
			return true;
	} while (spin_more(&r->spin));
	return false;
}

static bool reactor_has_work(const struct reactor *r)
{
	return !list_empty(&r->loop.tasks) || !list_empty(&r->ready) || !list_empty(&r->closed);
}

/* Submit the storage's work first, because getting ready to sleep costs system calls.  Answers
 * that the storage has at once leave earlier, and the peer works meanwhile.  Returns 0 when the
 * thread may sleep, 1 when there is work, or -errno. */
static int get_ready_to_sleep(struct reactor *r)
{
	int rc;

	if (list_empty(&r->loop.sleep_tasks))
		return 0;
	if (io_uring_sq_ready(&r->ring)) {
		rc = io_uring_submit_and_get_events(&r->ring);
		if (rc < 0 || io_uring_cq_ready(&r->ring))
			return rc < 0 ? rc : 1;
	}
	loop_run_sleep_tasks(&r->loop);
	return reactor_has_work(r);
}

/* Have the ring's timeout complete at the earliest deadline, or before: one that is too early finds
 * no due timer, and is set again. */
static void arm_timeout(struct reactor *r)
{
	uint64_t next = loop_deadline(&r->loop);

	if (next >= r->timeout_ms)
		return;
	r->timeout_at.tv_sec = (long long)(next / 1000);
	r->timeout_at.tv_nsec = (long long)(next % 1000) * 1000000;
	if (r->timeout_ms == CLOCK_NEVER)
		io_uring_prep_timeout(reactor_ring_sqe(r, &r->timeout), &r->timeout_at, 0,
				      IORING_TIMEOUT_ABS);
	else
		io_uring_prep_timeout_update(reactor_ring_sqe(r, &r->moved), &r->timeout_at,
					     (uintptr_t)&r->timeout, IORING_TIMEOUT_ABS);
	r->timeout_ms = next;
}

/* Submit all queued entries; sleep when the thread has no other work. */
static int submit_and_wait(struct reactor *r)
{
	int rc = reactor_has_work(r) ? 0 : get_ready_to_sleep(r);

	if (rc)
		return rc;
	arm_timeout(r);
	if (reactor_has_work(r))
		return io_uring_submit_and_get_events(&r->ring);
	if (reactor_busy_poll(r))
		return 0;
	return io_uring_submit_and_wait(&r->ring, 1);
}

/* Run only the completions present now, so that the rest of the pass gets a turn. */
static void reactor_reap(struct reactor *r)
{
	unsigned n = io_uring_cq_ready(&r->ring);
	struct io_uring_cqe *cqe;

	if (n)
		spin_end(&r->spin);
	r->burst = MAX(r->burst, n);
	while (n-- && !io_uring_peek_cqe(&r->ring, &cqe)) {
		struct reactor_op *op = io_uring_cqe_get_data(cqe);
		int res = cqe->res;
		unsigned flags = cqe->flags;

		/* ORDER: the entry is given back first, because done() may need room in the
		 * ring. */
		io_uring_cqe_seen(&r->ring, cqe);
		op->done(op, res, flags);
	}
}

static void reactor_run_pass(struct reactor *r)
{
	if (!list_empty(&r->ready))
		reactor_watch_run_ready(r);
	if (r->due) {
		r->due = false;
		loop_run_timers(&r->loop, clock_now_ms());
	}
	loop_run_tasks(&r->loop);
	if (!list_empty(&r->closed))
		reactor_watch_run_closed(r);
}

int reactor_run(struct reactor *r)
{
	int rc = reactor_enable(r);

	loop_enter(&r->loop);
	while (!rc && !r->stopped) {
		rc = submit_and_wait(r);
		if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
			log_err(r->name, "io_uring_enter: %s", strerror(-rc));
			break;
		}
		rc = 0;
		reactor_reap(r);
		reactor_run_pass(r);
	}
	loop_unpost(&r->loop, &r->stop_msg);
	loop_leave();
	r->stopped = false;
	return rc;
}
