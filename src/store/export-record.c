/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the record of a state, and its file. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "export-state.h"
#include "log.h"

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
		"that failed", strerror(errno));
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

/* ---- the file ---- */

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
