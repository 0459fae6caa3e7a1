/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of exports.  The main thread builds the list at start; the same thread, as control
 * thread, lets exports come and go while others are used (export-life.h). */
#ifndef EXPORTS_H
#define EXPORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index.h"
#include "list.h"
#include "store.h"

struct export;
struct exports;
struct export_life;
struct export_spec;

struct exports {
	struct list list;		/* export.link */
	struct list removed;		/* export.life.link: taken off the list, and still in use */
	struct list stores;		/* store.link */
	struct index by_name;		/* of @list: export.by_name */
	struct index stores_by[STORE_KEYS];	/* store.by */
	struct slots slots, store_slots;	/* export.index, store.index */
	struct list gone;		/* store.c */
	struct list retries;		/* export_retry.link: without their storage */
	struct index retries_by_name;	/* export_retry.by_name */
	unsigned n;
	unsigned nrings;		/* rings that serve them (export-ring.h) */
	struct index by_medium;		/* of @list, without those of medium 0: export.by_medium */
	unsigned nmedia;		/* different ones */
	_Atomic(bool) one_medium;	/* all have the same export.medium; any thread */
	/* The start cannot lock or claim @ex because of @why: take @ex off the list, and return 0;
	 * export-retry.c.  NULL: the start fails. */
	int (*aside)(struct exports *e, struct export *ex, const char *why);
	/* The start opens storage, or may wait for lock_timeout_ms; NULL: nobody is told. */
	void (*waits)(struct exports *e);
	bool locked;			/* by exports_lock() */
	unsigned lock_timeout_ms;	/* for each file */
	int state_dir;			/* -1: none; export_state_dir() */
	uint64_t state_id;		/* of the directory, or random */
	_Atomic(bool) stopping;		/* give up the waits for locks and claims; any thread */

	/* NULL: exports neither come nor go */
	struct export_life *life;
	/* The last reference to @ex, or to its store, was put. */
	void (*unheld)(struct exports *e, struct export *ex);
};

/* Open the storage that @spec, which is checked, describes, learn its geometry, append the export.
 * Returns 0 or -errno with one clear line in @err: duplicate name, missing, unreadable, not
 * writable without "readonly", neither a file nor a block device, O_DIRECT not possible, size not a
 * multiple of 512, size 0. */
int exports_add(struct exports *e, const struct export_spec *spec, char *err, size_t errlen);
/* Begin with no exports.  @nrings rings will serve the exports, 0 if none will. */
void exports_init(struct exports *e, unsigned nrings);
/* Close and free all exports of @e, with no IO in flight. */
void exports_fini(struct exports *e);
/* The listed export called @name; NULL: none. */
struct export *exports_find(const struct exports *e, const char *name);
/* True if other servers may have a storage of @e, too. */
bool exports_any_shared(const struct exports *e);
/* Remove and free @ex, which no client has open and no ring has.  Locks and claim of the store stay
 * until the last of its names goes.  Main thread. */
void exports_del(struct exports *e, struct export *ex);
/* True if all exports have the same export.medium.  Any thread. */
static inline bool exports_one_medium(const struct exports *e)
{
	return atomic_load_explicit(&e->one_medium, memory_order_relaxed);
}

#define EXPORTS_LOCK_TIMEOUT_MS 60000
#define EXPORTS_HASTY_MS 1000u		/* for an export that is tried again */

/* For how long @ex waits for another server's lock or claim.  Any thread. */
unsigned exports_patience_ms(const struct export *ex);

/* Lock the file of each export of @e: exclusive if the file is written, shared if all its names are
 * read-only.  Waits for another server, or for another possible writer with a lock on the file, and
 * logs the name of the holder.  The locks end with the exports.  Call once: after the last
 * exports_add() and export_state_dir(), before any IO.  Main thread; nothing else runs yet.
 * Returns 0, or -errno with one line in @err: -EWOULDBLOCK after @e->lock_timeout_ms; a file system
 * without locks; a path that names another file by now.  With @e->aside an export that cannot be
 * locked is set aside, and the others wait no more than EXPORTS_HASTY_MS. */
int exports_lock(struct exports *e, char *err, size_t errlen);

/* Claim the block devices that are written; after exports_lock(), which --no-lock leaves out, and
 * before any IO.  Waits for an unknown holder, which may be a killed server.  Refuses a device that
 * is mounted or in use otherwise, unless the export has "force".  Warns of other writers of the
 * exported storage.  The claims end with the exports.  Main thread.  Returns as exports_lock()
 * does. */
int exports_claim(struct exports *e, char *err, size_t errlen);

/* ---- the steps of an export, up and down (export-life.c) ----
 * Control thread, unless a function says otherwise. */

/* Make @ex, which is opened, a name of its store.  0, or -errno with one line in @err: no memory,
 * or another export stands in the way (store_driver.fits). */
int exports_join(struct exports *e, struct export *ex, char *err, size_t errlen);
/* Undo exports_join().  The store goes with its last name. */
void exports_leave(struct exports *e, struct export *ex);
/* Lock the store of @ex, if @e is locked (not with --no-lock), and claim the store, as its names
 * demand.  Waits.  0, or -errno with one line in @err.  Any thread, while no other export comes or
 * goes. */
int exports_take(struct exports *e, struct export *ex, char *err, size_t errlen);
/* Give back locks, claim and state of the store of @ex, if @ex is its only name.  Thread: as
 * exports_take(). */
void exports_release(struct exports *e, struct export *ex);
/* List @ex: clients find the export. */
void exports_show(struct exports *e, struct export *ex);
/* Take @ex off the list: clients do not find the export any more. */
void exports_hide(struct exports *e, struct export *ex);

#endif
