/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the pages, each from its first device to the end of the session.  Any thread takes and puts
 * references; everything else happens on the control thread.  Only srv_dev_open() can fail. */
#include <assert.h>
#include <stdlib.h>

#include "srv-dev.h"

void srv_dev_table_init(struct srv_dev_table *t, struct srv_sess *sess, unsigned nthreads,
			void (*quiet)(struct loop_msg *msg))
{
	t->sess = sess;
	t->nthreads = nthreads;
	t->quiet = quiet;
	for (unsigned i = 0; i < SRV_DEV_PAGES; i++)
		atomic_init(&t->pages[i], NULL);
}

void srv_dev_table_fini(struct srv_dev_table *t)
{
	assert(!srv_dev_first(t));
	for (unsigned i = 0; i < SRV_DEV_PAGES; i++)
		free(atomic_load(&t->pages[i]));
}

/* The first used slot from @slot on, or NULL. */
static struct srv_dev *dev_used_from(const struct srv_dev_table *t, uint32_t slot)
{
	struct srv_dev *dev;

	for (; slot < SRV_DEV_SLOTS && (dev = srv_dev_slot(t, slot)); slot++) {
		if (dev->state != SRV_DEV_FREE)
			return dev;
	}
	return NULL;
}

struct srv_dev *srv_dev_first(const struct srv_dev_table *t)
{
	return dev_used_from(t, 0);
}

struct srv_dev *srv_dev_next(const struct srv_dev_table *t, const struct srv_dev *dev)
{
	return dev_used_from(t, srv_dev_number(dev) + 1);
}

struct srv_dev *srv_dev_find(const struct srv_dev_table *t, const struct export *ex)
{
	struct srv_dev *dev = srv_dev_first(t);

	while (dev && dev->ex != ex)
		dev = srv_dev_next(t, dev);
	return dev;
}

struct srv_dev *srv_dev_by_id(const struct srv_dev_table *t, uint32_t id)
{
	struct srv_dev *dev = srv_dev_slot(t, id);

	return dev && dev->state != SRV_DEV_FREE && dev->id == id ? dev : NULL;
}

/* Add the page with @slot as the first slot.  False: no memory. */
static bool dev_add_page(struct srv_dev_table *t, uint32_t slot)
{
	struct srv_dev *page = calloc(SRV_DEV_PAGE, sizeof(*page));

	if (!page)
		return false;
	for (unsigned i = 0; i < SRV_DEV_PAGE; i++) {
		page[i].id = slot + i;
		page[i].sess = t->sess;
		list_init(&page[i].closers);
	}
	/* ORDER: release; a thread that sees the page sees the devices of the page, none of which
	 * is usable. */
	atomic_store_explicit(&t->pages[slot / SRV_DEV_PAGE], page, memory_order_release);
	return true;
}

static unsigned dev_nflows(const struct srv_dev_table *t)
{
	return t->nthreads * SRV_DRR_CLASSES;
}

/* Give @dev its flows.  False: no memory. */
static bool dev_make_flows(const struct srv_dev_table *t, struct srv_dev *dev)
{
	dev->flows = malloc(dev_nflows(t) * sizeof(*dev->flows));
	for (unsigned i = 0; dev->flows && i < dev_nflows(t); i++)
		srv_drr_flow_init(&dev->flows[i]);
	return dev->flows;
}

uint64_t srv_dev_ahead_max(const struct srv_dev_table *t, const struct srv_dev *dev)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < dev_nflows(t); i++)
		most = MAX(most, atomic_load_explicit(&dev->flows[i].ahead_max,
						      memory_order_relaxed));
	return most;
}

struct srv_dev *srv_dev_open(struct srv_dev_table *t, struct export *ex, enum rnbd_access_mode mode)
{
	struct srv_dev *dev = NULL;
	uint32_t slot = 0;

	while (slot < SRV_DEV_SLOTS && (dev = srv_dev_slot(t, slot)) && dev->state != SRV_DEV_FREE)
		slot++;
	if (slot == SRV_DEV_SLOTS || (!dev && !dev_add_page(t, slot)))
		return NULL;
	dev = srv_dev_slot(t, slot);
	if (!dev_make_flows(t, dev))
		return NULL;
	dev->state = SRV_DEV_OPEN;
	dev->ex = ex;
	dev->mode = mode;
	srv_limit_share_init(&dev->limit);
	loop_msg_init(&dev->quiet_msg, t->quiet);
	/* ORDER: release; a thread that sees the flag sees export and mode. */
	atomic_store_explicit(&dev->word, (uint64_t)dev->id << 32 | SRV_DEV_USABLE,
			      memory_order_release);
	return dev;
}

bool srv_dev_begin_close(struct srv_dev *dev, enum srv_dev_state state)
{
	uint64_t w;

	assert(state == SRV_DEV_LOST || state == SRV_DEV_CLOSED || state == SRV_DEV_KICKED);
	if (dev->state != SRV_DEV_OPEN) {
		assert(dev->state != SRV_DEV_FREE);
		dev->state = state;
		return false;	/* quiet_msg is still to come */
	}
	dev->state = state;
	w = atomic_fetch_and_explicit(&dev->word, ~(uint64_t)SRV_DEV_USABLE, memory_order_acq_rel);
	return (uint32_t)w == SRV_DEV_USABLE;
}

bool srv_dev_revive(struct srv_dev *dev)
{
	uint64_t w = atomic_load_explicit(&dev->word, memory_order_relaxed);

	assert(dev->state == SRV_DEV_LOST);
	do {
		if (!(uint32_t)w)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&dev->word, &w, w | SRV_DEV_USABLE,
							memory_order_acq_rel,
							memory_order_relaxed));
	dev->state = SRV_DEV_OPEN;
	return true;
}

void srv_dev_free(struct srv_dev *dev)
{
	assert(dev->state == SRV_DEV_LOST || dev->state == SRV_DEV_CLOSED ||
	       dev->state == SRV_DEV_KICKED);
	assert(!(uint32_t)atomic_load(&dev->word) && list_empty(&dev->closers));
	dev->state = SRV_DEV_FREE;
	free(dev->flows);
	dev->flows = NULL;
	dev->ex = NULL;
	dev->id += SRV_DEV_SLOTS;
}
