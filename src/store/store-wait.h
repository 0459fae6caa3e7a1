/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait for a lock or a claim that somebody else has: the sleep between two tries, the log's line
 * about the wait, the time-out, and the end of the server.
 *
 *	struct store_wait w = { .exports = e, .since_ms = clock_now_ms(), ... };
 *
 *	while ((rc = try()) == -EBUSY && !(rc = store_wait(&w)))
 *		;
 *
 * Thread: a worker, or the main thread at the start. */
#ifndef STORE_WAIT_H
#define STORE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct exports;

#define STORE_WAIT_TELL_MS 1000		/* a server that was killed leaves sooner as a rule */
#define STORE_WAIT_RETRY_MS 20
#define STORE_WAIT_RETRY_SLOW_MS 200

struct store_wait {
	const struct exports *exports;
	unsigned retry_ms;		/* between two tries, until the log is told */
	unsigned tell_ms;		/* from then on the wait is late: the log is told */
	uint64_t patience_ms;		/* a late wait ends; CLOCK_NEVER: it does not */
	/* Tell the log that @w has lasted for @waited_ms: once it is late, and every minute.  NULL:
	 * nothing is told. */
	void (*tell)(const struct store_wait *w, uint64_t waited_ms);
	uint64_t since_ms;		/* clock_now_ms() */
	/* store_wait()'s, to read: */
	bool late;
	uint64_t told_ms;		/* the last time; 0: the log was told nothing */
};

/* A try has found the lock taken: sleep until the next try.  0; -ETIMEDOUT: no more tries;
 * -ECANCELED: the server stops. */
int store_wait(struct store_wait *w);

#endif
