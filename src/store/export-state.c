/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the state files, from export_state_open() or export_state_take() to
 * export_state_leave(), and opens their directory, which exports_fini() closes.  Main thread, or a
 * worker (export-life.h).
 *
 * A state file is NAME.state, where NAME is the id of the store, so the state is found under any
 * name of the export.  The file has one record and belongs to the server with the lock.
 * The file "id" has a random number of the directory.  A client that was told this number and finds
 * another cannot know what the servers in between have seen.  A state file without a loss is
 * deleted with its server.  A failure here may make a clean restart look like a loss, and never
 * hides a loss. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "export-state.h"
#include "export.h"
#include "exports.h"
#include "log.h"
#include "process.h"
#include "util.h"

/* ---- the record of a state file; any thread ---- */

#define STATE_MAGIC "rtrsync1"

bool export_record_is_ours(const struct export_record *record)
{
	return !memcmp(record->magic, STATE_MAGIC, sizeof(record->magic));
}

void export_record_write(struct export_state *state)
{
	struct export_record record = { .losses = atomic_load(&state->losses),
					.syncing = atomic_load(&state->syncing) };

	if (state->fd < 0)
		return;
	memcpy(record.magic, STATE_MAGIC, sizeof(record.magic));
	if (pwrite(state->fd, &record, sizeof(record), 0) == sizeof(record) || state->failed)
		return;
	state->failed = true;
	log_err(NULL, "a state file cannot be written: %s: a later server may not learn of syncs "
		"that failed", fds_strerror(-errno));
}

void export_record_begin(struct export_state *state)
{
	LOCK_SCOPE(&state->lock);
	if (!atomic_fetch_add(&state->syncing, 1))
		export_record_write(state);
}

void export_record_end(struct export_state *state)
{
	LOCK_SCOPE(&state->lock);
	if (atomic_fetch_sub(&state->syncing, 1) == 1)
		export_record_write(state);
}

void export_record_lose(struct export_state *state)
{
	LOCK_SCOPE(&state->lock);
	atomic_fetch_add(&state->losses, 1);
	export_record_write(state);
}

/* ---- the file of a record ---- */

struct export_state *export_record_create(int fd)
{
	struct export_state *state = malloc(sizeof(*state));

	if (!state)
		return NULL;
	*state = (struct export_state)EXPORT_STATE_INIT;
	state->fd = fd;
	return state;
}

void export_record_destroy(struct export_state *state)
{
	close(state->fd);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

int export_record_open(const char *name, int dirfd, struct export_record *record, bool *is_new)
{
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;
	int rc;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) < 0 ? -errno : 0;
	*is_new = !st.st_size;
	/* Room for the record now, and not when a sync begins on a full file system. */
	if (!rc)
		rc = -posix_fallocate(fd, 0, sizeof(*record));
	if (!rc && pread(fd, record, sizeof(*record), 0) != sizeof(*record))
		rc = -EIO;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

#define ID_FILE "id"

static uint64_t random_number(void)
{
	uint64_t n;

	random_bytes(&n, sizeof(n));
	return n;
}

bool export_state_adopt(struct export_state *state)
{
	LOCK_SCOPE(&state->lock);
	if (!atomic_load(&state->syncing))
		return false;
	atomic_fetch_add(&state->losses, 1);
	atomic_store(&state->syncing, 0);
	export_record_write(state);
	return true;
}

/* ---- the directory ---- */

static int open_dir(const char *path)
{
	int fd;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Learn the number of the directory @dirfd, or give the directory a new number.  0 or -errno. */
static int read_id(int dirfd, uint64_t *id)
{
	_cleanup_close_ int fd = openat(dirfd, ID_FILE,
					O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t n;

	/* Several servers may use one directory. */
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return -errno;
	n = pread(fd, id, sizeof(*id), 0);
	if (n == sizeof(*id))
		return 0;
	*id = random_number();
	n = pwrite(fd, id, sizeof(*id), 0);
	return n == sizeof(*id) ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* ---- one file ---- */

/* Give @store the @state with what an earlier server left in @record. */
static void set_state(struct store *store, struct export_state *state, struct export_record *record,
		      bool is_new)
{
	uint64_t known = atomic_load(&store->own_state.losses);

	if (!is_new && !export_record_is_ours(record)) {
		log_warn(store_oldest_name(store)->name,
			 "its state file is not of this program, or was not completed: clients "
			 "will treat this start as a reboot of the host");
		*record = (struct export_record){ .losses = random_number() };
	}
	atomic_store(&state->losses, record->losses);
	atomic_store(&state->syncing, record->syncing);
	if (atomic_load(&state->losses) < known)
		atomic_store(&state->losses, known);
	export_record_write(state);
	atomic_store_explicit(&store->state, state, memory_order_release);
}

int export_state_take(struct exports *e, struct store *store)
{
	const struct export *ex = store_oldest_name(store);
	char name[STORE_ID_NAME_MAX];
	struct export_state *state;
	struct export_record record;
	bool is_new = false;
	int fd;

	if (e->state_dir < 0 || store_state(store) != &store->own_state)
		return 0;
	store_id_name(&store->id, "state", name, sizeof(name));
	fd = export_record_open(name, e->state_dir, &record, &is_new);
	if (fd < 0)
		return fd;
	state = export_record_create(fd);
	if (!state) {
		close(fd);
		return -ENOMEM;
	}
	set_state(store, state, &record, is_new);
	if (export_state_adopt(state))
		log_event(LOG_LEVEL_WARN, LOG_FIELDS(WRITES_LOST, .export = ex->name), ex->name,
			  "the previous server ended during a sync of '%s': clients with unflushed "
			  "writes are notified",
			  ex->path);
	if (atomic_load(&state->losses) && ex->driver->drop)
		ex->driver->drop(store_oldest_name(store));
	return 0;
}

void export_state_leave(struct exports *e, struct store *store)
{
	struct export_state *state = store_state(store);
	char name[STORE_ID_NAME_MAX];

	if (e->state_dir < 0 || state == &store->own_state)
		return;
	/* Without the lock another server may use the file, too. */
	if (e->locked && !atomic_load(&state->losses) && !atomic_load(&state->syncing)) {
		store_id_name(&store->id, "state", name, sizeof(name));
		unlinkat(e->state_dir, name, 0);
	}
	atomic_store(&store->own_state.losses, atomic_load(&state->losses));
	atomic_store(&store->state, &store->own_state);
	export_record_destroy(state);
}

/* ---- all of them ---- */

int export_state_dir(struct exports *e, const char *dir)
{
	int fd = dir ? open_dir(dir) : -1;

	e->state_dir = MAX(fd, -1);
	return dir ? MIN(fd, 0) : 0;
}

int export_state_open(struct exports *e)
{
	struct store *store;
	int rc;

	if (e->state_dir < 0) {
		e->state_id = random_number();
		return 0;
	}
	rc = read_id(e->state_dir, &e->state_id);
	list_for_each(store, &e->stores, link) {
		if (!rc && store_writer(store))
			rc = export_state_take(e, store);
	}
	if (rc)
		e->state_id = random_number();
	return rc;
}

void export_state_close(struct exports *e)
{
	struct store *store;

	list_for_each(store, &e->stores, link)
		export_state_leave(e, store);
}
