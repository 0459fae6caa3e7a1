/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the slots, from session to session end.  References are taken and put on any thread, all
 * else happens on the control thread.  Only rnbd_devs_init() can fail. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "rnbd-dev.h"

int rnbd_devs_init(struct rnbd_devs *t, unsigned n, struct srv_sess *sess,
		   void (*quiet)(struct loop_msg *msg))
{
	t->devs = calloc(n ? n : 1, sizeof(*t->devs));
	if (!t->devs)
		return -ENOMEM;
	t->n = n;
	for (unsigned i = 0; i < n; i++) {
		struct rnbd_dev *dev = &t->devs[i];

		dev->id = i;
		dev->sess = sess;
		loop_msg_init(&dev->quiet_msg, quiet);
		list_init(&dev->closers);
	}
	return 0;
}

void rnbd_devs_fini(struct rnbd_devs *t)
{
	for (unsigned i = 0; i < t->n; i++)
		assert(t->devs[i].state == RNBD_DEV_FREE && !atomic_load(&t->devs[i].word));
	free(t->devs);
	t->devs = NULL;
	t->n = 0;
}

struct rnbd_dev *rnbd_dev_get(struct rnbd_devs *t, uint32_t id)
{
	struct rnbd_dev *dev;
	uint32_t w;

	if (id >= t->n)
		return NULL;
	dev = &t->devs[id];
	w = atomic_load_explicit(&dev->word, memory_order_relaxed);
	do {
		if (!(w & RNBD_DEV_USABLE))
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&dev->word, &w, w + 1, memory_order_acquire,
							memory_order_relaxed));
	return dev;
}

bool rnbd_dev_put(struct rnbd_dev *dev)
{
	uint32_t w = atomic_fetch_sub_explicit(&dev->word, 1, memory_order_acq_rel);

	assert(w & ~RNBD_DEV_USABLE);
	return w == 1;
}

struct rnbd_dev *rnbd_dev_find(const struct rnbd_devs *t, const struct export *ex)
{
	for (unsigned i = 0; i < t->n; i++) {
		if (t->devs[i].state != RNBD_DEV_FREE && t->devs[i].ex == ex)
			return &t->devs[i];
	}
	return NULL;
}

struct rnbd_dev *rnbd_dev_open(struct rnbd_devs *t, struct export *ex, enum rnbd_access_mode mode)
{
	for (unsigned i = 0; i < t->n; i++) {
		struct rnbd_dev *dev = &t->devs[i];

		if (dev->state != RNBD_DEV_FREE)
			continue;
		dev->state = RNBD_DEV_OPEN;
		dev->ex = ex;
		dev->mode = mode;
		/* ORDER: release; who sees the flag sees export and mode. */
		atomic_store_explicit(&dev->word, RNBD_DEV_USABLE, memory_order_release);
		return dev;
	}
	assert(!"more devices open than there are exports");
	return NULL;
}

bool rnbd_dev_begin_close(struct rnbd_dev *dev, enum rnbd_dev_state state)
{
	uint32_t w;

	assert(state == RNBD_DEV_LOST || state == RNBD_DEV_CLOSED);
	if (dev->state != RNBD_DEV_OPEN) {
		assert(dev->state != RNBD_DEV_FREE);
		dev->state = state;
		return false;	/* its quiet_msg is still to come */
	}
	dev->state = state;
	w = atomic_fetch_and_explicit(&dev->word, ~RNBD_DEV_USABLE, memory_order_acq_rel);
	return w == RNBD_DEV_USABLE;
}

bool rnbd_dev_revive(struct rnbd_dev *dev)
{
	uint32_t w = atomic_load_explicit(&dev->word, memory_order_relaxed);

	assert(dev->state == RNBD_DEV_LOST);
	do {
		if (!w)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&dev->word, &w, w | RNBD_DEV_USABLE,
							memory_order_acq_rel,
							memory_order_relaxed));
	dev->state = RNBD_DEV_OPEN;
	return true;
}

void rnbd_dev_free(struct rnbd_dev *dev)
{
	assert(dev->state == RNBD_DEV_LOST || dev->state == RNBD_DEV_CLOSED);
	assert(!atomic_load(&dev->word) && list_empty(&dev->closers));
	dev->state = RNBD_DEV_FREE;
	dev->ex = NULL;
}
