/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the list of ranges that are being written.  Any thread; nothing blocks, nothing fails. */
#include "cleanup.h"
#include "rnbd-clt-rmw.h"

void rmw_lock_init(struct rmw_lock *l)
{
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->ranges);
	l->nexclusive = 0;
}

void rmw_lock_fini(struct rmw_lock *l)
{
	pthread_mutex_destroy(&l->lock);
}

static bool conflict(const struct rmw_range *a, const struct rmw_range *b)
{
	return (a->exclusive || b->exclusive) && a->start < b->end && b->start < a->end;
}

/* Nothing in front of @r is in its way.  Lock held. */
static bool range_free(struct rmw_lock *l, const struct rmw_range *r)
{
	const struct rmw_range *pos;

	list_for_each(pos, &l->ranges, link) {
		if (pos == r)
			return true;
		if (conflict(pos, r))
			return false;
	}
	return true;
}

bool rmw_enter(struct rmw_lock *l, struct rmw_range *r, uint64_t start, uint64_t end,
	       bool exclusive, void (*fn)(struct clt_waiter *w))
{
	r->start = start;
	r->end = end;
	r->exclusive = exclusive;
	clt_waiter_init(&r->waiter, fn);

	LOCK_SCOPE(&l->lock);
	list_add_tail(&l->ranges, &r->link);
	l->nexclusive += exclusive;
	r->granted = !l->nexclusive || range_free(l, r);
	return r->granted;
}

bool rmw_granted(struct rmw_lock *l, struct rmw_range *r)
{
	LOCK_SCOPE(&l->lock);
	return r->granted;
}

void rmw_leave(struct rmw_lock *l, struct rmw_range *r)
{
	struct rmw_range *pos;

	clt_wait_batch_begin();
	pthread_mutex_lock(&l->lock);
	list_del(&r->link);
	/* Before this range left, was there an exclusive one?  Else nobody waits. */
	if (l->nexclusive) {
		l->nexclusive -= r->exclusive;
		list_for_each(pos, &l->ranges, link) {
			if (pos->granted || !range_free(l, pos))
				continue;
			pos->granted = true;
			clt_wait_look(&pos->waiter);
		}
	}
	pthread_mutex_unlock(&l->lock);
	clt_wait_batch_end();
}
