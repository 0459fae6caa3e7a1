/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of store-uring.c: the tables of a ring, which count what is registered.  One thread. */
#include <assert.h>
#include <stdlib.h>

#include "list.h"
#include "sim-storage.h"
#include "store-driver.h"

struct ring {
	struct list link;
	const struct reactor *reactor;
	unsigned mems;
};

static struct list rings = LIST_INIT(rings);

static struct ring *ring_of(const struct reactor *r)
{
	struct ring *ring;

	list_for_each(ring, &rings, link) {
		if (ring->reactor == r)
			return ring;
	}
	return NULL;
}

int store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	assert(ring && !ring_of(r));
	ring->reactor = r;
	list_add_tail(&rings, &ring->link);
	return 0;
}

/* What is still registered goes with the ring. */
void store_uring_let_go(struct reactor *r)
{
	struct ring *ring = ring_of(r);

	list_del(&ring->link);
	free(ring);
}

void store_uring_allow_workers(struct reactor *r, unsigned want)
{
}

int store_uring_mem(struct reactor *r, unsigned mem, void *addr, size_t len)
{
	ring_of(r)->mems += addr ? 1 : -1u;
	return 0;
}

unsigned sim_storage_mems(void)
{
	struct ring *ring;
	unsigned n = 0;

	list_for_each(ring, &rings, link)
		n += ring->mems;
	return n;
}
