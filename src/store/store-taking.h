/* SPDX-License-Identifier: BSD-3-Clause */
/* The tries of a driver to take the lock of a shared store (store_driver.take): how long a living
 * owner has to give the lock back, and whether the lock may be broken then (store-lead.h).
 *
 * Thread: a worker of the store. */
#ifndef STORE_TAKING_H
#define STORE_TAKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exports;

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
int store_taking_run(struct store_taking *t, int (*try)(struct store_taking *t));

/* @owner has the lock.  0 if it has had its time to give the lock back, or -EAGAIN.  -ESTALE: this
 * server has broken the lock of another one, and @owner was faster to take it (struct
 * store_driver.take). */
int store_taking_patience(struct store_taking *t, const char *owner);

/* 0 if this server may break the lock of t->owner now.  -EBUSY: the owner keeps the lock. */
int store_taking_may_break(const struct store_taking *t);

/* Put "OWNER @text" into t->why.  Returns @rc. */
int store_taking_tell(const struct store_taking *t, int rc, const char *text);

#endif
