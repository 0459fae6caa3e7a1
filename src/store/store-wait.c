/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing except the time of a wait; see the header. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "clock.h"
#include "exports.h"
#include "store-wait.h"

#define TELL_AGAIN_MS 60000

static void wait_sleep(unsigned ms)
{
	const struct timespec t = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&t, NULL);
}

int store_wait(struct store_wait *w)
{
	uint64_t now = clock_now_ms(), waited_ms = now - w->since_ms;

	w->late = w->late || !w->tell_ms;
	if (w->late && w->tell && (!w->told_ms || now - w->told_ms >= TELL_AGAIN_MS)) {
		w->tell(w, waited_ms);
		w->told_ms = now;
	}
	if (w->late && waited_ms >= w->patience_ms)
		return -ETIMEDOUT;
	if (atomic_load(&w->exports->stopping))
		return -ECANCELED;
	/* ORDER: one more try knows that the wait is late, before its time is over. */
	w->late = waited_ms >= w->tell_ms;
	wait_sleep(w->told_ms ? STORE_WAIT_RETRY_SLOW_MS : w->retry_ms);
	return 0;
}
