/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait for a lock or a claim that somebody else has: the sleep between two tries, the log's line
 * about the wait, the time-out, and the end of the server; and the tries of a driver to take the
 * lock of a shared store.
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
#include <stddef.h>
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

/* ---- the tries of a driver to take the lock of a shared store (store_driver.take) ---- */

/* How long a living owner has to give the lock back, and whether the lock may be broken then
 * (store-lead.h).  Thread: a worker of the store. */

#define STORE_TAKING_OWNER_MAX 96

struct store_taking {
	const struct exports *exports;
	uint64_t may_break_ms, asked_ms;	/* of store_driver.take(): @asked_ms is since_ms */
	char *why;			/* the caller's, @len bytes */
	size_t len;
	/* the owner last seen, "client.4121" or the like, and when it was first seen */
	char owner[STORE_TAKING_OWNER_MAX];
	uint64_t since_ms;
	bool broke;			/* this try has broken the lock of @owner, and does not have
					 * it yet: set by the driver whose engine takes two steps */
};

/* Call @try until it returns something else than -EAGAIN, and return that.  -ECANCELED: the server
 * ends.  Sleeps between the calls. */
int store_wait_take(struct store_taking *t, int (*try)(struct store_taking *t));

/* @owner has the lock.  0 if it has had its time to give the lock back, or -EAGAIN.  -ESTALE: this
 * server has broken the lock of another one, and @owner was faster to take it (struct
 * store_driver.take). */
int store_wait_patience(struct store_taking *t, const char *owner);

/* 0 if this server may break the lock of t->owner now.  -EBUSY: the owner keeps the lock. */
int store_wait_may_break(const struct store_taking *t);

/* Put "OWNER @text" into t->why.  Returns @rc. */
int store_wait_tell(const struct store_taking *t, int rc, const char *text);

#endif
