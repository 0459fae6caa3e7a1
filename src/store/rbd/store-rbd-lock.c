/* SPDX-License-Identifier: BSD-3-Clause */
/* Two locks on an image that is written.  Owns nothing except the time in which the server waits.
 *
 * librbd's exclusive lock: the cluster knows one writer.  The lock of a killed server lasts until
 * its watch of the image ends, 30 s, and nothing tells a dead owner from a slow one.
 *
 * So there is a lock file of our own in the state directory, with the name that the cluster has for
 * the owner.  The server that gets the file's lock and finds a name in the file knows that this
 * owner is dead, if the name was written into this file since this boot: it breaks the owner's lock
 * at once.  librbd fences the owner (blocklist) when a lock is broken, so no write of the dead
 * server lands later. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "exports.h"
#include "lock-file.h"
#include "log.h"
#include "store-rbd-priv.h"
#include "store-wait.h"
#include "util.h"
#include "worker.h"

#define RETRY_MS 200
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define LINE_SIZE 192

struct locking {
	struct store_rbd *r;
	struct store_rbd_all *all;
	char owner[STORE_RBD_OWNER_MAX];	/* of the lock in the way, or words for it */
	struct store_wait wait;
	bool inherited;			/* the lock file was taken now: its owner is dead */
	bool told_break;
	bool gave_up;			/* the cluster is silent, and the handle has gone */
};

/* A try to get librbd's lock; the caller may leave meanwhile. */
struct lock_try {
	struct rbd_handle handle;	/* of the image; the try's when the caller has left */
	char dead[STORE_RBD_OWNER_MAX];	/* whose lock may be broken; "": nobody's */
	char owner[STORE_RBD_OWNER_MAX];
	bool owned, broke;
	int break_rc;
	int rc;
};

/* ---- librbd's lock: these wait for the cluster, and run aside ---- */

/* True if the lock has an owner, who is t->owner then. */
static bool learn_owner(struct lock_try *t)
{
	snprintf(t->owner, sizeof(t->owner), "a client that the cluster does not name");
	return store_rbd_lock_owner(t->handle.image, t->owner) == 1;
}

/* True if the owner was dead, and the owner's lock is broken. */
static bool break_lock(struct lock_try *t)
{
	if (strcmp(t->dead, t->owner))
		return false;
	t->break_rc = rbd_lib.rbd_lock_break(t->handle.image, RBD_LOCK_MODE_EXCLUSIVE, t->owner);
	t->broke = t->break_rc >= 0;
	return t->broke;
}

static void lock_aside(void *arg)
{
	struct lock_try *t = arg;

	t->owned = learn_owner(t);
	if (t->owned && !break_lock(t) &&
	    store_rbd_lock_watches(t->handle.image, t->owner)) {
		t->rc = -EBUSY;
		return;
	}
	t->rc = rbd_lib.rbd_lock_acquire(t->handle.image, RBD_LOCK_MODE_EXCLUSIVE);
	if (!t->rc)
		t->owned = learn_owner(t);
}

static void lock_left(void *arg)
{
	struct lock_try *t = arg;

	/* The lock may have come at last. */
	t->handle.has_lock = !t->rc;
	store_rbd_connect_undo(&t->handle);
	free(t);
}

/* ---- and what was learned of it ---- */

/* The line of the lock file @fd for @owner.  In this file and since this boot it proves that the
 * owner has gone; in a copy, on this host or another one, it would not.  Returns its length; 0 if
 * boot or file cannot be told. */
static size_t owner_line(int fd, const char *owner, char line[LINE_SIZE])
{
	_cleanup_close_ int boot_fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
	char boot[40] = "";
	struct stat st;

	if (boot_fd < 0 || read(boot_fd, boot, sizeof(boot) - 1) <= 0 || fstat(fd, &st))
		return 0;
	boot[strcspn(boot, "\n")] = '\0';
	return (size_t)snprintf(line, LINE_SIZE, "%s %s %llx:%llx", owner, boot,
				(unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

/* The owner that the lock file, which was taken now, proves dead; "": there is none. */
static void read_dead(const struct locking *l, char dead[STORE_RBD_OWNER_MAX])
{
	char found[LINE_SIZE] = "", line[LINE_SIZE];
	int fd = l->all->own_fd;

	dead[0] = '\0';
	if (!l->inherited || pread(fd, found, sizeof(found) - 1, 0) <= 0)
		return;
	snprintf(dead, STORE_RBD_OWNER_MAX, "%.*s", (int)strcspn(found, " "), found);
	if (!owner_line(fd, dead, line) || strcmp(found, line))
		dead[0] = '\0';
}

/* Leave the name of the owner to the next server.  Without it that server waits. */
static void leave_name(const struct locking *l, bool known)
{
	char line[LINE_SIZE];
	int fd = l->all->own_fd;
	size_t len = known && fd >= 0 ? owner_line(fd, l->owner, line) : 0;

	if (fd < 0 || (!ftruncate(fd, 0) && pwrite(fd, line, len, 0) == (ssize_t)len))
		return;
	log_warn(l->r->ex.name, "the owner of the lock of '%s' cannot be recorded in the state "
		 "directory: the server after a killed one waits for 30 s", l->r->ex.path);
}

static void tell_waiting(const struct store_wait *wait, uint64_t waited_ms)
{
	const struct locking *l = container_of(wait, const struct locking, wait);

	log_warn(l->r->ex.name, "'%s' is locked by %s: waited %llu s, giving up after %u s "
		 "(--lock-timeout)", l->r->ex.path, l->owner,
		 (unsigned long long)waited_ms / 1000, exports_patience_ms(&l->r->ex) / 1000);
}

/* Without a break the cluster gives a dead owner up after 30 s. */
static void tell_break(struct locking *l, const struct lock_try *t)
{
	const struct export *ex = &l->r->ex;

	if (t->broke)
		log_info(ex->name, "'%s': the lock of a server that was killed, %s, is broken",
			 ex->path, t->dead);
	else if (t->break_rc && !l->told_break)
		log_warn(ex->name, "'%s': the lock of a server that was killed, %s, cannot be "
			 "broken: %s: waiting for it", ex->path, t->dead, strerror(-t->break_rc));
	l->told_break = l->told_break || t->break_rc;
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
		log_warn(ex->name, "'%s' has no lock file in the state directory: %s: the server "
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

	if (ex->spec.readonly || writer == ex)
		return 0;
	if (writer->life.goal == EXPORT_PARSED)
		snprintf(err, errlen, "export '%s': '%s' is still open as '%s', which was removed: "
			 "add it when its clients have closed it (rtrsctl export kick %s)",
			 ex->name, ex->path, writer->name, writer->name);
	else
		snprintf(err, errlen, "export '%s': '%s' is already exported for writing as '%s': "
			 "export it read-only (" STORE_READONLY "), or remove that export first",
			 ex->name, ex->path, writer->name);
	return -EBUSY;
}

/* The try has ended: 0, or -errno with l->owner. */
static int try_ended(struct locking *l, const struct lock_try *t)
{
	snprintf(l->owner, sizeof(l->owner), "%s", t->owner);
	tell_break(l, t);
	if (!t->rc)
		leave_name(l, t->owned);
	return t->rc;
}

static int try_cluster(struct locking *l)
{
	struct rbd_patience patience = store_rbd_connect_patience(l->r);
	struct lock_try *t = malloc(sizeof(*t));
	struct aside *call;
	int rc;

	if (!t)
		return -ENOMEM;
	*t = (struct lock_try){ .handle = l->r->handle };
	read_dead(l, t->dead);
	patience.whom = "the osds of the cluster, for its lock";
	rc = aside_begin(&call, lock_aside, lock_left, t);
	if (!rc) {
		rc = store_rbd_connect_wait(call, &patience);
		l->gave_up = rc;
	}
	if (l->gave_up) {
		l->r->handle = (struct rbd_handle){ 0 };
		return rc;
	}
	if (!rc)
		rc = try_ended(l, t);
	free(t);
	return rc;
}

static int try_both(struct locking *l)
{
	int rc = lock_own(l);

	if (rc)
		return rc;
	return try_cluster(l);
}

static bool may_wait(int rc)
{
	return rc == -EWOULDBLOCK || rc == -EROFS || rc == -EBUSY || rc == -ETIMEDOUT;
}

/* 0, or -errno with words in @why; "": strerror(). */
static int lock_wait(struct locking *l, char *why, size_t len)
{
	int rc, waits = 0;

	while (may_wait(rc = try_both(l)) && !l->gave_up && !(waits = store_wait(&l->wait)))
		;
	if (waits == -ETIMEDOUT) {
		snprintf(why, len, "is locked by %s: waited %u s (--lock-timeout)", l->owner,
			 exports_patience_ms(&l->r->ex) / 1000);
		return -EWOULDBLOCK;
	}
	if (waits) {
		snprintf(why, len, "the server stops");
		return waits;
	}
	if (l->gave_up && rc == -ETIMEDOUT)
		snprintf(why, len, "cannot be locked: the osds of the cluster do not answer for "
			 "%u s (client_mount_timeout): are they up (\"ceph osd stat\")?",
			 l->r->timeout_s);
	else if (l->gave_up)
		snprintf(why, len, "cannot be locked: the server stops");
	return rc;
}

int store_rbd_lock(struct export *ex, char *err, size_t errlen)
{
	struct locking l = {
		.r = store_rbd(ex), .all = store_rbd_all(ex->store),
		.wait = { .exports = ex->all, .retry_ms = RETRY_MS, .since_ms = clock_now_ms(),
			  .patience_ms = exports_patience_ms(ex),
			  .tell = ex->hasty ? NULL : tell_waiting },
	};
	char why[192] = "";
	int rc;

	/* The lock of a shared image comes with its first writer. */
	if (ex->spec.readonly || ex->spec.shared || l.r->handle.has_lock)
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

/* ---- who has librbd's lock; waits for the cluster, so it runs aside ---- */

#define WATCHERS_MAX 64

int store_rbd_lock_owner(rbd_image_t image, char owner[STORE_RBD_OWNER_MAX])
{
	rbd_lock_mode_t mode;
	char *owners[1];
	size_t n = 1;
	int rc = rbd_lib.rbd_lock_get_owners(image, &mode, owners, &n);

	if (rc == -ENOENT || (!rc && !n))
		return 0;
	if (rc < 0)
		return rc;
	snprintf(owner, STORE_RBD_OWNER_MAX, "%s", owners[0]);
	rbd_lib.rbd_lock_get_owners_cleanup(owners, n);
	return 1;
}

bool store_rbd_lock_watches(rbd_image_t image, const char *owner)
{
	rbd_image_watcher_t watchers[WATCHERS_MAX];
	size_t n = WATCHERS_MAX;
	bool found = false;
	int rc = rbd_lib.rbd_watchers_list(image, watchers, &n);

	if (rc < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		found = found || !strcmp(watchers[i].addr, owner);
	rbd_lib.rbd_watchers_list_cleanup(watchers, n);
	return found;
}
