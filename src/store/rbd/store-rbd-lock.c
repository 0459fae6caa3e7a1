/* SPDX-License-Identifier: BSD-3-Clause */
/* Two locks on an image that is written.  Owns nothing except the time in which the server waits.
 *
 * librbd's exclusive lock: the cluster knows one writer.  The lock of a killed server lasts until
 * its watch of the image ends, 30 s, and nothing tells a dead owner from a slow one.
 *
 * So there is a lock file of our own in the state directory, with the name that the cluster has for
 * the owner.  The server that gets the file's lock and finds a name in the file knows that this
 * owner is dead: it breaks the owner's lock at once.  librbd fences the owner (blocklist) when a
 * lock is broken, so no write of the dead server lands later. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "exports.h"
#include "lock-file.h"
#include "log.h"
#include "store-rbd-priv.h"
#include "util.h"

#define RETRY_NS 200000000l
#define OWNER_MAX 96
#define WATCHERS_MAX 64

struct locking {
	struct store_rbd *r;
	struct store_rbd_all *all;
	char owner[OWNER_MAX];		/* of the lock that is in the way, or words for it */
	bool told;
	bool inherited;			/* the lock file was taken now: its owner is dead */
	int rc;
};

/* ---- librbd's lock: these wait for the cluster, and run aside ---- */

/* True if the lock has an owner, who is l->owner then. */
static bool learn_owner(struct locking *l)
{
	rbd_lock_mode_t mode;
	char *owners[1];
	size_t n = 1;

	snprintf(l->owner, sizeof(l->owner), "a client that the cluster does not name");
	if (rbd_lib.rbd_lock_get_owners(l->r->handle.image, &mode, owners, &n) < 0 || !n)
		return false;
	snprintf(l->owner, sizeof(l->owner), "%s", owners[0]);
	rbd_lib.rbd_lock_get_owners_cleanup(owners, n);
	return true;
}

/* True if the lock file that was taken now has the name of the owner, who is dead then. */
static bool owner_was_ours(const struct locking *l)
{
	char name[OWNER_MAX] = "";
	ssize_t n = l->inherited ? pread(l->all->own_fd, name, sizeof(name) - 1, 0) : 0;

	return n > 0 && !strcmp(name, l->owner);
}

/* Leave the name of the owner to the next server.  Without it that server waits. */
static void leave_name(struct locking *l)
{
	size_t len = learn_owner(l) ? strlen(l->owner) : 0;

	if (l->all->own_fd < 0 || (!ftruncate(l->all->own_fd, 0) &&
				   pwrite(l->all->own_fd, l->owner, len, 0) == (ssize_t)len))
		return;
	log_warn(l->r->ex.name, "the owner of the lock of '%s' cannot be noted in the state "
		 "directory: a server after a killed one waits for 30 s", l->r->ex.path);
}

static void tell_waiting(struct locking *l)
{
	if (!l->told)
		log_warn(l->r->ex.name, "'%s' is locked by %s: waiting for it, for at most %u s "
			 "(--lock-timeout)", l->r->ex.path, l->owner,
			 l->r->ex.all->lock_timeout_ms / 1000);
	l->told = true;
}

/* True if the owner of the lock has the image open, or has died within the last 30 s.  Most clients
 * give their lock away when somebody asks, and write no more: so nobody is asked who lives. */
static bool owner_watches(const struct locking *l)
{
	rbd_image_watcher_t watchers[WATCHERS_MAX];
	size_t n = WATCHERS_MAX;
	bool found = false;
	int rc = rbd_lib.rbd_watchers_list(l->r->handle.image, watchers, &n);

	if (rc < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		found = found || !strcmp(watchers[i].addr, l->owner);
	rbd_lib.rbd_watchers_list_cleanup(watchers, n);
	return found;
}

/* If this fails, the cluster gives the dead owner up after 30 s. */
static void break_lock(struct locking *l)
{
	struct export *ex = &l->r->ex;
	int rc = rbd_lib.rbd_lock_break(l->r->handle.image, RBD_LOCK_MODE_EXCLUSIVE, l->owner);

	if (rc < 0)
		log_warn(ex->name, "'%s': the lock of a server that was killed, %s, cannot be "
			 "broken: %s: waiting for it", ex->path, l->owner, strerror(-rc));
	else
		log_info(ex->name, "'%s': the lock of a server that was killed, %s, is broken",
			 ex->path, l->owner);
}

static void lock_aside(void *arg)
{
	struct locking *l = arg;
	rbd_image_t image = l->r->handle.image;
	bool owned = learn_owner(l);

	if (owned && owner_was_ours(l)) {
		break_lock(l);
	} else if (owned && owner_watches(l)) {
		l->rc = -EBUSY;
		return;
	}
	l->rc = rbd_lib.rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);
	if (!l->rc)
		leave_name(l);
}

/* ---- the file ---- */

/* 0, -EWOULDBLOCK with l->owner, or -errno. */
static int lock_own(struct locking *l)
{
	struct export *ex = &l->r->ex;
	char name[STORE_ID_NAME_MAX];
	int fd;

	if (ex->all->state_dir < 0 || l->all->own_fd >= 0)
		return 0;
	store_id_name(&ex->id, "lock", name, sizeof(name));
	fd = lock_file_take(ex->all->state_dir, name, LOCK_EX);
	l->inherited = fd >= 0;
	if (fd >= 0)
		l->all->own_fd = fd;
	else if (fd == -EWOULDBLOCK)
		snprintf(l->owner, sizeof(l->owner), "another server on this machine");
	else
		log_warn(ex->name, "'%s' has no lock file in the state directory: %s: a server "
			 "after a killed one waits for 30 s", ex->path, strerror(-fd));
	return fd == -EWOULDBLOCK ? fd : 0;
}

/* The file stays, with the name: if the cluster is silent, the lock of this server outlives it, and
 * the next one breaks it. */
void store_rbd_unlock(struct store *store)
{
	struct store_rbd_all *all = store_rbd_all(store);

	if (all->own_fd >= 0)
		close(all->own_fd);
	all->own_fd = -1;
}

/* ---- both ---- */

int store_rbd_claim(struct export *ex, char *err, size_t errlen)
{
	const struct export *writer = store_rbd_all(ex->store)->writer;

	if (ex->readonly || writer == ex)
		return 0;
	snprintf(err, errlen, "export '%s': '%s' is written under the name '%s', and an image has "
		 "one name for writing: add ',readonly', or remove the other one first", ex->name,
		 ex->path, writer->name);
	return -EBUSY;
}

static int try_both(struct locking *l)
{
	int rc = lock_own(l);

	if (rc)
		return rc;
	rc = store_rbd_aside(lock_aside, l);
	return rc ? rc : l->rc;
}

static bool may_wait(int rc)
{
	return rc == -EWOULDBLOCK || rc == -EROFS || rc == -EBUSY || rc == -ETIMEDOUT;
}

/* 0, or -errno with words in @why; "": strerror(). */
static int lock_wait(struct locking *l, char *why, size_t len)
{
	const struct timespec retry = { .tv_nsec = RETRY_NS };
	const struct exports *e = l->r->ex.all;
	uint64_t since_ms = clock_now_ms();
	int rc;

	while (may_wait(rc = try_both(l))) {
		tell_waiting(l);
		if (clock_now_ms() - since_ms >= e->lock_timeout_ms) {
			snprintf(why, len, "is locked by %s: waited %u s (--lock-timeout)",
				 l->owner, e->lock_timeout_ms / 1000);
			return -EWOULDBLOCK;
		}
		if (atomic_load(&e->stopping)) {
			snprintf(why, len, "the server stops");
			return -ECANCELED;
		}
		nanosleep(&retry, NULL);
	}
	return rc;
}

int store_rbd_lock(struct export *ex, char *err, size_t errlen)
{
	struct locking l = { .r = store_rbd(ex), .all = store_rbd_all(ex->store) };
	char why[192] = "";
	int rc;

	/* The lock of a shared image comes with its first writer. */
	if (ex->readonly || ex->shared || l.r->handle.has_lock)
		return 0;
	rc = store_rbd_claim(ex, err, errlen);
	if (rc)
		return rc;
	if (!(l.r->features & RBD_FEATURE_EXCLUSIVE_LOCK)) {
		log_warn(ex->name, "'%s' has no feature exclusive-lock: nothing keeps another "
			 "writer away from it", ex->path);
		return 0;
	}
	rc = lock_wait(&l, why, sizeof(why));
	l.r->handle.has_lock = !rc;
	if (rc)
		snprintf(err, errlen, "export '%s': '%s' %s%s", ex->name, ex->path,
			 *why ? why : "cannot be locked: ", *why ? "" : strerror(-rc));
	return rc;
}
