/* SPDX-License-Identifier: BSD-3-Clause */
/* A server's knowledge of the syncs of its files, kept for the servers after it.
 *
 * The kernel tells a write-back error once.  The server that was told may end, or may be killed
 * before it was told.  Then a FLUSH of the next server would succeed without the data.  So this
 * knowledge lies in memory that is shared with a small file: one for each exported file that is
 * written, in a directory that lives as long as the boot of the host (/run/nbdkit-rtrs).  A server
 * that finds a sync with a begin and without an end counts a loss. */
#ifndef EXPORT_STATE_H
#define EXPORT_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exports;
struct store;

struct export_state {
	uint8_t magic[8];
	/* Grows when an acknowledged write may have been lost.  Any thread. */
	_Atomic(uint64_t) losses;
	/* Syncs whose end is not known yet.  Any thread. */
	_Atomic(uint64_t) syncing;
};

/* A server takes over @state from one that has ended: a sync without an end is a loss.  Returns
 * true if there was one. */
bool export_state_adopt(struct export_state *state);

/* Open @dir, which is made when it is missing, for the files of @e's exports; before
 * exports_lock().  Returns 0, or -errno if it cannot be used.  Without @dir (NULL) or after an
 * error clients take this server for one after a reboot of its host: then the first FLUSH of those
 * that have unflushed writes fails.  Main thread, as all of the following. */
int export_state_dir(struct exports *e, const char *dir);
/* Give each file of @e its state in that directory, if there is one; after exports_lock().  Returns
 * 0, or -errno as above. */
int export_state_open(struct exports *e);
/* The same for @store alone, whose first name that is written comes to a server that runs; also
 * adopts the state.  Any thread, while no other export comes or goes. */
int export_state_take(struct exports *e, struct store *store);
/* @store has no name any more that is written.  As export_state_take(). */
void export_state_leave(struct exports *e, struct store *store);
/* The server is about to end in good order and nothing is in flight. */
void export_state_close(struct exports *e);

#endif
