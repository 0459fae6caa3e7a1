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

#include <stdbool.h>

#include "export-record.h"

struct exports;
struct store;

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
