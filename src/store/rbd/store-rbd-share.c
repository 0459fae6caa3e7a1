/* SPDX-License-Identifier: BSD-3-Clause */
/* librbd's exclusive lock as the lock between two servers (store-lead.h).  Owns nothing; a worker
 * of the store.
 *
 * A lock that is broken takes its owner to the blocklist of the cluster: no write of the owner
 * lands later, whatever the owner knows.  A client on the blocklist stays there, so the server that
 * was fenced opens the image anew, as another client. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "exports.h"
#include "store-lead.h"
#include "store-rbd-priv.h"

#define RETRY_NS 50000000l

struct taking {
	struct store_rbd *r;
	uint64_t may_break_ms;
	char owner[STORE_RBD_OWNER_MAX];
	uint64_t since_ms;		/* when @owner was first seen */
	char *why;
	size_t len;
	int rc;
};

static int refuse(struct taking *t, int rc, const char *text)
{
	snprintf(t->why, t->len, "%s%s", t->owner, text);
	return rc;
}

/* Break the lock of the owner, who keeps it.  0, or -errno. */
static int break_lock(struct taking *t)
{
	int rc;

	if (t->may_break_ms == CLOCK_NEVER)
		return refuse(t, -EBUSY, " has its lock, and no client asks this server to take "
			      "over from it");
	if (clock_now_ms() < t->may_break_ms)
		return refuse(t, -EBUSY, " has broken the lock of this server lately, which waits");
	rc = rbd_lib.rbd_lock_break(t->r->handle.image, RBD_LOCK_MODE_EXCLUSIVE, t->owner);
	if (rc < 0 && rc != -ENOENT)
		return refuse(t, rc, " keeps its lock, which cannot be broken");
	refuse(t, 0, " kept its lock, which is broken");
	return 0;
}

/* True if the owner has had its time to give the lock back. */
static bool patience_ends(struct taking *t, const char *owner)
{
	uint64_t patience_ms = t->may_break_ms == CLOCK_NEVER ? STORE_LEAD_POLITE_MS :
				STORE_LEAD_PATIENCE_MS;

	if (strcmp(t->owner, owner)) {
		snprintf(t->owner, sizeof(t->owner), "%s", owner);
		t->since_ms = clock_now_ms();
	}
	return clock_now_ms() - t->since_ms >= patience_ms;
}

/* 0: the lock is taken.  -EAGAIN: not yet.  Another error is the end. */
static int try_to_take(struct taking *t)
{
	char owner[STORE_RBD_OWNER_MAX] = "";
	rbd_image_t image = t->r->handle.image;
	int rc = store_rbd_owner(image, owner);

	if (rc < 0)
		return rc;
	if (rc && !patience_ends(t, owner))
		return -EAGAIN;
	/* librbd itself breaks the lock of an owner that does not watch. */
	if (rc && (t->may_break_ms != CLOCK_NEVER || store_rbd_owner_watches(image, owner))) {
		rc = break_lock(t);
		if (rc)
			return rc;
	}
	rc = rbd_lib.rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);
	return rc == -EROFS || rc == -EBUSY ? -EAGAIN : rc;
}

static void take_aside(void *arg)
{
	const struct timespec retry = { .tv_nsec = RETRY_NS };
	struct taking *t = arg;
	const struct exports *e = t->r->ex.all;

	while ((t->rc = try_to_take(t)) == -EAGAIN && !atomic_load(&e->stopping))
		nanosleep(&retry, NULL);
	if (t->rc == -EAGAIN)
		t->rc = -ECANCELED;
}

int store_rbd_share_take(struct export *ex, uint64_t may_break_ms, char *why, size_t len)
{
	struct taking t = { .r = store_rbd(ex), .may_break_ms = may_break_ms, .why = why,
			    .len = len };
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
