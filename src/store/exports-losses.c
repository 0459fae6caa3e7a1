/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the losses of former stores; control thread.
 *
 * The sum of losses stays the same while a store with losses leaves and comes back.  The return of
 * an earlier value would hide a loss from a client away meanwhile.  Any other sum would tell
 * clients of other stores of a loss that is not theirs. */
#include <stdlib.h>

#include "clock.h"
#include "exports.h"
#include "log.h"
#include "store.h"
#include "util.h"

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

void exports_losses_come(struct exports *e, struct store *store)
{
	struct gone_store *gone = gone_find(e, &store->id);

	if (!gone)
		return;
	atomic_store(&store->own_state.losses, gone->losses);
	gone_free(gone);
}

void exports_losses_leave(struct exports *e, const struct store *store)
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

void exports_losses_forget(struct exports *e)
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

uint64_t exports_losses(const struct exports *e)
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
