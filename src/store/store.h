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
#include "list.h"
#include "range.h"

struct export;
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

/* The state of opening anew a store whose error is latched, see export_acquire(). */
enum export_anew { EXPORT_ANEW_NEEDED, EXPORT_ANEW_RUNS, EXPORT_ANEW_DONE };

struct store {
	struct list link;		/* exports.stores, by @index */
	struct store_id id;
	const struct store_driver *driver;
	unsigned index;			/* the lowest that was free; slot of each ring */
	struct list names;		/* export.store_link, the oldest first */
	unsigned writers, users;	/* control thread */
	_Atomic(int) sync_error;	/* any thread */
	unsigned held;			/* store_hold(); control thread */
	enum export_anew anew;		/* control thread, as the next two */
	void (*anew_done)(void *arg);
	void *anew_arg;
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
/* The store of @stores with the id @id; NULL: none.  Main thread, as all of the following. */
struct store *store_find(const struct list *stores, const struct store_id *id);
/* Make a store of @driver in @stores, without a name; NULL: no memory. */
struct store *store_create(struct list *stores, const struct store_id *id,
			   const struct store_driver *driver);
/* The first writable name of @store, or NULL.  Any thread, while no export comes or goes, as the
 * next one. */
struct export *store_writer(const struct store *store);
/* The oldest name of @store, which has one. */
struct export *store_oldest_name(const struct store *store);
/* Take @store, which has no name, from its list, and free @store. */
void store_destroy(struct store *store);

#endif
