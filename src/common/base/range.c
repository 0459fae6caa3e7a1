/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the order of overlapping writes of a device; the ranges belong to their requests.  A short
 * list under a lock: as many ranges as writes in flight. */
#include "cleanup.h"
#include "range.h"

void range_lock_init(struct range_lock *l)
{
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->ranges);
	l->nexclusive = 0;
}

void range_lock_fini(struct range_lock *l)
{
	pthread_mutex_destroy(&l->lock);
}

static bool ranges_conflict(const struct range *a, const struct range *b)
{
	return (a->exclusive || b->exclusive) && a->start < b->end && b->start < a->end;
}

/* True if a range in front of @r has to leave first.  Lock held. */
static bool range_must_wait(const struct range_lock *l, const struct range *r)
{
	const struct range *pos;

	list_for_each(pos, &l->ranges, link) {
		if (pos == r)
			return false;
		if (ranges_conflict(pos, r))
			return true;
	}
	return false;
}

bool range_enter(struct range_lock *l, struct range *r)
{
	LOCK_SCOPE(&l->lock);
	list_add_tail(&l->ranges, &r->link);
	l->nexclusive += r->exclusive;
	r->waits = l->nexclusive && range_must_wait(l, r);
	return !r->waits;
}

bool range_is_granted(struct range_lock *l, const struct range *r)
{
	LOCK_SCOPE(&l->lock);
	return !r->waits;
}

void range_leave(struct range_lock *l, struct range *r)
{
	struct range *pos;

	LOCK_SCOPE(&l->lock);
	list_del(&r->link);
	/* A range can wait only if an exclusive range was in the list, maybe @r itself. */
	if (!l->nexclusive)
		return;
	l->nexclusive -= r->exclusive;
	list_for_each(pos, &l->ranges, link) {
		if (!pos->waits || !ranges_conflict(pos, r) || range_must_wait(l, pos))
			continue;
		/* RACE: the owner of @pos runs as soon as granted() wakes it, but cannot leave the
		 * list without the lock. */
		pos->waits = false;
		pos->granted(pos);
	}
}
