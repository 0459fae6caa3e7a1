/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the mappings of the state files, from export_state_open() or export_state_take() to
 * export_state_leave(), and opens their directory, which exports_fini() closes.  Main thread, or a
 * worker (export-life.h).
 *
 * A state file is NAME.state, where NAME is the id of the store, so the state is found under any
 * name of the export.  The file has the size of a page and belongs to the server with the lock.
 * The file "id" has a random number of the directory.  A client that was told this number and finds
 * another cannot know what the servers in between have seen.  A state file without a loss is
 * deleted with its server.  A failure here may make a clean restart look like a loss, and never
 * hides a loss. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "export.h"
#include "exports.h"
#include "export-state.h"
#include "log.h"
#include "random.h"
#include "util.h"

#define STATE_MAGIC "rtrsync1"
#define STATE_SIZE 4096
#define ID_FILE "id"

_Static_assert(sizeof(struct export_state) <= STATE_SIZE, "a state file has room for the state");

static uint64_t random_number(void)
{
	uint64_t n;

	random_bytes(&n, sizeof(n));
	return n;
}

bool export_state_adopt(struct export_state *state)
{
	/* ORDER: the loss first.  A server killed in between counts the loss twice, instead of
	 * never. */
	if (!atomic_load(&state->syncing))
		return false;
	atomic_fetch_add(&state->losses, 1);
	atomic_store(&state->syncing, 0);
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

static void state_init(struct export_state *state, uint64_t losses)
{
	atomic_store(&state->losses, losses);
	atomic_store(&state->syncing, 0);
	memcpy(state->magic, STATE_MAGIC, sizeof(state->magic));
}

/* Give @store the mapped @state, with the losses that @store knows of. */
static void set_state(struct store *store, struct export_state *state)
{
	uint64_t known = atomic_load(&store->own_state.losses);

	if (atomic_load(&state->losses) < known)
		atomic_store(&state->losses, known);
	atomic_store_explicit(&store->state, state, memory_order_release);
}

/* Map the page of the state file @name; NULL with -errno in *@rc.  *@is_new: the file was empty. */
static struct export_state *map_file(const char *name, int dirfd, bool *is_new, int *rc)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
					0600);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0) {
		*rc = -errno;
		return NULL;
	}
	/* Allocate the page now: a page that a full file system cannot give later is SIGBUS. */
	*rc = -posix_fallocate(fd, 0, STATE_SIZE);
	if (*rc)
		return NULL;
	*is_new = !st.st_size;
	map = mmap(NULL, STATE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		return map;
	*rc = -errno;
	return NULL;
}

/* Map the state file of @store.  0 or -errno. */
static int map_state(struct store *store, int dirfd)
{
	char name[STORE_ID_NAME_MAX];
	struct export_state *state;
	bool is_new;
	int rc;

	store_id_name(&store->id, "state", name, sizeof(name));
	state = map_file(name, dirfd, &is_new, &rc);
	if (!state)
		return rc;
	if (is_new)
		state_init(state, 0);
	if (memcmp(state->magic, STATE_MAGIC, sizeof(state->magic))) {
		log_warn(store_oldest_name(store)->name,
			 "'%s' is no state of this program, or its server was killed while it was "
			 "made: clients will take this start for a reboot of the host",
			 name);
		state_init(state, random_number());
	}
	set_state(store, state);
	return 0;
}

int export_state_take(struct exports *e, struct store *store)
{
	const struct export *ex = store_oldest_name(store);
	int rc;

	if (e->state_dir < 0 || store_state(store) != &store->own_state)
		return 0;
	rc = map_state(store, e->state_dir);
	if (!rc && export_state_adopt(store_state(store)))
		log_event(LOG_LEVEL_WARN, LOG_FIELDS(WRITES_LOST, .export = ex->name), ex->name,
			  "the server before this one ended while '%s' was synced: clients "
			  "with unflushed writes are told",
			  ex->path);
	return rc;
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
	munmap(state, STATE_SIZE);
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
