/* SPDX-License-Identifier: BSD-3-Clause */
/* A store is opened storage: one store for each file, device or image, however many exports are its
 * names.  The store has the facts that its names share: users, latched error, state file, the
 * blocks that are being written.  A store comes with the first of its names and goes with the last
 * one. */
#ifndef STORE_H
#define STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export-state.h"
#include "index.h"
#include "list.h"
#include "range.h"

struct export;
struct exports;
struct store_driver;
struct store_lead;

/* The id of a storage: bytes of its driver, printable and without '/', because files are named
 * after the id.  Other storage of this boot has other bytes. */
#define STORE_ID_MAX 80
struct store_id {
	uint8_t len;
	char bytes[STORE_ID_MAX];
};

/* The name of a file that the state directory keeps for the storage @id: @id with the extension
 * @ext.  No other storage of this boot has this name.  @size is STORE_ID_NAME_MAX.  Any thread. */
#define STORE_ID_NAME_MAX (STORE_ID_MAX + 8)
void store_id_name(const struct store_id *id, const char *ext, char *name, size_t size);

/* The state of reopening a store whose error is latched, see export_acquire(). */
enum export_reopen { EXPORT_REOPEN_NEEDED, EXPORT_REOPEN_RUNS, EXPORT_REOPEN_DONE };

/* The numbers by which stores are found. */
enum store_key {
	STORE_BY_ID,			/* the hash of store.id */
	STORE_BY_IDENT,			/* export.ident */
	STORE_BY_PLACE,			/* export.place */
	STORE_BY_DISK,			/* export.disk */
	STORE_KEYS
};

struct store {
	struct list link;		/* exports.stores */
	struct index_node by[STORE_KEYS];	/* of exports.stores_by; number 0: not there */
	struct store_id id;
	const struct store_driver *driver;
	unsigned index;			/* of exports.store_slots; slot of each ring */
	struct list names;		/* export.store_link, the oldest first */
	unsigned writers, users;	/* control thread */
	_Atomic(int) sync_error;	/* any thread */
	unsigned held;			/* store_hold(); control thread */
	enum export_reopen reopen;	/* control thread, as the next two */
	void (*reopen_done)(void *arg);
	void *reopen_arg;
	/* The losses grow at a failed sync, and when the last writer of a store with a latched
	 * error leaves (the error will be forgotten). */
	_Atomic(struct export_state *) state;	/* store_state() */
	/* Stands in for a file if the store is read-only, or without a directory.  Also has losses
	 * from before. */
	struct export_state own_state;
	struct store_lead *lead;	/* NULL: no other server has the store; constant while a
					 * ring has the store */
	struct range_lock ranges; /* export.block_align: of the blocks that are being written */
	_Alignas(max_align_t) unsigned char own[];	/* store_driver.store_own */
};

/* The state of @store, which changes when the first writable name comes, and at the end.  Any
 * thread. */
static inline struct export_state *store_state(const struct store *store)
{
	return atomic_load_explicit(&store->state, memory_order_acquire);
}

/* True if @a and @b are the same storage.  Any thread. */
bool store_id_equal(const struct store_id *a, const struct store_id *b);
/* The next store of @e behind @store, or the first one if @store is NULL, that may have the same
 * number @by as @ex: two numbers may have one hash.  NULL: no more.  Main thread, or a worker while
 * no export comes or goes. */
struct store *store_next_like(const struct exports *e, const struct store *store,
			      enum store_key by, const struct export *ex);
/* The store with the id of @ex; NULL: none.  Main thread, as the next one. */
struct store *store_find(const struct exports *e, const struct export *ex);
/* Make the store of @ex in @e, without a name; NULL: no memory. */
struct store *store_create(struct exports *e, const struct export *ex);
/* The first writable name of @store, or NULL.  Any thread, while no export comes or goes, as the
 * next two. */
struct export *store_writer(const struct store *store);
/* The same, of the names other than @ex. */
struct export *store_other_writer(const struct store *store, const struct export *ex);
/* The oldest name of @store, which has one. */
struct export *store_oldest_name(const struct store *store);
/* Take @store, which has no name, from @e, and free @store.  Main thread. */
void store_destroy(struct exports *e, struct store *store);

/* ---- losses; control thread ---- */

/* The losses of all exports together, since the state directory was made.  A client that comes back
 * compares this number.  If the number differs and the client has unflushed writes, the client must
 * tell its user: neither an export opened again nor another server knows of the error that a FLUSH
 * would have met.  An export without a loss does not count, so exports can be added or taken away.
 * A store that leaves keeps its part of the sum. */
uint64_t store_losses(const struct exports *e);
/* Give the new @store the losses with which the same storage left. */
void store_losses_come(struct exports *e, struct store *store);
/* Keep the losses of @store, which leaves. */
void store_losses_leave(struct exports *e, const struct store *store);
/* Free the losses of former stores. */
void store_losses_forget(struct exports *e);

/* ---- a snapshot of the storage of an export, made while clients write ---- */

/* What a machine that loses its power at that moment would find.  Everything that was answered
 * before is in it. */

#define SNAPSHOT_NAME_MAX 64		/* bytes of a name */
#define SNAPSHOT_PATIENCE_S 45		/* for the storage; less than rtrsctl's for the answer */

/* True if a snapshot may be called @name: letters, digits, '.', '_' and '-', and no '.' in
 * front. */
bool store_snapshot_is_name(const char *name);

/* Make the snapshot @name of @ex, which the caller holds, and which is open.  0, and @text is what
 * others call it; or -errno with the reason in @text.  -ETIMEDOUT: the storage works on it still,
 * and @ex must not end before this process does.  Waits, SNAPSHOT_PATIENCE_S at most; a worker. */
int store_snapshot(struct export *ex, const char *name, char *text, size_t len);

#endif
