/* SPDX-License-Identifier: BSD-3-Clause */
/* To sleep until an unmap is done.  Any thread but one that is in a completion handler: it would
 * wait for what only it can poll. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "clock.h"
#include "frwr-priv.h"

void frwr_sync_init(struct frwr_sync *s)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, &attr);
	pthread_condattr_destroy(&attr);
	s->done = false;
	s->rc = 0;
}

void frwr_sync_fini(struct frwr_sync *s)
{
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->lock);
}

/* ORDER: signaled under the lock, because who sleeps may free @sync at once. */
void frwr_sync_done(void *sync, int rc)
{
	struct frwr_sync *s = sync;

	pthread_mutex_lock(&s->lock);
	s->done = true;
	s->rc = rc;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
}

int frwr_sync_wait(struct frwr_sync *s, int timeout_ms)
{
	uint64_t end = clock_now_ms() + (uint64_t)timeout_ms;
	struct timespec ts = { .tv_sec = (time_t)(end / 1000),
			       .tv_nsec = (long)(end % 1000) * 1000000 };
	int rc = 0;

	if (fab_in_dispatch())
		return -EDEADLK;
	pthread_mutex_lock(&s->lock);
	while (!s->done && rc == 0)
		rc = pthread_cond_timedwait(&s->cond, &s->lock, &ts);
	rc = s->done ? s->rc : -ETIMEDOUT;
	pthread_mutex_unlock(&s->lock);
	return rc;
}
