/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: waits between the tries to take the lock of a shared store; a worker. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "store-lead.h"
#include "store-taking.h"
#include "store-wait.h"

#define RETRY_MS 50

int store_taking_tell(const struct store_taking *t, int rc, const char *text)
{
	snprintf(t->why, t->len, "%s %s", t->owner, text);
	return rc;
}

int store_taking_patience(struct store_taking *t, const char *owner)
{
	uint64_t patience_ms = t->may_break_ms == CLOCK_NEVER ? STORE_LEAD_POLITE_MS :
				STORE_LEAD_PATIENCE_MS;

	if (strcmp(t->owner, owner)) {
		/* Another owner has a time of its own. */
		t->since_ms = t->asked_ms && !*t->owner ? t->asked_ms : clock_now_ms();
		snprintf(t->owner, sizeof(t->owner), "%s", owner);
		if (t->broke)
			return store_taking_tell(t, -ESTALE, "took the lock that this server had "
						 "broken");
	}
	return clock_now_ms() - t->since_ms >= patience_ms ? 0 : -EAGAIN;
}

int store_taking_may_break(const struct store_taking *t)
{
	if (t->may_break_ms == CLOCK_NEVER)
		return store_taking_tell(t, -EBUSY, "has its lock, and no client asks this server "
					 "to take over from it");
	if (clock_now_ms() < t->may_break_ms)
		return store_taking_tell(t, -EBUSY, "has recently broken the lock of this server, "
					 "which waits");
	return 0;
}

int store_taking_run(struct store_taking *t, int (*try)(struct store_taking *t))
{
	/* The owner's patience ends the wait (store_taking_patience()). */
	struct store_wait w = { .exports = t->exports, .retry_ms = RETRY_MS,
				.patience_ms = CLOCK_NEVER };
	int rc;

	while ((rc = try(t)) == -EAGAIN && !(rc = store_wait(&w)))
		;
	return rc;
}
