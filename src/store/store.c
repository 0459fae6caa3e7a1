/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory of stores, and the losses of former ones: main thread.  exports.c gives names to
 * stores.  And makes snapshots: a worker. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export.h"
#include "exports.h"
#include "log.h"
#include "process.h"
#include "store.h"
#include "util.h"
#include "worker.h"

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

struct export *store_other_writer(const struct store *store, const struct export *ex)
{
	struct export *other;

	list_for_each(other, &store->names, store_link) {
		if (other != ex && !other->spec.readonly)
			return other;
	}
	return NULL;
}

struct export *store_writer(const struct store *store)
{
	return store_other_writer(store, NULL);
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
	store->own_state = (struct export_state)EXPORT_STATE_INIT;
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

/* ---- losses ---- */

/* The sum of losses stays the same while a store with losses leaves and comes back.  The return of
 * an earlier value would hide a loss from a client away meanwhile.  Any other sum would tell
 * clients of other stores of a loss that is not theirs. */

/* A store that has left. */
struct gone_store {
	struct list link;		/* exports.gone */
	struct store_id id;
	uint64_t losses;
};

static struct gone_store *gone_find(const struct exports *e, const struct store_id *id)
{
	struct gone_store *gone;

	list_for_each(gone, &e->gone, link) {
		if (store_id_equal(&gone->id, id))
			return gone;
	}
	return NULL;
}

static void gone_free(struct gone_store *gone)
{
	list_del(&gone->link);
	free(gone);
}

void store_losses_come(struct exports *e, struct store *store)
{
	struct gone_store *gone = gone_find(e, &store->id);

	if (!gone)
		return;
	atomic_store(&store->own_state.losses, gone->losses);
	gone_free(gone);
}

void store_losses_leave(struct exports *e, const struct store *store)
{
	uint64_t losses = atomic_load(&store->own_state.losses);
	struct gone_store *gone = losses ? calloc(1, sizeof(*gone)) : NULL;

	if (!losses)
		return;
	if (!gone) {
		/* Rather tell every client of a loss than hide a loss from one client. */
		e->state_id++;
		log_warn(NULL, "out of memory: clients with unflushed writes are notified of "
			 "losses");
		return;
	}
	gone->id = store->id;
	gone->losses = losses;
	list_add_tail(&e->gone, &gone->link);
}

void store_losses_forget(struct exports *e)
{
	while (!list_empty(&e->gone))
		gone_free(list_entry(e->gone.next, struct gone_store, link));
}

/* The part of the sum for @losses of the store @id. */
static uint64_t losses_of(const struct store_id *id, uint64_t losses)
{
	uint64_t state = fnv1a(FNV1A_INIT, id->bytes, id->len) ^ losses;

	return losses ? random_next(&state) : 0;
}

uint64_t store_losses(const struct exports *e)
{
	const struct gone_store *gone;
	const struct store *store;
	uint64_t sum = e->state_id;

	list_for_each(store, &e->stores, link)
		sum += losses_of(&store->id, atomic_load(&store_state(store)->losses));
	list_for_each(gone, &e->gone, link)
		sum += losses_of(&gone->id, gone->losses);
	return sum;
}

/* ---- snapshots ----
 *
 * Nobody can end the call of the driver: a file system whose server is away, or a cluster, may
 * answer late or never. */

struct snapshot {
	struct export *ex;
	char name[SNAPSHOT_NAME_MAX + 1];
	int rc;
	char text[512];
};

bool store_snapshot_is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > SNAPSHOT_NAME_MAX || *name == '.')
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	}
	return true;
}

static void snapshot_aside(void *arg)
{
	struct snapshot *s = arg;

	s->rc = s->ex->driver->snapshot(s->ex, s->name, s->text, sizeof(s->text));
}

/* The caller has given up; the export stays, because it is held. */
static void snapshot_left(void *arg)
{
	struct snapshot *s = arg;

	log_warn(s->ex->name, "snapshot %s, late: %s", s->name, s->rc ? s->text : "made");
	free(s);
}

static int patience(void *arg, uint64_t ms)
{
	(void)arg;
	return ms < SNAPSHOT_PATIENCE_S * 1000ull ? 0 : -ETIMEDOUT;
}

int store_snapshot(struct export *ex, const char *name, char *text, size_t len)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct aside *call;
	int rc = s ? 0 : -ENOMEM;

	snprintf(text, len, "%s", s ? "" : "out of memory");
	if (s) {
		s->ex = ex;
		snprintf(s->name, sizeof(s->name), "%s", name);
		rc = aside_begin(&call, snapshot_aside, snapshot_left, s);
	}
	if (rc) {
		if (s)
			snprintf(text, len, "%s", threads_strerror(rc));
		free(s);
		return rc;
	}
	rc = aside_wait(call, patience, NULL);
	if (rc) {
		snprintf(text, len, "the storage has not answered for %d s: the snapshot may come "
			 "later, and the log says so", SNAPSHOT_PATIENCE_S);
		return rc;
	}
	rc = s->rc;
	snprintf(text, len, "%s", s->text);
	free(s);
	return rc;
}
