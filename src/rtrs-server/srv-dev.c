/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the slots, from session to session end.  References are taken and put on any thread, all
 * else happens on the control thread.  Only srv_dev_table_init() can fail. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "srv-dev.h"

int srv_dev_table_init(struct srv_dev_table *t, unsigned n, struct srv_sess *sess)
{
	t->devs = calloc(n ? n : 1, sizeof(*t->devs));
	if (!t->devs)
		return -ENOMEM;
	t->n = n;
	for (unsigned i = 0; i < n; i++) {
		struct srv_dev *dev = &t->devs[i];

		dev->id = i;
		dev->sess = sess;
		list_init(&dev->closers);
	}
	return 0;
}

void srv_dev_table_fini(struct srv_dev_table *t)
{
	for (unsigned i = 0; i < t->n; i++)
		assert(t->devs[i].state == SRV_DEV_FREE && !atomic_load(&t->devs[i].word));
	free(t->devs);
	t->devs = NULL;
	t->n = 0;
}

struct srv_dev *srv_dev_get(struct srv_dev_table *t, uint32_t id)
{
	struct srv_dev *dev;
	uint32_t w;

	if (id >= t->n)
		return NULL;
	dev = &t->devs[id];
	w = atomic_load_explicit(&dev->word, memory_order_relaxed);
	do {
		if (!(w & SRV_DEV_USABLE))
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&dev->word, &w, w + 1, memory_order_acquire,
							memory_order_relaxed));
	return dev;
}

bool srv_dev_put(struct srv_dev *dev)
{
	uint32_t w = atomic_fetch_sub_explicit(&dev->word, 1, memory_order_acq_rel);

	assert(w & ~SRV_DEV_USABLE);
	return w == 1;
}

struct srv_dev *srv_dev_find(const struct srv_dev_table *t, const struct export *ex)
{
	for (unsigned i = 0; i < t->n; i++) {
		if (t->devs[i].state != SRV_DEV_FREE && t->devs[i].ex == ex)
			return &t->devs[i];
	}
	return NULL;
}

struct srv_dev *srv_dev_open(struct srv_dev_table *t, struct export *ex, enum rnbd_access_mode mode,
			     void (*quiet)(struct loop_msg *msg))
{
	for (unsigned i = 0; i < t->n; i++) {
		struct srv_dev *dev = &t->devs[i];

		if (dev->state != SRV_DEV_FREE)
			continue;
		dev->state = SRV_DEV_OPEN;
		dev->ex = ex;
		dev->mode = mode;
		loop_msg_init(&dev->quiet_msg, quiet);
		/* ORDER: release; who sees the flag sees export and mode. */
		atomic_store_explicit(&dev->word, SRV_DEV_USABLE, memory_order_release);
		return dev;
	}
	assert(!"more devices open than there are exports");
	return NULL;
}

bool srv_dev_begin_close(struct srv_dev *dev, enum srv_dev_state state)
{
	uint32_t w;

	assert(state == SRV_DEV_LOST || state == SRV_DEV_CLOSED);
	if (dev->state != SRV_DEV_OPEN) {
		assert(dev->state != SRV_DEV_FREE);
		dev->state = state;
		return false;	/* its quiet_msg is still to come */
	}
	dev->state = state;
	w = atomic_fetch_and_explicit(&dev->word, ~SRV_DEV_USABLE, memory_order_acq_rel);
	return w == SRV_DEV_USABLE;
}

bool srv_dev_revive(struct srv_dev *dev)
{
	uint32_t w = atomic_load_explicit(&dev->word, memory_order_relaxed);

	assert(dev->state == SRV_DEV_LOST);
	do {
		if (!w)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&dev->word, &w, w | SRV_DEV_USABLE,
							memory_order_acq_rel,
							memory_order_relaxed));
	dev->state = SRV_DEV_OPEN;
	return true;
}

void srv_dev_free(struct srv_dev *dev)
{
	assert(dev->state == SRV_DEV_LOST || dev->state == SRV_DEV_CLOSED);
	assert(!atomic_load(&dev->word) && list_empty(&dev->closers));
	dev->state = SRV_DEV_FREE;
	dev->ex = NULL;
}
