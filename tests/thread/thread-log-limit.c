/* SPDX-License-Identifier: BSD-3-Clause */
/* Every line either passes, or is counted and told; no window lets more than its burst through. */
#include <stdatomic.h>

#include "clock.h"
#include "log.h"
#include "thread.h"

#define CALLS 20000
#define BURST 3
#define WINDOW_MS 1000

static _Atomic(uint64_t) now_ms = 1000000;
static atomic_ulong passed, told, lines;
static struct log_limit limit = LOG_LIMIT_INIT(BURST, WINDOW_MS);

/* Time goes on with each look at it. */
uint64_t clock_now_ms(void)
{
	return atomic_fetch_add(&now_ms, 1);
}

static void sink(enum log_level level, const char *line)
{
	unsigned n;

	atomic_fetch_add(&lines, 1);
	check(sscanf(line, "peer: %u similar lines were suppressed", &n) == 1);
	check(n > 0);
	atomic_fetch_add(&told, n);
}

static void *worker(void *arg)
{
	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < CALLS; i++)
		if (log_limit_pass(&limit, "peer"))
			atomic_fetch_add(&passed, 1);
	return NULL;
}

int main(void)
{
	unsigned long calls = (unsigned long)CALLS * NTHREADS;
	unsigned long windows = (calls + WINDOW_MS - 1) / WINDOW_MS;

	log_init(sink, LOG_LEVEL_INFO);
	run_threads(worker);
	check(atomic_load(&passed) + atomic_load(&told) + limit.held_back == calls);
	check(atomic_load(&passed) == windows * BURST);
	check(atomic_load(&lines) == windows - 1);
	return 0;
}
