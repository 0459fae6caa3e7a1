/* SPDX-License-Identifier: BSD-3-Clause */
/* The device table of a session: the exports that the session has open, and their device ids
 * (doc/protocol.md 8.2).
 *
 * The control thread opens and closes; IO threads look a device up for every request.  Look-ups
 * need no lock: slots are never freed before the session, and one atomic word per slot holds the
 * id, the open flag and the number of requests with the device in use.  A closing device hands out
 * no more references, and exactly one srv_dev_put(), the last, returns true.
 *
 * A session opens each export at most once (a second OPEN of a name gives the same handle).  The
 * table grows by pages, which do not move.
 *
 * An id is the slot's index and, above the index, the number of times that the slot was used
 * before.  So a request for a closed device never reaches the next device in the slot, however
 * late the request comes: a write or a CLOSE may lie unread on a path that the client has given up
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
#include "srv-drr.h"
#include "srv-limit.h"

struct export;
struct srv_sess;

enum srv_dev_state {
	SRV_DEV_FREE,
	SRV_DEV_OPEN,
	SRV_DEV_LOST,		/* closing: the session lost its last path; may be revived */
	SRV_DEV_CLOSED,	/* closing: by CLOSE */
	SRV_DEV_KICKED,		/* closing: by the server; the client does not know */
};

struct srv_dev {
	_Atomic(uint64_t) word;		/* id << 32 | SRV_DEV_USABLE | references */
	struct export *ex;		/* constant while the word has the flag or a reference */
	enum rnbd_access_mode mode;	/* constant likewise */
	uint32_t id;			/* constant likewise; in a free slot: the next id */
	struct srv_sess *sess;
	struct srv_limit_share limit;	/* the session's place in line; srv-limit.h */
	struct srv_drr_flow *flows;	/* [threads][SRV_DRR_CLASSES], each of its thread;
					 * constant likewise */
	/* control thread */
	enum srv_dev_state state;
	struct list closers;		/* CLOSEs that wait until the last reference has gone */
	struct loop_msg quiet_msg;	/* to the control thread: closing, and no reference */
};

#define SRV_DEV_USABLE 0x80000000u

#define SRV_DEV_PAGE 64u
#define SRV_DEV_PAGES 256u
#define SRV_DEV_SLOTS (SRV_DEV_PAGE * SRV_DEV_PAGES)	/* a power of two */

struct srv_dev_table {
	struct srv_sess *sess;
	unsigned nthreads;
	void (*quiet)(struct loop_msg *msg);
	/* each [SRV_DEV_PAGE]; NULL: no device was in the page yet */
	_Atomic(struct srv_dev *) pages[SRV_DEV_PAGES];
};

/* Make @t empty, for a server of @nthreads.  @quiet runs on the control thread when a closing
 * device has lost its last reference. */
void srv_dev_table_init(struct srv_dev_table *t, struct srv_sess *sess, unsigned nthreads,
			void (*quiet)(struct loop_msg *msg));
/* Free the pages of @t, whose devices are all free. */
void srv_dev_table_fini(struct srv_dev_table *t);

/* ---- any thread ---- */

/* The slot of @id, in any state; NULL: the slot was never used. */
static inline struct srv_dev *srv_dev_slot(const struct srv_dev_table *t, uint32_t id)
{
	uint32_t slot = id % SRV_DEV_SLOTS;
	struct srv_dev *page = atomic_load_explicit(&t->pages[slot / SRV_DEV_PAGE],
						    memory_order_acquire);

	return page ? &page[slot % SRV_DEV_PAGE] : NULL;
}

/* The index of the slot, for people: small, and used again. */
static inline uint32_t srv_dev_number(const struct srv_dev *dev)
{
	return dev->id % SRV_DEV_SLOTS;
}

/* Take a reference on the open device @id.  NULL: @id is not open. */
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

/* Put a reference.  Returns true for the last reference of a closing device: the caller then posts
 * quiet_msg to the control thread. */
static inline bool srv_dev_put(struct srv_dev *dev)
{
	uint32_t w = (uint32_t)atomic_fetch_sub_explicit(&dev->word, 1, memory_order_acq_rel);

	assert(w & ~SRV_DEV_USABLE);
	return w == 1;
}

/* ---- control thread ---- */

/* The first used device, or NULL. */
struct srv_dev *srv_dev_first(const struct srv_dev_table *t);
/* The next used device behind @dev, or NULL. */
struct srv_dev *srv_dev_next(const struct srv_dev_table *t, const struct srv_dev *dev);
#define srv_dev_for_each(dev, table)                                                               \
	for (struct srv_dev *dev = srv_dev_first(table); dev; dev = srv_dev_next(table, dev))
/* The used device of @ex, or NULL. */
struct srv_dev *srv_dev_find(const struct srv_dev_table *t, const struct export *ex);
/* The used device @id, or NULL. */
struct srv_dev *srv_dev_by_id(const struct srv_dev_table *t, uint32_t id);
/* The most requests of other devices that entered the storage between the arrival of a request of
 * @dev, which is used, and its entry (srv-drr.h). */
uint64_t srv_dev_ahead_max(const struct srv_dev_table *t, const struct srv_dev *dev);
/* Open @ex in the lowest free slot.  NULL: no memory, or no id.  @ex must not be in the table. */
struct srv_dev *srv_dev_open(struct srv_dev_table *t, struct export *ex,
			     enum rnbd_access_mode mode);
/* Stop handing out references to @dev.  @state: LOST, CLOSED or KICKED; may change the state of a
 * device that is closing already.  True if the device has no reference: call srv_dev_free() now.
 * False: call srv_dev_free() when quiet_msg arrives. */
bool srv_dev_begin_close(struct srv_dev *dev, enum srv_dev_state state);
/* Make a LOST device usable again.  False: the last reference has just gone, and quiet_msg is on
 * its way. */
bool srv_dev_revive(struct srv_dev *dev);
/* Free the slot of @dev; the slot's next device gets another id.  @dev->closers must be empty. */
void srv_dev_free(struct srv_dev *dev);

#endif
