/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of exports.  The main thread builds the list at start; the same thread, as control
 * thread, lets exports come and go while others are used (export-life.h). */
#ifndef EXPORTS_H
#define EXPORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct export;
struct export_life;
struct store;

struct exports {
	struct list list;		/* export.link */
	struct list stores;		/* store.link */
	struct list gone;		/* exports-losses.c */
	unsigned n;
	unsigned nslots;		/* above each export.index */
	unsigned nrings;		/* rings that serve them (export-ring.h) */
	_Atomic(bool) one_medium;	/* all have the same export.medium; any thread */
	bool locked;			/* by exports_lock() */
	unsigned lock_timeout_ms;	/* for each file */
	int state_dir;			/* -1: none; export_state_dir() */
	uint64_t state_id;		/* of the directory, or random */
	_Atomic(bool) stopping;		/* waits for locks and claims are given up; any thread */

	/* NULL: exports neither come nor go */
	struct export_life *life;
	/* Nobody refers to @ex any more. */
	void (*unheld)(struct exports *e, struct export *ex);
};

/* Parse "NAME=PATH[,readonly][,direct][,force]", open it, learn its geometry, append it.  Returns 0
 * or -errno with one clear line in @err: bad syntax, name empty, too long or with "..", duplicate
 * name, missing, unreadable, not writable without "readonly", neither a file nor a block device,
 * O_DIRECT not possible, size not a multiple of 512, size 0.  A ',' or '\' in PATH is written "\,",
 * "\\". */
int exports_add(struct exports *e, const char *spec, char *err, size_t errlen);
/* Is @spec one, whatever it names?  0, or -errno with one line in @err, as exports_add(). */
int exports_check(const struct exports *e, const char *spec, char *err, size_t errlen);
/* @nrings: how many rings will serve the exports, 0 if none will. */
void exports_init(struct exports *e, unsigned nrings);
void exports_fini(struct exports *e);
struct export *exports_find(const struct exports *e, const char *name);
/* Take @ex away, which nobody has open and no ring has.  Locks and claim of its store stay until
 * the last of the store's names goes.  Main thread. */
void exports_del(struct exports *e, struct export *ex);
/* Do all exports have the same export.medium?  Any thread. */
static inline bool exports_one_medium(const struct exports *e)
{
	return atomic_load_explicit(&e->one_medium, memory_order_relaxed);
}

#define EXPORTS_LOCK_TIMEOUT_MS 60000

/* Lock the file of each export of @e; once, after the last exports_add() and export_state_dir() and
 * before any IO: exclusive where it is written, shared where it is only exported read-only.  Waits
 * for another server, or who else may write to the file and has locked it, and says so with the
 * name of the holder.  The locks end with the exports.  Main thread; nothing else runs yet.
 * Returns 0, or -errno with one line in @err: -EWOULDBLOCK after @e->lock_timeout_ms; a file system
 * without locks; a path that names another file now than when it was opened. */
int exports_lock(struct exports *e, char *err, size_t errlen);

/* Claim the block devices that are written; after exports_lock(), which --no-lock leaves out, and
 * before any IO.  Waits for whoever has one and cannot be told, which may be a server that was
 * killed, and refuses what is mounted or in use otherwise, unless the export has "force".  Warns
 * of others who write to what is exported.  The claims end with the exports.  Main thread; as
 * exports_lock(). */
int exports_claim(struct exports *e, char *err, size_t errlen);

/* The losses of all exports together, since the state directory was made.  A client compares this
 * number when it comes back.  If the number differs and the client has writes that it did not
 * flush, it must tell its user: neither an export that is opened anew nor another server knows of
 * the error that its FLUSH would have met.  An export without a loss does not count, so exports
 * can be added or taken away.  A store that leaves keeps its part of the sum.  Control thread. */
uint64_t exports_losses(const struct exports *e);

/* ---- what an export goes through, up and down (export-life.c) ----
 * Control thread, unless a function says otherwise. */

/* Make @ex, which is opened, a name of its store.  0 or -ENOMEM.  And the way back: the store goes
 * with its last name. */
int exports_join(struct exports *e, struct export *ex);
void exports_leave(struct exports *e, struct export *ex);
/* Lock (@lock: unless --no-lock) and claim the store of @ex as its names demand.  Waits; any
 * thread, while no other export comes or goes.  0, or -errno with one line in @err. */
int exports_take(struct exports *e, struct export *ex, bool lock, char *err, size_t errlen);
/* If @ex is the only name of its store, give back locks, claim and state.  As exports_take(). */
void exports_release(struct exports *e, struct export *ex);
/* List @ex: clients find it, or do not find it any more. */
void exports_show(struct exports *e, struct export *ex);
void exports_hide(struct exports *e, struct export *ex);

/* @store, which is new, has the losses that it left with; and @store leaves. */
void exports_losses_come(struct exports *e, struct store *store);
void exports_losses_leave(struct exports *e, const struct store *store);
/* The end of @e: nobody asks for losses any more. */
void exports_losses_forget(struct exports *e);

#endif
