/* SPDX-License-Identifier: BSD-3-Clause */
/* One export: its storage with its geometry, and who has it open.  exports.h has the
 * list of all.
 *
 * Sharing (doc/protocol.md 8.2: many ro, one rw, a second rw only as migration) is counted for each
 * store across sessions, on the control thread. */
#ifndef EXPORT_H
#define EXPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"
#include "rnbd-msg.h"
#include "store.h"

struct export;
struct exports;

/* Operations that the storage failed since the log's last line about them; export-io-failed.c. */
enum export_failed_kind {
	EXPORT_FAILED_READ,
	EXPORT_FAILED_WRITE,
	EXPORT_FAILED_DISCARD,
	EXPORT_FAILED_ZEROES,
	EXPORT_FAILED_KINDS
};

struct export_failures {
	pthread_mutex_t lock;		/* innermost */
	struct export_failure {
		bool told; /* there was a line lately, and somebody tells what follows */
		uint64_t more;
		uint64_t offset;	/* of the first of these */
		int err;
	} kinds[EXPORT_FAILED_KINDS];
};

/* How often the storage was asked how large an export is; srv-size.c, control thread. */
struct export_sizing {
	bool asked;			/* it is being asked */
	unsigned known, wanted;		/* answers that have come, and that somebody waits for */
	uint64_t since_ms;		/* asked: when it began */
};

/* A kind of storage, outside of rings (on a ring: struct store_io_ops, store-driver.h).  Functions
 * that a driver has no use for are NULL, but for create, check, open and close.  Main thread, or a
 * worker (export-life.h). */
struct store_driver {
	/* Targets that begin with @prefix are this driver's; NULL: the target is a path, which no
	 * other driver wants. */
	const char *prefix;
	/* The flags behind a target, beside "readonly"; ends with NULL. */
	const char *const *flags;
	/* An export that is not opened yet; NULL: no memory. */
	struct export *(*create)(void);
	/* Bytes in struct store that are the driver's, 0 until store_init(). */
	size_t store_own;
	void (*store_init)(struct store *store);
	/* The user gave flags[@flag]. */
	void (*flag)(struct export *ex, unsigned flag);
	/* Do target and flags of @ex fit together?  0, or -errno with one line in @err.  Opens
	 * nothing. */
	int (*check)(const struct export *ex, char *err, size_t errlen);
	/* Open what ex->path names, as its flags say; learn size, id, ident and geometry.  0, or
	 * -errno with one line in @err; close() follows in any case. */
	int (*open)(struct export *ex, char *err, size_t errlen);
	/* @ex is a name of ex->store from now on. */
	void (*added)(struct export *ex);
	/* @ex is a name of ex->store no more. */
	void (*removed)(struct export *ex);
	/* Lock ex->store, with the descriptors of @ex, against other servers (exports_lock()):
	 * exclusive if one of its names is written.  A store that has such a lock keeps it.
	 * Waits.  0, or -errno with one line in @err. */
	int (*lock)(struct export *ex, char *err, size_t errlen);
	/* After lock() of all: keep others of this machine away from what is written, and warn of
	 * those that cannot be kept away.  May wait.  As lock(). */
	int (*claim)(struct export *ex, char *err, size_t errlen);
	/* After lock(): ex->path still names what was opened, with its size.  As lock(). */
	int (*check_same)(const struct export *ex, char *err, size_t errlen);
	/* Close what open() has opened, and free @ex. */
	void (*close)(struct export *ex);
	/* Give back what lock() and claim() took.  @store has no name any more. */
	void (*store_close)(const struct exports *e, struct store *store);
};

/* How far an export has come (export-life.h). */
enum export_rung {
	EXPORT_PARSED,			/* a line of text */
	EXPORT_OPENED,
	EXPORT_JOINED,			/* a name of its store */
	EXPORT_TAKEN,			/* its store is locked and claimed as the name demands */
	EXPORT_USED,			/* known to what serves it (struct export_users) */
	EXPORT_ATTACHED,		/* to each ring */
	EXPORT_SHOWN,			/* clients find it */
};

struct export_life_of {
	struct list link;		/* export_life.line, parked or ready */
	enum export_rung rung, goal;
	void (*done)(struct export *ex, int rc, const char *err, void *arg);
	void *arg;			/* of @done */
};

struct export {
	struct list link;		/* exports.list */
	struct list store_link;		/* store.names */
	const struct store_driver *driver;
	unsigned index;			/* the lowest that was free; slot of each ring */
	char *name, *path;
	const char *kind, *kind_text;	/* of the driver: "block" for programs, "block device" */
	bool readonly;
	bool direct;			/* IO moves the memory of requests itself, by no cache */
	/* Bytes, a multiple of 512: what is exported, as far as it is known.  Changed by the
	 * control thread. */
	_Atomic(uint64_t) size;
	struct export_sizing sizing;
	struct rnbd_dev_info geometry;	/* all but device_id and nsectors; told in OPEN_RSP */
	/* Writes change blocks of this size as a whole; 0: any bytes. */
	uint32_t block_align;
	struct export_failures failures;	/* any thread */

	/* control thread */
	unsigned held;			/* export_hold() */
	struct export_life_of life;

	void *user;			/* of what serves it; constant while a ring has it */
	struct exports *all;
	struct store_id id;
	uint64_t ident;			/* likewise, and the same after a reboot */
	/* exports with the same number wait for each other in the storage: one file system, one
	 * device; 0: this one waits for nothing */
	uint64_t medium;
	struct store *store;		/* what it is a name of; NULL: not opened yet */
};

/* Any thread.  Who was told of a size in an OPEN_RSP has it, or a newer one, in all requests that
 * follow. */
static inline uint64_t export_size(const struct export *ex)
{
	return atomic_load_explicit(&ex->size, memory_order_acquire);
}

/* @ex stays until export_put(), and so does its slot of each ring.  Control thread. */
void export_hold(struct export *ex);
void export_put(struct export *ex);
/* The same for all names of @store. */
void store_hold(struct store *store);
void store_put(struct store *store);

/* Sharing rules: 0, -EPERM, -EROFS (rw or migration of a read-only export).  Pairs with
 * export_release of the same mode.  -EAGAIN: it has no writer and a latched error, which is to be
 * forgotten first: run export_io_anew() unless it runs already, and try again when that is done.
 * Those who only read have no write that the error could be about, so they neither keep it nor wait
 * to be told.  Who has @ex open holds it.  Control thread. */
int export_acquire(struct export *ex, enum rnbd_access_mode mode);
void export_release(struct export *ex, enum rnbd_access_mode mode);

/* A failed fsync stays: FLUSH and FUA fail with it in every session until all who write have closed
 * the export and one opens it anew (doc/decisions.md D13).  0 or -errno; the first error is kept.
 * Any thread. */
static inline int export_sync_error(const struct export *ex)
{
	return atomic_load_explicit(&ex->store->sync_error, memory_order_acquire);
}

/* Bracket a sync, whose failure may be the only word of lost writes: if this server dies between
 * begun and ended, the next server assumes that writes were lost.  ended takes what begun has
 * returned, after everybody who must know the result knows it.  Any thread. */
static inline struct export_state *export_sync_begun(struct export *ex)
{
	struct export_state *state = store_state(ex->store);

	atomic_fetch_add(&state->syncing, 1);
	return state;
}

static inline void export_sync_ended(struct export_state *state)
{
	atomic_fetch_sub(&state->syncing, 1);
}

/* ORDER: before export_sync_ended(). */
static inline void export_sync_failed(struct export *ex, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&ex->store->sync_error, &none, err);
	atomic_fetch_add(&store_state(ex->store)->losses, 1);
}

#endif
