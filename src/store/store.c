/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory of stores; main thread. exports.c gives names to stores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "exports.h"
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

/* 0: @ex is not found by this. */
static uint64_t number_of(const struct export *ex, enum store_key by)
{
	switch (by) {
	case STORE_BY_ID:
		return fnv1a(FNV1A_INIT, ex->id.bytes, ex->id.len) | 1;
	case STORE_BY_IDENT:
		return ex->ident;
	case STORE_BY_PLACE:
		return ex->place;
	default:
		return ex->disk;
	}
}

struct store *store_next_like(const struct exports *e, const struct store *store,
			      enum store_key by, const struct export *ex)
{
	uint64_t number = number_of(ex, by);
	struct index_node *node;

	node = number ? index_next(&e->stores_by[by], store ? &store->by[by] : NULL, number) : NULL;
	return node ? container_of(node - by, struct store, by[0]) : NULL;
}

struct store *store_find(const struct exports *e, const struct export *ex)
{
	struct store *store = NULL;

	while ((store = store_next_like(e, store, STORE_BY_ID, ex))) {
		if (store_id_equal(&store->id, &ex->id))
			break;
	}
	return store;
}

struct export *store_writer(const struct store *store)
{
	struct export *ex;

	list_for_each(ex, &store->names, store_link) {
		if (!ex->spec.readonly)
			return ex;
	}
	return NULL;
}

struct export *store_oldest_name(const struct store *store)
{
	return list_entry(store->names.next, struct export, store_link);
}

struct store *store_create(struct exports *e, const struct export *ex)
{
	size_t size = align_up(sizeof(struct store) + ex->driver->store_own,
			       _Alignof(struct store));
	struct store *store = calloc(1, size);

	if (!store || !slots_take(&e->store_slots, &store->index)) {
		free(store);
		return NULL;
	}
	store->id = ex->id;
	store->driver = ex->driver;
	list_init(&store->names);
	export_record_init(&store->own_state);
	atomic_init(&store->state, &store->own_state);
	range_lock_init(&store->ranges);
	if (store->driver->store_init)
		store->driver->store_init(store);
	list_add_tail(&e->stores, &store->link);
	for (enum store_key by = 0; by < STORE_KEYS; by++) {
		if (number_of(ex, by))
			index_add(&e->stores_by[by], &store->by[by], number_of(ex, by));
	}
	return store;
}

void store_destroy(struct exports *e, struct store *store)
{
	list_del(&store->link);
	for (enum store_key by = 0; by < STORE_KEYS; by++) {
		if (store->by[by].number)
			index_del(&e->stores_by[by], &store->by[by]);
	}
	slots_put(&e->store_slots, store->index);
	pthread_mutex_destroy(&store->own_state.lock);
	range_lock_fini(&store->ranges);
	free(store);
}
