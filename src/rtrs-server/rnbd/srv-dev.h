/* SPDX-License-Identifier: BSD-3-Clause */
/* The device table of a session: which exports it has open, under which device id (doc/protocol.md
 * 8.2).
 *
 * The control thread opens and closes; IO threads look devices up for every request.  So that they
 * need no lock, slots are never freed before the session and one atomic word per slot holds the id,
 * the open flag and the number of requests that use the device.  A device that is closing hands out
 * no more references, and the one who puts the last of them is told so exactly once.
 *
 * A session opens each export at most once (a second OPEN of a name gives the same handle).  The
 * table grows by pages, which do not move.
 *
 * An id is the slot's index and, above it, how often the slot was used before.  So what a client
 * sent to a device that it has closed since does nothing to the device that is in the slot now,
 * however late it comes: a write or a CLOSE may lie unread on a path that the client has given up
 * (doc/decisions.md D6). */
#ifndef SRV_DEV_H
#define SRV_DEV_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"
#include "list.h"
#include "rnbd-proto.h"

struct export;
struct srv_sess;

enum srv_dev_state {
	SRV_DEV_FREE,
	SRV_DEV_OPEN,
	SRV_DEV_LOST,		/* closing: its session lost its last path; may be revived */
	SRV_DEV_CLOSED,	/* closing: by CLOSE */
	SRV_DEV_KICKED,		/* closing: by us; its client does not know */
};

struct srv_dev {
	_Atomic(uint64_t) word;		/* id << 32 | SRV_DEV_USABLE | references */
	struct export *ex;		/* constant while there is one of the last two */
	enum rnbd_access_mode mode;	/* likewise */
	uint32_t id;			/* likewise; of a free one: the next */
	struct srv_sess *sess;
	/* control thread */
	enum srv_dev_state state;
	struct list closers;		/* CLOSEs that wait for the last reference to go */
	struct loop_msg quiet_msg;	/* to the control thread: closing, and no reference */
};

#define SRV_DEV_USABLE 0x80000000u

#define SRV_DEV_PAGE 64u
#define SRV_DEV_PAGES 256u
#define SRV_DEV_SLOTS (SRV_DEV_PAGE * SRV_DEV_PAGES)	/* a power of two */

struct srv_dev_table {
	struct srv_sess *sess;
	void (*quiet)(struct loop_msg *msg);
	/* each [SRV_DEV_PAGE]; NULL: no device was there yet */
	_Atomic(struct srv_dev *) pages[SRV_DEV_PAGES];
};

/* @quiet runs on the control thread when the last reference of a device goes while the device is
 * closing. */
void srv_dev_table_init(struct srv_dev_table *t, struct srv_sess *sess,
			void (*quiet)(struct loop_msg *msg));
/* Every device must be free. */
void srv_dev_table_fini(struct srv_dev_table *t);

/* ---- any thread ---- */

/* The slot of @id, whatever is in it; NULL: nothing was yet. */
static inline struct srv_dev *srv_dev_slot(const struct srv_dev_table *t, uint32_t id)
{
	uint32_t slot = id % SRV_DEV_SLOTS;
	struct srv_dev *page = atomic_load_explicit(&t->pages[slot / SRV_DEV_PAGE],
						    memory_order_acquire);

	return page ? &page[slot % SRV_DEV_PAGE] : NULL;
}

/* For people: ids that come again, and stay small. */
static inline uint32_t srv_dev_number(const struct srv_dev *dev)
{
	return dev->id % SRV_DEV_SLOTS;
}

/* A reference on the open device @id, or NULL. */
static inline struct srv_dev *srv_dev_get(const struct srv_dev_table *t, uint32_t id)
{
	struct srv_dev *dev = srv_dev_slot(t, id);
	uint64_t w;

	if (!dev)
		return NULL;
	w = atomic_load_explicit(&dev->word, memory_order_relaxed);
	do {
		if (!(w & SRV_DEV_USABLE) || w >> 32 != id)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&dev->word, &w, w + 1, memory_order_acquire,
							memory_order_relaxed));
	return dev;
}

/* Returns true when this was the last reference of a closing device: the caller then posts
 * quiet_msg to the control thread. */
static inline bool srv_dev_put(struct srv_dev *dev)
{
	uint32_t w = (uint32_t)atomic_fetch_sub_explicit(&dev->word, 1, memory_order_acq_rel);

	assert(w & ~SRV_DEV_USABLE);
	return w == 1;
}

/* ---- control thread ---- */

/* The first device that is not free, and the next one behind @dev; NULL: none. */
struct srv_dev *srv_dev_first(const struct srv_dev_table *t);
struct srv_dev *srv_dev_next(const struct srv_dev_table *t, const struct srv_dev *dev);
#define srv_dev_for_each(dev, table)                                                               \
	for (struct srv_dev *dev = srv_dev_first(table); dev; dev = srv_dev_next(table, dev))
/* The device of @ex that is not free, or NULL. */
struct srv_dev *srv_dev_find(const struct srv_dev_table *t, const struct export *ex);
/* The device @id that is not free, or NULL. */
struct srv_dev *srv_dev_by_id(const struct srv_dev_table *t, uint32_t id);
/* Open @ex in the lowest free slot; NULL: no memory, or no id.  @ex must not be in the table. */
struct srv_dev *srv_dev_open(struct srv_dev_table *t, struct export *ex,
			     enum rnbd_access_mode mode);
/* Hand out no more references.  @state: LOST, CLOSED or KICKED.  Returns true when there is none:
 * call srv_dev_free() now; otherwise when quiet_msg arrives.  A device that is closing may change
 * @state. */
bool srv_dev_begin_close(struct srv_dev *dev, enum srv_dev_state state);
/* Make a LOST device usable again.  False when its last reference has just gone and quiet_msg is on
 * its way. */
bool srv_dev_revive(struct srv_dev *dev);
/* The slot is free again, the id is not.  @dev->closers must be empty. */
void srv_dev_free(struct srv_dev *dev);

#endif
