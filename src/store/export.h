/* SPDX-License-Identifier: BSD-3-Clause */
/* An export is a name under which clients find a store.  exports.h has the list of all exports.
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

#include "counter.h"
#include "export-spec.h"
#include "index.h"
#include "list.h"
#include "rnbd-msg.h"
#include "store.h"

struct export;
struct exports;

/* Failed operations since the log's last line about this kind; export-io-failed.c. */
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
		bool told; /* a line was logged lately, and a timer logs the rest */
		uint64_t more;
		uint64_t offset;	/* of the first of @more */
		int err;
	} kinds[EXPORT_FAILED_KINDS];
	struct export_writes_failed {
		uint64_t n;		/* in a row; 0: none */
		uint64_t since_ms, last_ms;	/* of the first and the last; clock_now_ms() */
		uint64_t wrote;		/* writes that had succeeded before the first */
		int err;		/* of the last */
	} writes;
};

/* The questions that a running server asks the storage of an export; srv-size.c, control thread. */
enum export_question {
	EXPORT_ASK_SIZE,		/* how many bytes can be exported now? */
	EXPORT_ASK_NAMED,		/* what does the path name now? */
	EXPORT_QUESTIONS
};

/* The answer to EXPORT_ASK_NAMED. */
enum export_named {
	EXPORT_NAMED_OPEN,		/* the storage that is open */
	EXPORT_NAMED_OTHER,		/* other storage, as after mv(1) */
	EXPORT_NAMED_NOTHING		/* as after unlink(2) */
};

/* One of the questions. */
struct export_asking {
	bool asked;			/* a question is with the storage */
	unsigned known, wanted;		/* answers that have come; the answer that requests wait
					 * for */
	bool takes_shrunk;		/* one of them takes a size that has shrunk in use */
	uint64_t since_ms;		/* asked: when it began */
};

/* A kind of storage, outside of rings (on a ring: struct store_io_ops, store-driver.h).  A driver
 * leaves a function out (NULL) that it has no use for, but not create, check, open and close.  Main
 * thread.  On a running server a worker calls open(), lock(), claim(), look(), check_same(),
 * let_go() and store_close() (export-life.h), while no other export comes or goes. */
struct store_driver {
	/* Targets that begin with @prefix belong to this driver; NULL: paths, which no other driver
	 * wants. */
	const char *prefix;
	/* The rows of its own options, whose fields are in struct export_spec. */
	struct opt_table options;
	/* Make an export that is not opened yet; NULL: no memory. */
	struct export *(*create)(void);
	/* Bytes of the driver in struct store, 0 until store_init(). */
	size_t store_own;
	void (*store_init)(struct store *store);
	/* Check whether target and options of @spec fit together, without opening anything.  0, or
	 * -errno with one line in @err.  Any thread. */
	int (*check)(const struct export_spec *spec, char *err, size_t errlen);
	/* Open ex->path as ex->spec says; learn size, id, ident and geometry.  0, or -errno
	 * with one line in @err; close() follows in any case. */
	int (*open)(struct export *ex, char *err, size_t errlen);
	/* Check that @ex, which is opened, can be served beside @other, a name of a store of this
	 * driver with the same id, ident or place.  0, or -errno with one line in @err. */
	int (*fits)(const struct export *ex, const struct export *other, char *err, size_t errlen);
	/* ex->store has got the name @ex. */
	void (*added)(struct export *ex);
	/* ex->store loses the name @ex. */
	void (*removed)(struct export *ex);
	/* Lock ex->store against other servers, with the descriptors of @ex (exports_lock()):
	 * exclusive if a name of the store is written.  A store with such a lock keeps the lock.
	 * Waits.  0, or -errno with one line in @err. */
	int (*lock)(struct export *ex, char *err, size_t errlen);
	/* After lock(): keep other programs of this machine away from storage that is written, and
	 * warn of programs that stay.  May wait.  Returns as lock() does. */
	int (*claim)(struct export *ex, char *err, size_t errlen);
	/* After claim() of the @n exports @all of this driver, at the start: warn of programs that
	 * stay.  Looks at this machine once for all. */
	void (*look)(const struct export *const *all, unsigned n);
	/* After lock(): check that ex->path still names the opened file, with its size.  Returns as
	 * lock() does. */
	int (*check_same)(const struct export *ex, char *err, size_t errlen);
	/* A sync of the storage of @ex has failed, perhaps in an earlier server: forget what memory
	 * holds of the storage and the storage may lack.  May wait.  NULL: memory holds nothing. */
	void (*drop)(struct export *ex);
	/* On a running server, before close(), on a worker: let go of all whose end may wait. */
	void (*let_go)(struct export *ex);
	/* At the end of the server, before close(), no IO is in flight: begin to let go of what may
	 * wait, so that all exports wait together.  NULL: nothing waits. */
	void (*leave)(struct export *ex);
	/* Capabilities, as bits 1 << CAP_..., that an export with shared=yes needs as long as it
	 * lives. */
	uint64_t shared_capabilities;
	/* Why no other server can share the storage ("shared=yes"); NULL: it can, and the
	 * driver has take(), yield() and renew().  Of these one at a time runs, on a worker of the
	 * store, whose writable name is @ex; they may wait. */
	const char *alone;
	/* Take the engine's lock.  A living owner has STORE_LEAD_PATIENCE_MS to give the lock back.
	 * Then the lock is broken, so that no later write of the owner lands; but not before
	 * @may_break_ms.  CLOCK_NEVER: a living owner keeps the lock, and has STORE_LEAD_POLITE_MS.
	 * The time of the owner began at @since_ms; 0: it begins now.  0, perhaps with words in
	 * @why, or -errno with words in @why.  -ESTALE: the lock was broken, and another server
	 * took it. */
	int (*take)(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
		    size_t len);
	/* Before take(), which may break the lock: forget all servers but this one and the owner
	 * of the lock, because an administrator says that they have gone.  NULL: the engine knows
	 * no more than the owner.  As take(). */
	int (*forget)(struct export *ex, char *why, size_t len);
	/* Give the lock back.  0; -EAGAIN: the lock stays until another server asks for it, and
	 * yield() comes again; or another -errno: another server has broken the lock. */
	int (*yield)(struct export *ex);
	/* True if claim() has found that this server has the lock of @store, from before its start,
	 * and may not give it back yet.  NULL: never.  Control thread. */
	bool (*keeps)(const struct store *store);
	/* Look whether this server still has the lock that take() took.  0: yes, or the engine does
	 * not tell; -ESHUTDOWN: another server has broken the lock.  On the worker of the store.
	 * NULL: the driver calls store_lead_lost() by itself. */
	int (*owns)(struct export *ex);
	/* True if another client of the engine has the storage of @ex, so that all requests fail
	 * until @ex is removed and added again.  NULL: never.  Any thread. */
	bool (*fenced)(const struct export *ex);
	/* Reopen the storage, after another server has broken the lock; no request is under way.
	 * 0, or -errno with words in @why. */
	int (*renew)(struct export *ex, char *why, size_t len);
	/* store_snapshot(), store.h; NULL: the storage can have none.  @text gets the name
	 * of the snapshot, or the reason.  On a thread of its own, while clients read and write. */
	int (*snapshot)(struct export *ex, const char *name, char *text, size_t len);
	/* Close the descriptors of open(), and free @ex. */
	void (*close)(struct export *ex);
	/* Give back what lock() and claim() took for @store, whose last name goes. */
	void (*store_close)(const struct exports *e, struct store *store);
};

/* The requests that the storage has, of one export on one ring.  Written by the thread of the
 * ring. */
struct export_pulse {
	_Alignas(64) _Atomic(unsigned) flying;
	_Atomic(uint64_t) since_ms;	/* of the last answer, or of the first request since */
	struct counter wrote;		/* writes and zeroings that succeeded */
};

/* The rungs of an export's ladder (export-life.h). */
enum export_rung {
	EXPORT_PARSED,			/* described (export-spec.h) */
	EXPORT_OPENED,
	EXPORT_JOINED,			/* a name of its store */
	EXPORT_TAKEN,			/* its store is locked and claimed as the name demands */
	EXPORT_USED,			/* struct export_users knows the export */
	EXPORT_ATTACHED,		/* to each ring */
	EXPORT_SHOWN,			/* clients find the export */
};

struct export_life_of {
	struct list link;		/* export_life.line or ready, or exports.removed */
	enum export_rung rung, goal;
	bool seen;			/* by a look at other users of the storage */
	void (*done)(struct export *ex, int rc, const char *err, void *arg);
	void *arg;			/* of @done */
};

struct export {
	struct list link;		/* exports.list */
	struct list store_link;		/* store.names */
	const struct store_driver *driver;	/* of @spec */
	struct index_node by_name, by_medium;	/* of exports */
	unsigned index;			/* of exports.slots; slot of each ring */
	struct export_spec spec;	/* a copy: of which export_create() made the export */
	const char *name, *path;	/* of @spec */
	const char *kind, *kind_text;	/* of the driver: "block" for programs, "block device" */
	bool hasty;			/* take() waits for no other server (export-retry.h) */
	bool direct;			/* of @spec, or as the storage needs: IO moves the memory
					 * of requests itself, by no cache */
	bool durable;			/* each WRITE and WRITE_ZEROES has FUA: no answer depends
					 * on a cache of the storage */
	/* Bytes, a multiple of 512: the size last learned; changed by the control thread. */
	_Atomic(uint64_t) size;
	uint64_t found;			/* the storage's last answer, which EXPORT_ASK_SIZE may
					 * not have taken; control thread */
	struct export_asking asking[EXPORT_QUESTIONS];
	enum export_named named;	/* the answer last learned; control thread */
	struct rnbd_dev_info geometry;	/* all but device_id and nsectors; for OPEN_RSP */
	/* Writes change blocks of this size as a whole; 0: any bytes. */
	uint32_t block_align;
	struct export_failures failures;	/* any thread */
	struct export_pulse *pulse;	/* [exports.nrings]; NULL: not a name of a store yet */

	/* control thread */
	unsigned held;			/* export_hold() */
	struct export_life_of life;

	void *user;			/* of struct export_users; constant while a ring has the
					 * export */
	struct exports *all;
	struct store_id id;
	uint64_t ident;			/* names the storage, also after a reboot */
	/* Numbers of the driver, 0: none.  Exports of which ident, place or id are the same are
	 * shown to fits(). */
	uint64_t place;			/* the storage, as this boot of the kernel numbers it */
	uint64_t disk;			/* the disk with the storage, all of it or a partition */
	/* Exports with the same number wait for each other in the storage: one file system, one
	 * device.  0: the storage waits for nothing. */
	uint64_t medium;
	struct store *store;		/* NULL: not opened yet */
};

/* A range in a request is 32 bits of bytes. */
#define EXPORT_RANGE_SECTORS (UINT32_MAX >> RNBD_SECTOR_SHIFT)

/* The size of @ex in bytes.  A client that was told a size in an OPEN_RSP meets this size, or a
 * newer one, in all requests that follow.  Any thread. */
static inline uint64_t export_size(const struct export *ex)
{
	return atomic_load_explicit(&ex->size, memory_order_acquire);
}

/* Make an export of a copy of @spec, which is checked, without opening anything; NULL: no memory.
 * Any thread. */
struct export *export_create(const struct export_spec *spec);
/* Fill the geometry with what holds for each storage: any length, FUA, no cache, no discard, and
 * zeroes if the export is written.  The driver adds its own.  Any thread. */
void export_geometry_init(struct export *ex);
/* Close @ex, which is a name of no store, and free it.  Any thread; may block. */
void export_free(struct export *ex);
/* For how long the storage of @ex has answered none of the requests that it has, on the worst ring,
 * in nanoseconds; 0: it has none.  Any thread, while the export is attached to the rings. */
uint64_t export_waits_ns(const struct export *ex);
/* The writes and zeroings that the storage of @ex has failed since the last one that succeeded;
 * none if the last one failed more than an hour ago.  Writes at the same time may count in either
 * order.  Any thread, while the export is attached to the rings. */
struct export_writes_failed export_writes_failed(struct export *ex);
/* Keep @ex, and its slot of each ring, until export_put().  Control thread. */
void export_hold(struct export *ex);
/* Put a reference of export_hold().  The last one lets a removed export go (exports.unheld).
 * Control thread. */
void export_put(struct export *ex);
/* Keep all names of @store until store_put().  Control thread. */
void store_hold(struct store *store);
/* Put a reference of store_hold().  Control thread. */
void store_put(struct store *store);

/* Open @ex in @mode by the sharing rules: 0, -EPERM, -EROFS (rw or migration of a read-only
 * export).  The caller holds @ex until export_release() with the same mode.  -EAGAIN: the store has
 * no writer and a latched error, which is to be forgotten first: run export_io_reopen() unless it
 * runs already, and try again after its end.  Only writers keep the error: a reader has no write
 * that the error could be about.  A store
 * with a lead: only if store_lead_lets().  Control thread. */
int export_acquire(struct export *ex, enum rnbd_access_mode mode);
/* Close @ex, which export_acquire() opened in @mode.  If the last writer leaves a latched error
 * behind, a loss is counted.  Call store_lead_closed() behind.  Control thread. */
void export_release(struct export *ex, enum rnbd_access_mode mode);

/* The error of a failed fsync, which stays: FLUSH and FUA fail in every session until all writers
 * have closed the export, and a client opens the export again (doc/decisions.md D13).  0 or -errno;
 * the first error is kept.  Any thread. */
static inline int export_sync_error(const struct export *ex)
{
	return atomic_load_explicit(&ex->store->sync_error, memory_order_acquire);
}

/* Bracket a sync, whose failure may be the only word of lost writes: if this server dies between
 * begun and ended, the next server assumes that writes were lost.  Returns the state for
 * export_sync_ended().  Any thread. */
static inline struct export_state *export_sync_begun(struct export *ex)
{
	struct export_state *state = store_state(ex->store);

	export_record_begin(state);
	return state;
}

/* The sync that export_sync_begun() marked in @state has ended.  ORDER: after export_sync_failed(),
 * if the sync failed.  Any thread. */
static inline void export_sync_ended(struct export_state *state)
{
	export_record_end(state);
}

/* Latch @err of a failed sync of @ex, and count a loss.  ORDER: before export_sync_ended().  Any
 * thread. */
static inline void export_sync_failed(struct export *ex, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&ex->store->sync_error, &none, err);
	export_record_lose(store_state(ex->store));
}

#endif
