/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory of stores; main thread. exports.c gives names to stores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "store.h"
#include "util.h"

bool store_id_equal(const struct store_id *a, const struct store_id *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

void store_id_name(const struct store_id *id, const char *ext, char *name, size_t size)
{
	snprintf(name, size, "%.*s.%s", id->len, id->bytes, ext);
}

struct store *store_find(const struct list *stores, const struct store_id *id)
{
	struct store *store;

	list_for_each(store, stores, link) {
		if (store_id_equal(&store->id, id))
			return store;
	}
	return NULL;
}

struct export *store_writer(const struct store *store)
{
	struct export *ex;

	list_for_each(ex, &store->names, store_link) {
		if (!ex->readonly)
			return ex;
	}
	return NULL;
}

struct export *store_oldest_name(const struct store *store)
{
	return list_entry(store->names.next, struct export, store_link);
}

/* Give @store, which is not in @stores, its index and its place there. */
static void take_index(struct list *stores, struct store *store)
{
	struct list *before = stores;
	struct store *next;

	list_for_each(next, stores, link) {
		if (next->index != store->index) {
			before = &next->link;
			break;
		}
		store->index++;
	}
	list_insert_before(before, &store->link);
}

struct store *store_create(struct list *stores, const struct store_id *id,
			   const struct store_driver *driver)
{
	size_t size = align_up(sizeof(struct store) + driver->store_own, _Alignof(struct store));
	struct store *store = calloc(1, size);

	if (!store)
		return NULL;
	store->id = *id;
	store->driver = driver;
	list_init(&store->names);
	export_record_init(&store->own_state);
	atomic_init(&store->state, &store->own_state);
	range_lock_init(&store->ranges);
	if (driver->store_init)
		driver->store_init(store);
	take_index(stores, store);
	return store;
}

void store_destroy(struct store *store)
{
	list_del(&store->link);
	pthread_mutex_destroy(&store->own_state.lock);
	range_lock_fini(&store->ranges);
	free(store);
}
