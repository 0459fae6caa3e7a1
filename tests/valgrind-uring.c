/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into rtrs-server and unit tests below valgrind: sleeping in a ring that lets other
 * threads run.
 *
 * valgrind runs one thread at a time.  It lets the next one run around system calls that it knows
 * to block, and up to 3.19 io_uring_enter() is none of them: two reactors that wait for each other
 * wait for ever.  So waiting is made of entering without waiting, and nanosleep() in between. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include <liburing.h>

#define NAP_NS 500000

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* As io_uring_enter() would wait: @deadline_ns 0 for ever. */
static int nap(struct io_uring *ring, unsigned wait_nr, int64_t deadline_ns)
{
	const struct timespec ts = { .tv_nsec = NAP_NS };
	int submitted = 0;

	for (;;) {
		int rc = io_uring_submit_and_get_events(ring);

		if (rc < 0)
			return submitted ? submitted : rc;
		submitted += rc;
		if (io_uring_cq_ready(ring) >= wait_nr)
			return submitted;
		if (deadline_ns && now_ns() >= deadline_ns)
			return -ETIME;
		nanosleep(&ts, NULL);
	}
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait_nr)
{
	return nap(ring, wait_nr, 0);
}

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
				     unsigned wait_nr, struct __kernel_timespec *ts,
				     sigset_t *sigmask)
{
	int64_t deadline = ts ? now_ns() + ts->tv_sec * 1000000000 + ts->tv_nsec : 0;
	int rc = nap(ring, wait_nr, deadline);

	io_uring_peek_cqe(ring, cqe);
	return rc;
}
