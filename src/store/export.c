/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what an export is made of, the counts of the users of a store, and the references to exports
 * and stores; control thread.  doc/protocol.md 8.2 has the rules of sharing. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "export.h"
#include "exports.h"
#include "util.h"

struct export *export_create(const struct export_spec *spec)
{
	struct export *ex = spec->driver->create();

	if (!ex)
		return NULL;
	ex->driver = spec->driver;
	pthread_mutex_init(&ex->failures.lock, NULL);
	if (export_spec_copy(&ex->spec, spec)) {
		export_free(ex);
		return NULL;
	}
	ex->name = ex->spec.name;
	ex->path = ex->spec.path;
	ex->direct = spec->direct;
	return ex;
}

/* The session limits larger requests; the kernel splits requests at need. */
void export_geometry_init(struct export *ex)
{
	ex->geometry = (struct rnbd_dev_info){
		.max_hw_sectors = EXPORT_RANGE_SECTORS,
		.max_segments = UINT16_MAX,
		.max_write_zeroes_sectors = ex->spec.readonly ? 0 : EXPORT_RANGE_SECTORS,
		.logical_block_size = RNBD_SECTOR_SIZE,
		.fua = true,
	};
}

void export_free(struct export *ex)
{
	struct export_spec spec = ex->spec;

	pthread_mutex_destroy(&ex->failures.lock);
	free(ex->pulse);
	/* ORDER: the driver may log the names, and frees @ex. */
	ex->driver->close(ex);
	export_spec_free(&spec);
}

uint64_t export_waits_ns(const struct export *ex)
{
	uint64_t now = clock_now_ms(), most = 0;

	for (unsigned i = 0; i < ex->all->nrings; i++) {
		const struct export_pulse *p = &ex->pulse[i];
		uint64_t since;

		/* ORDER: a request that begins now has set its time before. */
		if (!atomic_load_explicit(&p->flying, memory_order_acquire))
			continue;
		since = atomic_load_explicit(&p->since_ms, memory_order_relaxed);
		if (now > since)
			most = MAX(most, now - since);
	}
	return most * 1000000;
}

static void export_tell_if_unheld(struct export *ex)
{
	if (!ex->held && !ex->store->held && ex->all->unheld)
		ex->all->unheld(ex->all, ex);
}

void export_hold(struct export *ex)
{
	ex->held++;
}

void export_put(struct export *ex)
{
	assert(ex->held);
	ex->held--;
	export_tell_if_unheld(ex);
}

void store_hold(struct store *store)
{
	store->held++;
}

void store_put(struct store *store)
{
	struct export *ex;

	assert(store->held);
	store->held--;
	list_for_each(ex, &store->names, store_link)
		export_tell_if_unheld(ex);
}

int export_acquire(struct export *ex, enum rnbd_access_mode mode)
{
	struct store *count = ex->store;
	unsigned max_writers = mode == RNBD_ACCESS_MIGRATION ? 2 : 1;

	if (mode != RNBD_ACCESS_RO) {
		if (ex->spec.readonly)
			return -EROFS;
		if (count->writers >= max_writers)
			return -EPERM;
	}
	if (!count->writers && export_sync_error(ex) && count->reopen != EXPORT_REOPEN_DONE)
		return -EAGAIN;
	count->reopen = EXPORT_REOPEN_NEEDED;	/* by the next client that opens the store without a
						 * writer */
	export_hold(ex);
	count->users++;
	count->writers += mode != RNBD_ACCESS_RO;
	return 0;
}

void export_release(struct export *ex, enum rnbd_access_mode mode)
{
	struct store *count = ex->store;

	assert(count->users);
	count->users--;
	if (mode != RNBD_ACCESS_RO) {
		assert(count->writers);
		count->writers--;
		if (!count->writers && export_sync_error(ex))
			export_record_lose(store_state(count));
	}
	export_put(ex);
}
