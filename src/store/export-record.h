/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a state file (export-state.h): syncs under way, and losses.  The file knows of a
 * change before the function returns that makes the change.  Any thread.
 *
 * The file is not mapped: if somebody cuts a mapped file short, the memory is gone, and with it the
 * server (SIGBUS). */
#ifndef EXPORT_RECORD_H
#define EXPORT_RECORD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

/* Initialize @state, without a file. */
void export_record_init(struct export_state *state);
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

#endif
