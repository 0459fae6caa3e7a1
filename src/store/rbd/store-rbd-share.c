/* SPDX-License-Identifier: BSD-3-Clause */
/* librbd's exclusive lock as the lock between two servers (store-lead.h).  Owns a call that asks
 * for the lock or gives it back; a worker of the store.  A server that stops waits for such a call,
 * because a lock that stays keeps the other server out for 30 s.  After a while it leaves a silent
 * cluster, and the call keeps the handle of the image until the process ends.
 *
 * A lock that is broken takes its owner to the blocklist of the cluster: no write of the owner
 * lands later, whatever the owner knows.  A client on the blocklist stays there, so the server that
 * was fenced opens the image again, as another client. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "exports.h"
#include "log.h"
#include "store-rbd-priv.h"
#include "store-wait.h"
#include "worker.h"

struct rbd_taking {
	struct store_taking try;
	rbd_image_t image;
	int rc;
	char why[256];
};

/* Run @fn(@arg) aside, and wait for @whom, until the server has stopped.  0: @fn has run.  Another
 * value: @fn has not run, or goes on, and @arg, a piece of malloc(), is not the caller's any
 * more. */
static int run_aside(struct store_rbd *r, const char *whom, void (*fn)(void *arg), void *arg)
{
	struct rbd_patience patience = { .stops = &r->ex.all->stopping,
					 .stops_s = STORE_RBD_STOP_S, .ex = &r->ex,
					 .whom = whom };
	struct aside *call;
	int rc = aside_begin(&call, fn, free, arg);

	if (rc) {
		free(arg);
		return rc;
	}
	rc = store_rbd_connect_wait(call, &patience);
	r->lent = rc != 0;
	if (rc)
		log_warn(r->ex.name, "'%s': the server stops, and has waited for %s, for %u s: "
			 "another server may have to wait for the lock for 30 s", r->ex.path, whom,
			 STORE_RBD_STOP_S);
	return rc;
}

/* Break the lock of the owner, who keeps it.  0, or -errno. */
static int break_lock(struct rbd_taking *t)
{
	int rc = store_wait_may_break(&t->try);

	if (rc)
		return rc;
	rc = rbd_lib.rbd_lock_break(t->image, RBD_LOCK_MODE_EXCLUSIVE, t->try.owner);
	if (rc < 0 && rc != -ENOENT)
		return store_wait_tell(&t->try, rc, "keeps its lock, which cannot be broken");
	t->try.broke = true;
	return store_wait_tell(&t->try, 0, "kept its lock, which is broken");
}

/* 0: the lock is taken.  -EAGAIN: not yet.  Another error is the end. */
static int try_to_take(struct store_taking *try)
{
	struct rbd_taking *t = container_of(try, struct rbd_taking, try);
	char owner[STORE_RBD_OWNER_MAX] = "";
	int rc = store_rbd_lock_owner(t->image, owner);

	if (rc < 0)
		return rc;
	if (rc) {
		int waits = store_wait_patience(try, owner);

		if (waits)
			return waits;
	}
	/* librbd itself breaks the lock of an owner that does not watch. */
	if (rc && (try->may_break_ms != CLOCK_NEVER || store_rbd_lock_watches(t->image, owner))) {
		rc = break_lock(t);
		if (rc)
			return rc;
	}
	rc = rbd_lib.rbd_lock_acquire(t->image, RBD_LOCK_MODE_EXCLUSIVE);
	return rc == -EROFS || rc == -EBUSY ? -EAGAIN : rc;
}

static void take_aside(void *arg)
{
	struct rbd_taking *t = arg;

	t->rc = store_wait_take(&t->try, try_to_take);
}

int store_rbd_share_take(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
			 size_t len)
{
	struct store_rbd *r = store_rbd(ex);
	struct rbd_taking *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->try = (struct store_taking){ .exports = ex->all, .may_break_ms = may_break_ms,
					.asked_ms = since_ms, .why = t->why,
					.len = sizeof(t->why) };
	t->image = r->handle.image;
	rc = run_aside(r, "the cluster, for its lock", take_aside, t);
	if (rc) {
		snprintf(why, len, "%s", rc == -ECANCELED ? "the server stops" : "");
		return rc;
	}
	rc = t->rc;
	snprintf(why, len, "%s", t->why);
	free(t);
	r->handle.has_lock = !rc;
	return rc;
}

struct yielding {
	rbd_image_t image;
	int rc;
};

static void yield_aside(void *arg)
{
	struct yielding *y = arg;

	y->rc = rbd_lib.rbd_lock_release(y->image);
}

int store_rbd_share_yield(struct export *ex)
{
	struct store_rbd *r = store_rbd(ex);
	struct yielding *y = calloc(1, sizeof(*y));
	int rc;

	if (!y)
		return -ENOMEM;
	y->image = r->handle.image;
	rc = run_aside(r, "the cluster, to give its lock back", yield_aside, y);
	r->handle.has_lock = false;
	if (rc)
		return rc;
	rc = y->rc;
	free(y);
	return rc;
}

static int renew(struct store_rbd *r, char *why, size_t len)
{
	int rc;

	r->handle.has_lock = false;
	store_rbd_lost_cancel(r->asking);
	if (r->handle.image && r->hear)
		r->hear(r, false);
	store_rbd_disconnect(r);
	rc = store_rbd_connect(r, why, len);
	if (rc)
		store_rbd_disconnect(r);
	else if (r->hear)
		r->hear(r, true);
	return rc;
}

int store_rbd_share_renew(struct export *ex, char *why, size_t len)
{
	struct store_rbd *r = store_rbd(ex);
	int rc;

	pthread_mutex_lock(&r->renews);
	rc = renew(r, why, len);
	pthread_mutex_unlock(&r->renews);
	return rc;
}
