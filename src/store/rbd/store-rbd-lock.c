/* SPDX-License-Identifier: BSD-3-Clause */
/* librbd's exclusive lock, by which a cluster knows one writer of an image.  Owns nothing except
 * the time in which the server waits. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "exports.h"
#include "log.h"
#include "store-rbd-priv.h"

#define RETRY_NS 200000000l

struct locking {
	struct store_rbd *r;
	int rc;
};

static void lock_aside(void *arg)
{
	struct locking *l = arg;

	l->rc = rbd_lib.rbd_lock_acquire(l->r->handle.image, RBD_LOCK_MODE_EXCLUSIVE);
}

/* The owner of the lock of @r, as the cluster tells it; "somebody": it does not. */
static const char *lock_owner(struct store_rbd *r, char *name, size_t len)
{
	rbd_lock_mode_t mode;
	char *owners[1];
	size_t n = 1;

	snprintf(name, len, "somebody");
	if (rbd_lib.rbd_lock_get_owners(r->handle.image, &mode, owners, &n) >= 0 && n) {
		snprintf(name, len, "%s", owners[0]);
		rbd_lib.rbd_lock_get_owners_cleanup(owners, n);
	}
	return name;
}

static int lock_wait(struct store_rbd *r, char *err, size_t errlen)
{
	const struct timespec retry = { .tv_nsec = RETRY_NS };
	uint64_t since_ms = clock_now_ms();
	struct locking l = { .r = r };
	struct export *ex = &r->ex;
	bool told = false;
	char owner[96];
	int rc;

	for (;;) {
		rc = store_rbd_aside(lock_aside, &l);
		if (!rc)
			rc = l.rc;
		if (rc != -EROFS && rc != -EBUSY && rc != -ETIMEDOUT)
			return rc;
		lock_owner(r, owner, sizeof(owner));
		if (!told)
			log_warn(ex->name, "'%s' is locked by %s: waiting for it, for at most %u s "
				 "(--lock-timeout)", ex->path, owner,
				 ex->all->lock_timeout_ms / 1000);
		told = true;
		if (clock_now_ms() - since_ms >= ex->all->lock_timeout_ms) {
			snprintf(err, errlen, "is locked by %s: waited %u s (--lock-timeout)",
				 owner, ex->all->lock_timeout_ms / 1000);
			return -EWOULDBLOCK;
		}
		if (atomic_load(&ex->all->stopping)) {
			snprintf(err, errlen, "the server stops");
			return -ECANCELED;
		}
		nanosleep(&retry, NULL);
	}
}

int store_rbd_lock(struct export *ex, char *err, size_t errlen)
{
	struct store_rbd *r = store_rbd(ex);
	char why[192] = "";
	int rc;

	if (ex->readonly || r->handle.has_lock)
		return 0;
	if (!(r->features & RBD_FEATURE_EXCLUSIVE_LOCK)) {
		log_warn(ex->name, "'%s' has no feature exclusive-lock: nothing keeps another "
			 "writer away from it", ex->path);
		return 0;
	}
	rc = lock_wait(r, why, sizeof(why));
	r->handle.has_lock = !rc;
	if (rc)
		snprintf(err, errlen, "export '%s': '%s': %s", ex->name, ex->path,
			 *why ? why : strerror(-rc));
	return rc;
}
