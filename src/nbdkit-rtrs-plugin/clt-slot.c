/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the permits of a session and the line of operations that wait for one; makes buffers
 * reachable for the peer.  Any thread; slots are freed with the session. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "clt-sess.h"

int clt_slots_init(struct clt_slots *s, unsigned n)
{
	int r;

	s->slot = calloc(n, sizeof(*s->slot));
	if (!s->slot)
		return -ENOMEM;
	r = bitmap_init(&s->permits, n);
	if (r < 0) {
		free(s->slot);
		s->slot = NULL;
		return r;
	}
	for (unsigned i = 0; i < n; i++)
		s->slot[i].id = i;
	s->n = n;
	atomic_store(&s->limit, n);
	return 0;
}

void clt_slots_fini(struct clt_slots *s)
{
	if (!s->slot)
		return;
	assert(bitmap_weight(&s->permits) == 0);
	bitmap_fini(&s->permits);
	free(s->slot);
	s->slot = NULL;
}

static struct clt_slot *permit_take(struct clt_slots *s)
{
	int id = bitmap_get(&s->permits);

	if (id < 0)
		return NULL;
	if ((unsigned)id >= atomic_load_explicit(&s->limit, memory_order_relaxed)) {
		bitmap_put(&s->permits, (unsigned)id);
		return NULL;
	}
	return &s->slot[id];
}

/* sess->lock held. */
static void permits_grant(struct clt_sess *sess)
{
	struct clt_slot *slot;

	while (!list_empty(&sess->permit_waiters) && (slot = permit_take(&sess->slots))) {
		struct clt_op *op = list_entry(sess->permit_waiters.next, struct clt_op, permit_link);

		list_del(&op->permit_link);
		atomic_fetch_sub(&sess->slots.nwaiting, 1);
		slot->next = op->granted;
		op->granted = slot;
		clt_wait_look(&op->waiter);
	}
}

struct clt_slot *clt_slot_get(struct clt_op *op)
{
	struct clt_sess *sess = op->sess;
	struct clt_slot *slot = NULL;

	if (!op->listed && !atomic_load_explicit(&sess->slots.nwaiting, memory_order_relaxed))
		slot = permit_take(&sess->slots);
	if (!slot) {
		LOCK_SCOPE(&sess->lock);
		if (!op->granted && list_empty(&op->permit_link)) {
			op->listed = true;
			list_add_tail(&sess->permit_waiters, &op->permit_link);
			/* ORDER: counted before the bitmap is looked at again; clt_slot_put()
			 * frees the bit before it reads the count. */
			atomic_fetch_add(&sess->slots.nwaiting, 1);
			permits_grant(sess);
		}
		slot = op->granted;
		if (!slot)
			return NULL;
		op->granted = slot->next;
	}
	slot->op = op;
	slot->status = 0;
	return slot;
}

void clt_slot_put(struct clt_sess *sess, struct clt_slot *slot)
{
	assert(atomic_load_explicit(&slot->state, memory_order_relaxed) == 0);
	slot->op = NULL;
	if (slot == &sess->ctl)
		return;
	bitmap_put(&sess->slots.permits, slot->id);
	if (atomic_fetch_add(&sess->slots.nwaiting, 0))
		clt_slot_regrant(sess);
}

void clt_slot_regrant(struct clt_sess *sess)
{
	clt_wait_batch_begin();
	pthread_mutex_lock(&sess->lock);
	permits_grant(sess);
	pthread_mutex_unlock(&sess->lock);
	clt_wait_batch_end();
}

void clt_slot_leave(struct clt_op *op)
{
	struct clt_sess *sess = op->sess;
	struct clt_slot *granted;

	pthread_mutex_lock(&sess->lock);
	if (!list_empty(&op->permit_link)) {
		list_del(&op->permit_link);
		atomic_fetch_sub(&sess->slots.nwaiting, 1);
	}
	granted = op->granted;
	op->granted = NULL;
	pthread_mutex_unlock(&sess->lock);

	while (granted) {
		struct clt_slot *next = granted->next;

		clt_slot_put(sess, granted);
		granted = next;
	}
}

static struct ibv_mr *slot_mr(const struct clt_slot *slot, const struct clt_path *path)
{
	const struct clt_sess *sess = path->sess;

	return path->mrs[slot == &sess->ctl ? sess->slots.n : slot->id];
}

static bool slot_has_key(const struct clt_slot *slot)
{
	return slot->op->dir == RTRS_DIR_READ && slot->op->buf && slot->len;
}

int clt_slot_map(struct clt_slot *slot, struct clt_path *path, struct ibv_sge *data,
		 struct rtrs_desc *desc)
{
	uint8_t *addr = (uint8_t *)slot->op->buf + slot->off;
	int r;

	if (!slot_has_key(slot)) {
		data->addr = (uintptr_t)addr;
		data->length = slot->len;
		data->lkey = path->dma_lkey;
		return 0;
	}
	r = fab_rereg_mr(slot_mr(slot, path), addr, slot->len,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (r < 0)
		return r;
	desc->addr = (uintptr_t)addr;
	desc->key = slot_mr(slot, path)->rkey;
	desc->len = slot->len;
	return 0;
}

void clt_slot_unmap(struct clt_slot *slot, struct clt_path *path)
{
	if (slot_has_key(slot))
		fab_revoke_mr(slot_mr(slot, path));
}

int clt_slot_attach(struct clt_path *path)
{
	unsigned n = path->sess->slots.n + 1;	/* and one for the control slot */

	if (path->mrs)
		return 0;
	path->mrs = calloc(n, sizeof(struct ibv_mr *));
	if (!path->mrs)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		path->mrs[i] = fab_reg_mr(path->pd, NULL, 0,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!path->mrs[i]) {
			int err = -errno;

			clt_slot_detach(path);
			return err;
		}
	}
	return 0;
}

void clt_slot_detach(struct clt_path *path)
{
	if (!path->mrs)
		return;
	for (unsigned i = 0; i <= path->sess->slots.n && path->mrs[i]; i++)
		fab_dereg_mr(path->mrs[i]);
	free(path->mrs);
	path->mrs = NULL;
}
