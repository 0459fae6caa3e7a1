/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the storage's part of a reactor: slots for exports, the list of fixed buffers in use, a
 * mapping of zeroes.  Thread of the reactor.  Ends with export_ring_detach(), when nothing is in
 * flight. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "clock.h"
#include "export-ring.h"
#include "exports.h"
#include "log.h"
#include "store-driver.h"

static const struct store_io_ops *io_ops_of(const struct store_driver *driver)
{
	unsigned i = 0;

	while (store_drivers[i] != driver)
		i++;
	return store_drivers_io[i];
}

static struct export_ring *ring_alloc(struct reactor *r, unsigned index, unsigned nslots)
{
	struct export_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->reactor = r;
	ring->index = index;
	ring->nslots = nslots;
	list_init(&ring->finished);
	loop_task_init(&ring->finish_task, export_io_finish_task);
	ring->slots = calloc(MAX(nslots, 1u), sizeof(struct export_slot *));
	ring->names = calloc(MAX(nslots, 1u), sizeof(*ring->names));
	/* Never written to, so the mapping is the kernel's one page of zeroes. */
	ring->zeroes = mmap(NULL, EXPORT_ZEROES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!ring->slots || !ring->names || ring->zeroes == MAP_FAILED ||
	    bitmap_init(&ring->mems, STORE_URING_MEMS)) {
		if (ring->zeroes != MAP_FAILED)
			munmap(ring->zeroes, EXPORT_ZEROES);
		free(ring->names);
		free(ring->slots);
		free(ring);
		return NULL;
	}
	return ring;
}

/* @slot has left its ring, or has never been on it.  Detach the store if the ring has no other name
 * of the store. */
static void leave_store(struct export_slot *slot)
{
	struct store *store = slot->ex->store;

	if (!slot->ring->names[store->index] && slot->ops->detach_store)
		slot->ops->detach_store(slot->ring, store);
}

static int ring_add(struct reactor *r, struct export *ex, char *err, size_t errlen)
{
	struct export_ring *ring = reactor_storage(r);
	struct export_slot *slot;
	int rc;

	if (ex->index >= ring->nslots) {
		snprintf(err, errlen, "export '%s': the limit of %u exports is reached %s",
			 ex->name, ring->nslots, ring->nslots < EXPORT_RING_MAX ?
			 "(RLIMIT_NOFILE: ulimit -n, systemd: LimitNOFILE=)" :
			 "while the server runs");
		return -EMFILE;
	}
	assert(!ring->slots[ex->index]);
	slot = calloc(1, sizeof(*slot));
	if (!slot) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	slot->ring = ring;
	slot->ex = ex;
	slot->ops = io_ops_of(ex->driver);
	export_io_share_init(slot);
	export_io_failed_init(slot);
	rc = slot->ops->attach_store ? slot->ops->attach_store(ring, ex->store, err, errlen) : 0;
	if (!rc && slot->ops->attach)
		rc = slot->ops->attach(slot, err, errlen);
	if (rc) {
		leave_store(slot);
		free(slot);
		return rc;
	}
	ring->slots[ex->index] = slot;
	ring->names[ex->store->index]++;
	ring->nexports++;
	return 0;
}

int export_ring_add(struct reactor *r, struct export *ex, char *err, size_t errlen)
{
	int rc = ring_add(r, ex, err, errlen);

	if (!rc)
		export_io_share_allow_workers(r, reactor_storage(r)->nexports);
	return rc;
}

void export_ring_del(struct reactor *r, struct export *ex)
{
	struct export_ring *ring = reactor_storage(r);
	struct export_slot *slot = ring->slots[ex->index];

	export_io_failed_end(slot);
	if (slot->ops->detach)
		slot->ops->detach(slot);
	ring->slots[ex->index] = NULL;
	ring->names[ex->store->index]--;
	ring->nexports--;
	leave_store(slot);
	free(slot);
}

bool export_ring_has(const struct reactor *r, const struct export *ex)
{
	const struct export_ring *ring = reactor_storage(r);

	return ex->index < ring->nslots && ring->slots[ex->index];
}

unsigned export_ring_names(const struct reactor *r, const struct export *ex)
{
	return reactor_storage(r)->names[ex->store->index];
}

/* The number of slots of a ring, for all its life: the table of fixed files does not grow. */
static unsigned room_for(const struct exports *exports)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit);
	return MAX((unsigned)MIN(limit.rlim_cur / EXPORT_RING_NFIXED, (rlim_t)EXPORT_RING_MAX),
		   exports->slots.n);
}

int export_ring_attach(struct reactor *r, unsigned index, const struct exports *exports,
		       bool never_blocks, char *err, size_t errlen)
{
	struct export_ring *ring;
	struct export *ex;
	int rc;

	assert(!reactor_storage(r) && index < exports->nrings);
	ring = ring_alloc(r, index, room_for(exports));
	if (!ring) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	ring->never_blocks = never_blocks;
	reactor_set_storage(r, ring);
	rc = store_uring_attach(r, EXPORT_RING_NFIXED * ring->nslots, err, errlen);
	list_for_each(ex, &exports->list, link) {
		if (!rc)
			rc = ring_add(r, ex, err, errlen);
	}
	if (rc)
		export_ring_detach(r);
	else
		export_io_share_allow_workers(r, ring->nexports);
	return rc;
}

void export_ring_let_go(struct reactor *r)
{
	if (reactor_storage(r))
		store_uring_let_go(r);
}

void export_ring_detach(struct reactor *r)
{
	struct export_ring *ring = reactor_storage(r);

	if (!ring)
		return;
	assert(list_empty(&ring->finished));
	/* The ring keeps its references to memory, and to files unless export_ring_let_go() was
	 * called, until it is closed. */
	for (unsigned i = 0; i < ring->nslots; i++) {
		if (ring->slots[i])
			export_ring_del(r, ring->slots[i]->ex);
	}
	bitmap_fini(&ring->mems);
	munmap(ring->zeroes, EXPORT_ZEROES);
	free(ring->names);
	free(ring->slots);
	free(ring);
	reactor_set_storage(r, NULL);
}

uint64_t export_ring_stuck_ms(const struct reactor *r)
{
	uint64_t since =
		atomic_load_explicit(&reactor_storage(r)->inline_since_ms, memory_order_relaxed);

	return since ? clock_now_ms() - since : 0;
}

/* ---- fixed buffers ---- */

static void warn_memlock(size_t len)
{
	static _Atomic(bool) warned;
	struct rlimit limit;

	if (atomic_exchange(&warned, true) || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	log_warn(NULL, "%zu bytes cannot be made a fixed buffer: RLIMIT_MEMLOCK is %llu bytes; IO "
		 "continues without it, slightly slower (raise it with ulimit -l, systemd: "
		 "LimitMEMLOCK=)", len, (unsigned long long)limit.rlim_cur);
}

int export_ring_mem_add(struct reactor *r, void *addr, size_t len)
{
	struct export_ring *ring = reactor_storage(r);
	int mem = bitmap_get(&ring->mems), rc;

	if (mem < 0)
		return -ENOSPC;
	rc = store_uring_mem(r, (unsigned)mem, addr, len);
	if (!rc)
		return mem;
	bitmap_put(&ring->mems, (unsigned)mem);
	if (rc == -ENOMEM)
		warn_memlock(len);
	return rc;
}

void export_ring_mem_del(struct reactor *r, int handle)
{
	int rc = store_uring_mem(r, (unsigned)handle, NULL, 0);

	if (rc) {
		/* The slot is not used again, and its pages stay locked until the ring is
		 * closed. */
		log_warn(reactor_name(r), "cannot release a fixed buffer: %s", strerror(-rc));
		return;
	}
	bitmap_put(&reactor_storage(r)->mems, (unsigned)handle);
}
