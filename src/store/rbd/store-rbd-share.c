/* SPDX-License-Identifier: BSD-3-Clause */
/* librbd's exclusive lock as the lock between two servers (store-lead.h).  Owns nothing; a worker
 * of the store.
 *
 * A lock that is broken takes its owner to the blocklist of the cluster: no write of the owner
 * lands later, whatever the owner knows.  A client on the blocklist stays there, so the server that
 * was fenced opens the image anew, as another client. */
#include <config.h>

#include <errno.h>

#include "clock.h"
#include "store-rbd-priv.h"
#include "store-taking.h"

struct taking {
	struct store_taking try;
	struct store_rbd *r;
	int rc;
};

/* Break the lock of the owner, who keeps it.  0, or -errno. */
static int break_lock(const struct taking *t)
{
	int rc = store_taking_may_break(&t->try);

	if (rc)
		return rc;
	rc = rbd_lib.rbd_lock_break(t->r->handle.image, RBD_LOCK_MODE_EXCLUSIVE, t->try.owner);
	if (rc < 0 && rc != -ENOENT)
		return store_taking_tell(&t->try, rc, "keeps its lock, which cannot be broken");
	return store_taking_tell(&t->try, 0, "kept its lock, which is broken");
}

/* 0: the lock is taken.  -EAGAIN: not yet.  Another error is the end. */
static int try_to_take(struct store_taking *try)
{
	struct taking *t = container_of(try, struct taking, try);
	char owner[STORE_RBD_OWNER_MAX] = "";
	rbd_image_t image = t->r->handle.image;
	int rc = store_rbd_owner(image, owner);

	if (rc < 0)
		return rc;
	if (rc && store_taking_patience(try, owner))
		return -EAGAIN;
	/* librbd itself breaks the lock of an owner that does not watch. */
	if (rc && (try->may_break_ms != CLOCK_NEVER || store_rbd_owner_watches(image, owner))) {
		rc = break_lock(t);
		if (rc)
			return rc;
	}
	rc = rbd_lib.rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);
	return rc == -EROFS || rc == -EBUSY ? -EAGAIN : rc;
}

static void take_aside(void *arg)
{
	struct taking *t = arg;

	t->rc = store_taking_run(&t->try, try_to_take);
}

int store_rbd_share_take(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
			 size_t len)
{
	struct taking t = {
		.try = { .exports = ex->all, .may_break_ms = may_break_ms, .asked_ms = since_ms,
			 .why = why, .len = len },
		.r = store_rbd(ex),
	};
	int rc = store_rbd_aside(take_aside, &t);

	rc = rc ? rc : t.rc;
	t.r->handle.has_lock = !rc;
	return rc;
}

struct yielding {
	struct store_rbd *r;
	int rc;
};

static void yield_aside(void *arg)
{
	struct yielding *y = arg;

	y->rc = rbd_lib.rbd_lock_release(y->r->handle.image);
}

int store_rbd_share_yield(struct export *ex)
{
	struct yielding y = { .r = store_rbd(ex) };
	int rc = store_rbd_aside(yield_aside, &y);

	y.r->handle.has_lock = false;
	return rc ? rc : y.rc;
}

static int renew(struct store_rbd *r, char *why, size_t len)
{
	int rc;

	r->handle.has_lock = false;
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
