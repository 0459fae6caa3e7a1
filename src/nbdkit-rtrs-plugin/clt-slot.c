/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the permits of a session and the line of operations that wait for one.  Any thread; slots are
 * freed with the session. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "clt-sess.h"

int clt_slot_table_init(struct clt_slot_table *s, unsigned n)
{
	int r;

	s->slot = calloc(n, sizeof(*s->slot));
	if (!s->slot)
		return -ENOMEM;
	r = bitmap_init(&s->permits, n - 1);
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

void clt_slot_table_fini(struct clt_slot_table *s)
{
	if (!s->slot)
		return;
	assert(bitmap_weight(&s->permits) == 0 && !atomic_load(&s->zero_taken));
	bitmap_fini(&s->permits);
	free(s->slot);
	s->slot = NULL;
}

static struct clt_slot *permit_take(struct clt_slot_table *s)
{
	unsigned limit = atomic_load_explicit(&s->limit, memory_order_relaxed);
	int bit;

	if (limit == 1)
		return atomic_exchange(&s->zero_taken, true) ? NULL : &s->slot[0];
	bit = bitmap_get(&s->permits);
	if (bit < 0)
		return NULL;
	if ((unsigned)bit + 1 >= limit) {
		bitmap_put(&s->permits, (unsigned)bit);
		return NULL;
	}
	return &s->slot[bit + 1];
}

static void permit_put(struct clt_slot_table *s, const struct clt_slot *slot)
{
	if (slot->id)
		bitmap_put(&s->permits, slot->id - 1);
	else
		atomic_store(&s->zero_taken, false);
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

/* The permit for user messages.  Service thread, as all of them. */
static struct clt_slot *ctl_take(struct clt_sess *sess)
{
	struct clt_slot *ctl = &sess->ctl;

	if (ctl->op || atomic_exchange(&sess->slots.zero_sent, true))
		return NULL;
	ctl->id = 0;
	return ctl;
}

/* buf_id 0 is not in flight any more: user messages look again. */
static void zero_free(struct clt_sess *sess)
{
	struct clt_op *op;

	atomic_store(&sess->slots.zero_sent, false);
	if (!atomic_load(&sess->slots.nwaiting))
		return;
	LOCK_SCOPE(&sess->lock);
	list_for_each(op, &sess->permit_waiters, permit_link) {
		if (!op->user)
			break;
		clt_wait_look(&op->waiter);
	}
}

bool clt_slot_enter(struct clt_op *op, struct clt_slot *slot)
{
	struct clt_sess *sess = op->sess;

	if (slot->id || slot == &sess->ctl || !atomic_exchange(&sess->slots.zero_sent, true))
		return true;
	LOCK_SCOPE(&sess->lock);
	op->listed = true;
	if (list_empty(&op->up_link))
		list_add_tail(&sess->up_waiters, &op->up_link);
	/* RACE: the other one may have ended, and woken those that were listed, since. */
	return !atomic_exchange(&sess->slots.zero_sent, true);
}

void clt_slot_exit(struct clt_op *op, struct clt_slot *slot)
{
	if (!slot->id && slot != &op->sess->ctl)
		zero_free(op->sess);
}

/* In front of all IO. */
static void line_add(struct clt_sess *sess, struct clt_op *op)
{
	struct clt_op *before;

	if (!op->user) {
		list_add_tail(&sess->permit_waiters, &op->permit_link);
		return;
	}
	list_for_each(before, &sess->permit_waiters, permit_link) {
		if (!before->user)
			break;
	}
	list_add_tail(&before->permit_link, &op->permit_link);
}

/* sess->lock held. */
static void line_leave(struct clt_op *op)
{
	if (list_empty(&op->permit_link))
		return;
	list_del(&op->permit_link);
	atomic_fetch_sub(&op->sess->slots.nwaiting, 1);
}

static struct clt_slot *user_get(struct clt_op *op)
{
	struct clt_slot *slot = ctl_take(op->sess);

	if (slot && op->listed)
		clt_slot_leave(op);
	return slot;
}

struct clt_slot *clt_slot_get(struct clt_op *op)
{
	struct clt_sess *sess = op->sess;
	struct clt_slot *slot = NULL;

	/* Where there is one permit, IO would keep it from the user message that it waits for. */
	if (op->user && atomic_load(&sess->slots.limit) == 1)
		slot = user_get(op);
	if (!slot && !op->listed &&
	    !atomic_load_explicit(&sess->slots.nwaiting, memory_order_relaxed))
		slot = permit_take(&sess->slots);
	if (!slot && op->user)
		slot = user_get(op);
	if (!slot) {
		LOCK_SCOPE(&sess->lock);
		if (!op->granted && list_empty(&op->permit_link)) {
			op->listed = true;
			line_add(sess, op);
			/* ORDER: counted before the bitmap is looked at again; clt_slot_put()
			 * frees the bit before it reads the count. */
			atomic_fetch_add(&sess->slots.nwaiting, 1);
			permits_grant(sess);
		}
		slot = op->granted;
		if (slot)
			op->granted = slot->next;
		/* RACE: buf_id 0 may have become free since; zero_free() saw nobody in line. */
		else if (!op->user || !(slot = ctl_take(sess)))
			return NULL;
		else
			line_leave(op);
	}
	slot->op = op;
	slot->status = 0;
	slot->posted = false;
	return slot;
}

void clt_slot_put(struct clt_sess *sess, struct clt_slot *slot)
{
	assert(atomic_load_explicit(&slot->state, memory_order_relaxed) == 0);
	if (slot == &sess->ctl) {
		bool borrowed = slot->op->borrow;

		slot->op = NULL;
		if (borrowed)
			return;
		zero_free(sess);
		if (atomic_load(&sess->slots.zero_taken))
			clt_sess_wake_up_waiters(sess);
		return;
	}
	slot->op = NULL;
	permit_put(&sess->slots, slot);
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
	line_leave(op);
	granted = op->granted;
	op->granted = NULL;
	pthread_mutex_unlock(&sess->lock);

	while (granted) {
		struct clt_slot *next = granted->next;

		clt_slot_put(sess, granted);
		granted = next;
	}
}
