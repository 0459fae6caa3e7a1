/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits on real descriptors, beside a loop of this thread. */
#include "harness.h"
#include "loop-poll.h"

int provider_wait(struct pollfd *fds, unsigned n, int timeout_ms)
{
	return poll(fds, n, timeout_ms);
}

struct loop *provider_loop(void)
{
	struct loop *loop;

	check_eq(loop_poll_create(NULL, &loop), 0);
	return loop;
}

void provider_loop_end(struct loop *loop)
{
	loop_poll_destroy(loop);
}

int provider_turn(struct loop *loop, struct pollfd *fds, unsigned n, int timeout_ms)
{
	return loop_poll_turn(loop, fds, n, timeout_ms);
}
