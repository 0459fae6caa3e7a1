/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that keep other servers from an exported file.  Owns nothing except the time in which the
 * server waits.  Main thread, at start, where SIGTERM still ends the process; or a worker
 * (export-life.h), where exports.stopping ends the wait.
 *
 * Three locks are needed, because every reader of a file may lock the file (doc/decisions.md D6):
 *   - flock(2) on a file of our own in the state directory: for servers of one user, and out of
 *     reach of others;
 *   - a byte far behind the end of the exported file, locked for writing by a writing server: for
 *     all servers, of any user, directory and container.  The write lock takes a description that
 *     can write.  A reader cannot have the write lock, and can keep a writer from it;
 *   - flock(2) on the exported file: for udev and for programs that lock images.
 *
 * The locks belong to the store's own descriptions (struct store_file_keep), which are fixed files
 * of the rings.  So the locks come free when no request of a dead server is in the storage any
 * more.
 *
 * A read-only store has shared locks, which become exclusive with its first written name.  The
 * shared locks are given back for each attempt, because flock(2) treats two descriptions of one
 * process like two processes. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "clock.h"
#include "exports.h"
#include "lock-file.h"
#include "log.h"
#include "process.h"
#include "store-file-priv.h"
#include "store-wait.h"

struct waiting {
	struct export *ex;
	bool writes;			/* exclusive locks are wanted */
	struct store_file_keep got;
	struct store_wait wait;		/* late: only holders that may write count */
	char who[160];			/* the process that has the lock */
	bool ended;			/* ... has ended */
	int own_rc;			/* not 0: why the lock file is missing */
	bool readers_ignored;		/* a reader keeps the byte from us */
	char ignored[160];		/* has flock(2), and may not write */
};

static int wait_for(struct waiting *w, pid_t pid)
{
	w->ended = !lock_holder_name(pid, w->who, sizeof(w->who));
	return -EWOULDBLOCK;
}

/* Wait for the process that took flock(2) on the file @st. */
static int wait_for_flock(struct waiting *w, const struct stat *st)
{
	pid_t pid = 0;

	lock_holders(st, &pid, 1);
	return wait_for(w, pid);
}

/* ---- the three locks: 0, -EWOULDBLOCK with w->who, or -errno ---- */

static int lock_own(struct waiting *w)
{
	int dir = w->ex->all->state_dir, fd;
	char name[STORE_ID_NAME_MAX];
	struct stat st = { 0 };

	if (dir < 0 || w->got.own_fd >= 0)
		return 0;
	store_id_name(&w->ex->id, "lock", name, sizeof(name));
	fd = lock_file_take(dir, name, w->writes ? LOCK_EX : LOCK_SH);
	if (fd == -EWOULDBLOCK) {
		fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
		return wait_for_flock(w, &st);
	}
	/* A full directory, or a file of others in place of the lock file, costs this lock
	 * alone. */
	w->own_rc = MIN(fd, 0);
	w->got.own_fd = MAX(fd, -1);
	return 0;
}

/* Locks of one byte exclude each other, so others have several read locks, or one write lock.  A
 * lock of a description has no pid here; a server has flock(2), too. */
static int lock_byte(struct waiting *w)
{
	bool reads = !w->writes;
	struct flock lock = { .l_type = reads ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET,
			      .l_start = STORE_FILE_WRITER_BYTE, .l_len = 1 };
	int fd = w->got.lock_fd;
	struct stat st;

	/* A reading server looks for a writing one, and leaves no lock in the way of the next
	 * server. */
	if (!reads && !fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	if (!reads && errno != EAGAIN && errno != EACCES)
		return -errno;
	if (fcntl(fd, F_OFD_GETLK, &lock) || fstat(fd, &st))
		return -errno;
	if (lock.l_type == F_UNLCK && reads)
		return 0;
	w->readers_ignored = lock.l_type == F_RDLCK && w->wait.late;
	if (w->readers_ignored)
		return 0;
	return lock.l_pid > 0 ? wait_for(w, lock.l_pid) : wait_for_flock(w, &st);
}

static int lock_file(struct waiting *w)
{
	int fd = w->got.lock_fd;
	struct stat st;

	*w->ignored = '\0';
	if (!flock(fd, (w->writes ? LOCK_EX : LOCK_SH) | LOCK_NB))
		return 0;
	if ((errno != EWOULDBLOCK && errno != EINTR) || fstat(fd, &st))
		return -errno;
	wait_for_flock(w, &st);
	if (!w->wait.late || store_file_holder_counts(fd, w->who, sizeof(w->who)))
		return -EWOULDBLOCK;
	snprintf(w->ignored, sizeof(w->ignored), "%s", w->who);
	return 0;
}

/* Give the shared locks of the store of @w back (@how is LOCK_UN), or take the locks again
 * (LOCK_SH). */
static void change_shared(const struct waiting *w, int how)
{
	const struct store_file_keep *keep = store_file_keep(w->ex);

	if (keep->lock_fd >= 0)
		flock(keep->lock_fd, how | LOCK_NB);
	if (keep->own_fd >= 0)
		flock(keep->own_fd, how | LOCK_NB);
}

static int lock_all(struct waiting *w)
{
	int rc;

	change_shared(w, LOCK_UN);
	rc = lock_own(w);
	if (!rc)
		rc = lock_byte(w);
	if (!rc)
		rc = lock_file(w);
	if (rc)
		change_shared(w, LOCK_SH);
	return rc;
}

/* ---- waiting ---- */

static void lock_tell_waiting(const struct store_wait *wait, uint64_t waited_ms)
{
	const struct waiting *w = container_of(wait, const struct waiting, wait);

	log_warn(w->ex->name,
		 "'%s' is locked by %s%s: waited %llu s, giving up after %u s (--lock-timeout; do "
		 "not use --no-lock to skip this: unsafe)",
		 w->ex->path, w->who,
		 w->ended ? " and whose last requests are still in the storage" : "",
		 (unsigned long long)waited_ms / 1000, exports_patience_ms(w->ex) / 1000);
}

/* Log the locks that are missing or ignored, and the end of a wait. */
static void tell_locked(const struct waiting *w)
{
	const struct export *ex = w->ex;

	if (w->own_rc)
		log_warn(ex->name,
			 "no lock file for '%s' in the state directory: %s: only locks on '%s' "
			 "keep other servers away",
			 ex->path, fds_strerror(w->own_rc), ex->path);
	if (w->readers_ignored)
		log_warn(
			ex->name,
			"'%s' is locked against writers by a process that reads it: ignored; "
			"a server of another user or with another --state-dir may not be kept away",
			ex->path);
	if (*w->ignored)
		log_warn(ex->name, "'%s' is locked by %s, which is not a writing server: ignored",
			 ex->path, w->ignored);
	if (w->wait.told_ms)
		log_info(ex->name, "'%s' is locked by this server now", ex->path);
}

/* Take all locks, or wait.  0, -EWOULDBLOCK: for too long, -ECANCELED, or -errno. */
static int lock_wait(struct waiting *w)
{
	int rc, waits = 0;

	while ((rc = lock_all(w)) == -EWOULDBLOCK && !(waits = store_wait(&w->wait)))
		;
	if (waits == -ECANCELED)
		return waits;
	if (!rc)
		tell_locked(w);
	return rc;
}

int store_file_lock_check_same(const struct export *ex, char *err, size_t errlen)
{
	struct stat st;
	bool same;

	if (stat(ex->path, &st)) {
		snprintf(err, errlen, "export '%s': '%s' has gone since it was opened: %s",
			 ex->name, ex->path, strerror(errno));
		return -errno;
	}
	if (store_file(ex)->is_block)
		same = S_ISBLK(st.st_mode) && st.st_rdev == store_file(ex)->dev;
	else
		same = st.st_dev == store_file(ex)->dev && st.st_ino == store_file(ex)->ino &&
		       (uint64_t)st.st_size == export_size(ex);
	if (same)
		return 0;
	snprintf(err, errlen,
		 "export '%s': '%s' was replaced or resized after it was opened: start again",
		 ex->name, ex->path);
	return -ESTALE;
}

/* Give the store the locks of @w, in place of its old locks. */
static void keep_locks(const struct waiting *w)
{
	struct store_file_keep *keep = store_file_keep(w->ex);

	store_file_close_fd(keep->lock_fd);
	store_file_close_fd(keep->own_fd);
	keep->lock_fd = w->got.lock_fd;
	keep->own_fd = w->got.own_fd;
	keep->writes = w->writes;
}

int store_file_lock(struct export *ex, char *err, size_t errlen)
{
	const struct store_file_keep *keep = store_file_keep(ex);
	struct waiting w = {
		.ex = ex, .writes = store_writer(ex->store), .got = { .own_fd = -1 },
		.wait = { .exports = ex->all, .retry_ms = STORE_WAIT_RETRY_MS,
			  .since_ms = clock_now_ms(), .patience_ms = exports_patience_ms(ex),
			  .tell_ms = STORE_WAIT_TELL_MS,
			  .tell = ex->hasty ? NULL : lock_tell_waiting },
	};
	int rc;

	if (keep->lock_fd >= 0 && (keep->writes || !w.writes))
		return 0;
	w.got.lock_fd = store_file_desc_reopen(ex, 0);
	rc = w.got.lock_fd < 0 ? w.got.lock_fd : lock_wait(&w);
	if (!rc) {
		keep_locks(&w);
		return 0;
	}
	store_file_lock_drop(ex->all, ex->store, &w.got);
	if (rc == -EWOULDBLOCK)
		snprintf(err, errlen,
			 "export '%s': '%s' is locked by %s: waited %u s (--lock-timeout)",
			 ex->name, ex->path, w.who, exports_patience_ms(ex) / 1000);
	else
		snprintf(err, errlen, "export '%s': '%s' cannot be locked: %s%s", ex->name,
			 ex->path, fds_strerror(rc), rc == -EMFILE ? "" :
			 ": its file system may have no locks (--no-lock exports it without, see "
			 "LOCKS in rtrs-server(8))");
	return rc;
}

void store_file_lock_drop(const struct exports *e, const struct store *store,
			  struct store_file_keep *keep)
{
	char name[STORE_ID_NAME_MAX];

	store_id_name(&store->id, "lock", name, sizeof(name));
	/* ORDER: the lock file first, while the other locks keep the next server waiting. */
	if (keep->own_fd >= 0)
		lock_file_drop(keep->own_fd, e->state_dir, name);
	store_file_close_fd(keep->lock_fd);
	keep->own_fd = keep->lock_fd = -1;
}
