/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for what another server or program has.  Possible failures: the time is over, or the server
 * stops. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "exports.h"
#include "store-lead.h"
#include "store-wait.h"

#define TELL_AGAIN_MS 60000
#define RETRY_MS 50

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

/* ---- the tries to take the lock of a shared store ---- */

int store_wait_tell(const struct store_taking *t, int rc, const char *text)
{
	snprintf(t->why, t->len, "%s %s", t->owner, text);
	return rc;
}

int store_wait_patience(struct store_taking *t, const char *owner)
{
	uint64_t patience_ms = t->may_break_ms == CLOCK_NEVER ? STORE_LEAD_POLITE_MS :
				STORE_LEAD_PATIENCE_MS;

	if (strcmp(t->owner, owner)) {
		/* Another owner has a time of its own. */
		t->since_ms = t->asked_ms && !*t->owner ? t->asked_ms : clock_now_ms();
		snprintf(t->owner, sizeof(t->owner), "%s", owner);
		if (t->broke)
			return store_wait_tell(t, -ESTALE, "took the lock that this server had "
					       "broken");
	}
	return clock_now_ms() - t->since_ms >= patience_ms ? 0 : -EAGAIN;
}

int store_wait_may_break(const struct store_taking *t)
{
	if (t->may_break_ms == CLOCK_NEVER)
		return store_wait_tell(t, -EBUSY, "has its lock, and no client asks this server "
				       "to take over from it");
	if (clock_now_ms() < t->may_break_ms)
		return store_wait_tell(t, -EBUSY, "has recently broken the lock of this server, "
				       "which waits");
	return 0;
}

int store_wait_take(struct store_taking *t, int (*try)(struct store_taking *t))
{
	/* The owner's patience ends the wait (store_wait_patience()). */
	struct store_wait w = { .exports = t->exports, .retry_ms = RETRY_MS,
				.patience_ms = CLOCK_NEVER };
	int rc;

	while ((rc = try(t)) == -EAGAIN && !(rc = store_wait(&w)))
		;
	return rc;
}
