/* SPDX-License-Identifier: BSD-3-Clause */
/* A server's knowledge of the syncs of its files, kept for later servers.
 *
 * The kernel tells a write-back error once.  A server that was told may end, or a server may be
 * killed before the kernel tells.  Then a FLUSH of the next server would succeed without the data.
 * So this knowledge is written to a small file before it counts: one file for each exported file
 * with a writer, in a directory with the lifetime of the host's boot (/run/nbdkit-rtrs).  A server
 * that finds a sync with a begin and without an end counts a loss. */
#ifndef EXPORT_STATE_H
#define EXPORT_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct exports;
struct store;

/* ---- the record of a state file; any thread ---- */

/* Syncs under way, and losses.  The file knows of a change before the function returns that makes
 * the change.  The file is not mapped: if somebody cuts a mapped file short, the memory is gone,
 * and with it the server (SIGBUS). */

/* What is in the file. */
struct export_record {
	uint8_t magic[8];
	uint64_t losses;
	uint64_t syncing;		/* 0: no sync was under way */
};

struct export_state {
	/* Grows when an acknowledged write may have been lost.  Any thread. */
	_Atomic(uint64_t) losses;
	pthread_mutex_t lock;		/* changes, and the next ones; innermost */
	_Atomic(uint64_t) syncing;	/* syncs whose end is not known yet */
	int fd;				/* the file; -1: none */
	bool failed;			/* the file could not be written, and the log says so */
};

/* A struct export_state without a file. */
#define EXPORT_STATE_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 }

/* The state whose file is @fd, which is the state's then; NULL: no memory. */
struct export_state *export_record_create(int fd);
void export_record_destroy(struct export_state *state);
/* Open the file @name, and read its @record.  The descriptor, or -errno.  *@is_new: the file was
 * empty. */
int export_record_open(const char *name, int dirfd, struct export_record *record, bool *is_new);
/* False: another program wrote @record, or it is not whole. */
bool export_record_is_ours(const struct export_record *record);
/* Write the whole record: a file that was cut short is mended.  Under @state->lock, unless no other
 * thread has @state. */
void export_record_write(struct export_state *state);
/* A sync begins, or ends. */
void export_record_begin(struct export_state *state);
void export_record_end(struct export_state *state);
/* Count a loss. */
void export_record_lose(struct export_state *state);

/* ---- the files of all stores ---- */

/* Take over @state from a server that has ended: a sync without an end is a loss.  Returns true if
 * a loss was counted. */
bool export_state_adopt(struct export_state *state);

/* Open @dir for the files of @e's exports, before exports_lock().  A missing directory is made.
 * Returns 0, or -errno if @dir cannot be used.  Without @dir (NULL) or after an error clients
 * assume a reboot of this server's host: the first FLUSH of each client with unflushed writes
 * fails.  Main thread, as all of the following. */
int export_state_dir(struct exports *e, const char *dir);
/* Give each written file of @e its state in the state directory, if @e has a directory; after
 * exports_lock().  Returns 0, or -errno as above. */
int export_state_open(struct exports *e);
/* Give @store, which is written, its state, and adopt the state.  Returns 0, or -errno as above.
 * Any thread, while no other export comes or goes. */
int export_state_take(struct exports *e, struct store *store);
/* Let go of the state of @store, whose names go.  A state that tells of nothing is deleted.
 * Thread: as export_state_take(). */
void export_state_leave(struct exports *e, struct store *store);
/* Let go of all states of @e: the server ends in good order, and nothing is in flight. */
void export_state_close(struct exports *e);

#endif
