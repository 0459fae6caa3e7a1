/* SPDX-License-Identifier: BSD-3-Clause */
/* The exports of a server and their stores; control thread, which is the main thread.
 *
 * The happy path of the start: exports_add() opens each export, makes it a name of its store and
 * lists it; exports_lock() and exports_claim() keep other servers and programs away.  An export
 * that comes later takes these steps by export-life.h, and is listed last.
 * exports_fini() ends all when no IO is in flight.
 *
 * Possible failures: an export that cannot be served is refused with one line that names it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "export-state.h"
#include "exports.h"
#include "store-lead.h"
#include "util.h"

void exports_init(struct exports *e, unsigned nrings)
{
	*e = (struct exports){ .nrings = nrings, .one_medium = true,
			       .lock_timeout_ms = EXPORTS_LOCK_TIMEOUT_MS, .state_dir = -1 };
	list_init(&e->list);
	list_init(&e->removed);
	list_init(&e->stores);
	list_init(&e->gone);
	list_init(&e->retries);
	index_init(&e->by_name);
	index_init(&e->by_medium);
	index_init(&e->retries_by_name);
	for (enum store_key by = 0; by < STORE_KEYS; by++)
		index_init(&e->stores_by[by]);
}

static void note_media(struct exports *e, unsigned nmedia)
{
	e->nmedia = nmedia;
	atomic_store_explicit(&e->one_medium, nmedia <= 1, memory_order_relaxed);
}

static void medium_comes(struct exports *e, struct export *ex)
{
	ex->by_medium.number = 0;
	if (!ex->medium)
		return;
	note_media(e, e->nmedia + !index_next(&e->by_medium, NULL, ex->medium));
	index_add(&e->by_medium, &ex->by_medium, ex->medium);
}

static void medium_goes(struct exports *e, struct export *ex)
{
	uint64_t medium = ex->by_medium.number;

	if (!medium)
		return;
	index_del(&e->by_medium, &ex->by_medium);
	note_media(e, e->nmedia - !index_next(&e->by_medium, NULL, medium));
}

/* ---- the steps of an export, up and down ---- */

/* Find the store of @ex, or make a new one; NULL: no memory. */
static struct store *store_of(struct exports *e, const struct export *ex)
{
	struct store *store = store_find(e, ex);

	if (store)
		return store;
	store = store_create(e, ex);
	if (store)
		store_losses_come(e, store);
	return store;
}

/* @store has no name. */
static void store_leave(struct exports *e, struct store *store)
{
	store_losses_leave(e, store);
	store_lead_destroy(store);
	store_destroy(e, store);
}

static struct export_pulse *new_pulses(unsigned nrings)
{
	size_t size = MAX(nrings, 1u) * sizeof(struct export_pulse);
	struct export_pulse *pulse = aligned_alloc(_Alignof(struct export_pulse), size);

	return pulse ? memset(pulse, 0, size) : NULL;
}

/* Check that @ex can be served beside all others. */
static int fits_all(const struct exports *e, const struct export *ex, char *err, size_t errlen)
{
	const struct store *store = NULL;
	int rc = 0;

	for (enum store_key by = STORE_BY_ID; by <= STORE_BY_PLACE && ex->driver->fits; by++) {
		while (!rc && (store = store_next_like(e, store, by, ex))) {
			if (store->driver == ex->driver)
				rc = ex->driver->fits(ex, store_oldest_name(store), err, errlen);
		}
	}
	return rc;
}

static int join_store(struct exports *e, struct export *ex)
{
	struct store *store;

	ex->pulse = new_pulses(e->nrings);
	if (!ex->pulse || !slots_take(&e->slots, &ex->index))
		return -ENOMEM;
	/* ORDER: the slot first, so that there are never more stores than slots. */
	store = store_of(e, ex);
	if (!store) {
		slots_put(&e->slots, ex->index);
		return -ENOMEM;
	}
	ex->store = store;
	list_add_tail(&store->names, &ex->store_link);
	/* ORDER: before exports_leave(), which has the driver undo it. */
	if (ex->driver->added)
		ex->driver->added(ex);
	if (ex->spec.shared && !ex->spec.readonly && store_lead_join(store, ex)) {
		exports_leave(e, ex);
		return -ENOMEM;
	}
	return 0;
}

int exports_join(struct exports *e, struct export *ex, char *err, size_t errlen)
{
	int rc = fits_all(e, ex, err, errlen);

	if (rc)
		return rc;
	rc = join_store(e, ex);
	if (rc)
		snprintf(err, errlen, "export '%s': out of memory", ex->name);
	return rc;
}

void exports_leave(struct exports *e, struct export *ex)
{
	struct store *store = ex->store;

	if (ex->driver->removed)
		ex->driver->removed(ex);
	store_lead_left(store, ex);
	list_del(&ex->store_link);
	ex->store = NULL;
	if (list_empty(&store->names))
		store_leave(e, store);
	slots_put(&e->slots, ex->index);
}

unsigned exports_patience_ms(const struct export *ex)
{
	unsigned most_ms = ex->all->lock_timeout_ms;

	return ex->hasty ? MIN(EXPORTS_HASTY_MS, most_ms) : most_ms;
}

static int check_same(struct export *ex, char *err, size_t errlen)
{
	return ex->driver->check_same ? ex->driver->check_same(ex, err, errlen) : 0;
}

static int claim_one(struct export *ex, char *err, size_t errlen)
{
	return ex->driver->claim ? ex->driver->claim(ex, err, errlen) : 0;
}

int exports_take(struct exports *e, struct export *ex, char *err, size_t errlen)
{
	int rc = e->locked && ex->driver->lock ? ex->driver->lock(ex, err, errlen) : 0;

	/* During the wait the file may have been replaced, or be of another size. */
	if (!rc && e->locked)
		rc = check_same(ex, err, errlen);
	return rc ? rc : claim_one(ex, err, errlen);
}

void exports_release(struct exports *e, struct export *ex)
{
	struct store *store = ex->store;

	if (store->names.next != store->names.prev)
		return;
	export_state_leave(e, store);
	if (store->driver->store_close)
		store->driver->store_close(e, store);
}

void exports_show(struct exports *e, struct export *ex)
{
	ex->life.rung = ex->life.goal = EXPORT_SHOWN;
	e->n++;
	list_add_tail(&e->list, &ex->link);
	index_add(&e->by_name, &ex->by_name, index_text(ex->name));
	if (e->life)
		store_lead_begin(ex->store);
	medium_comes(e, ex);
}

void exports_hide(struct exports *e, struct export *ex)
{
	ex->life.rung = EXPORT_ATTACHED;
	list_del(&ex->link);
	index_del(&e->by_name, &ex->by_name);
	e->n--;
	medium_goes(e, ex);
}

/* ---- at start and end ---- */

void exports_del(struct exports *e, struct export *ex)
{
	exports_hide(e, ex);
	exports_release(e, ex);
	exports_leave(e, ex);
	export_free(ex);
}

void exports_fini(struct exports *e)
{
	struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (ex->driver->leave)
			ex->driver->leave(ex);
	}
	while (!list_empty(&e->list))
		exports_del(e, list_entry(e->list.next, struct export, link));
	store_losses_forget(e);
	index_fini(&e->by_name);
	index_fini(&e->by_medium);
	index_fini(&e->retries_by_name);
	for (enum store_key by = 0; by < STORE_KEYS; by++)
		index_fini(&e->stores_by[by]);
	slots_fini(&e->slots);
	slots_fini(&e->store_slots);
	if (e->state_dir >= 0)
		close(e->state_dir);
	e->state_dir = -1;
}

bool exports_any_shared(const struct exports *e)
{
	struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (ex->spec.shared)
			return true;
	}
	return false;
}

struct export *exports_find(const struct exports *e, const char *name)
{
	struct index_node *node;

	index_for_each(node, &e->by_name, index_text(name)) {
		struct export *ex = container_of(node, struct export, by_name);

		if (!strcmp(ex->name, name))
			return ex;
	}
	return NULL;
}

int exports_add(struct exports *e, const struct export_spec *spec, char *err, size_t errlen)
{
	struct export *ex;
	int rc;

	if (exports_find(e, spec->name)) {
		snprintf(err, errlen, "export name '%s' is given twice", spec->name);
		return -EEXIST;
	}
	ex = export_create(spec);
	if (!ex) {
		snprintf(err, errlen, "export '%s': out of memory", spec->name);
		return -ENOMEM;
	}
	ex->all = e;
	if (e->waits)
		e->waits(e);
	rc = ex->driver->open(ex, err, errlen);
	if (!rc)
		rc = exports_join(e, ex, err, errlen);
	if (rc)
		export_free(ex);
	else
		exports_show(e, ex);
	return rc;
}

/* @ex cannot be served because of @rc, which @err explains.  A lenient start sets @ex aside: it has
 * waited once, and waits no more for the others.  Returns 0 then, or -errno. */
static int set_aside(struct exports *e, struct export *ex, int rc, const char *err)
{
	struct export *other;

	if (!e->aside || e->aside(e, ex, err))
		return rc;
	list_for_each(other, &e->list, link) {
		if (other->hasty)
			break;	/* by the first that was set aside, as all behind */
		other->hasty = true;
	}
	return 0;
}

static int lock_store_of(struct export *ex, char *err, size_t errlen)
{
	/* NFS asks for a description that can write for an exclusive lock. */
	struct export *writer = store_writer(ex->store);

	if (!writer)
		writer = store_oldest_name(ex->store);
	return writer->driver->lock ? writer->driver->lock(writer, err, errlen) : 0;
}

/* Take @step with each export of @e. */
static int step_with_all(struct exports *e,
			 int (*step)(struct export *ex, char *err, size_t errlen), char *err,
			 size_t errlen)
{
	struct export *ex, *next;
	int rc = 0;

	list_for_each_safe(ex, next, &e->list, link) {
		if (e->waits)
			e->waits(e);
		rc = step(ex, err, errlen);
		if (rc)
			rc = set_aside(e, ex, rc, err);
		if (rc)
			return rc;
	}
	return 0;
}

int exports_lock(struct exports *e, char *err, size_t errlen)
{
	int rc = step_with_all(e, lock_store_of, err, errlen);

	/* During the wait any of the files may have been replaced, or be of another size. */
	if (!rc)
		rc = step_with_all(e, check_same, err, errlen);
	e->locked = !rc;
	return rc;
}

int exports_claim(struct exports *e, char *err, size_t errlen)
{
	return step_with_all(e, claim_one, err, errlen);
}
