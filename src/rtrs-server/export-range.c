/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the order of overlapping writes of one export; the entries belong to their requests.  A short
 * list under a lock: as many entries as there are writes in flight, and only in direct exports with
 * blocks larger than a sector.  Cannot fail. */
#include "export-range.h"

void export_ranges_init(struct export_ranges *rs)
{
	pthread_mutex_init(&rs->lock, NULL);
	list_init(&rs->entries);
}

static bool conflict(const struct export_range *a, const struct export_range *b)
{
	return (a->partial || b->partial) && a->start < b->end && b->start < a->end;
}

/* Lock held.  True if an entry in front of @r has to leave first. */
static bool must_wait(const struct export_ranges *rs, const struct export_range *r)
{
	const struct export_range *other;

	list_for_each(other, &rs->entries, link) {
		if (other == r)
			return false;
		if (conflict(other, r))
			return true;
	}
	return false;
}

bool export_range_enter(struct export_ranges *rs, struct export_range *r)
{
	bool go;

	pthread_mutex_lock(&rs->lock);
	list_add_tail(&rs->entries, &r->link);
	r->waiting = must_wait(rs, r);
	go = !r->waiting;
	pthread_mutex_unlock(&rs->lock);
	return go;
}

void export_range_leave(struct export_ranges *rs, struct export_range *r)
{
	struct export_range *other;

	pthread_mutex_lock(&rs->lock);
	list_del(&r->link);
	list_for_each(other, &rs->entries, link) {
		if (other->waiting && conflict(other, r) && !must_wait(rs, other)) {
			/* RACE: the entry runs on its thread as soon as it is posted, but cannot leave
			 * the list without the lock. */
			other->waiting = false;
			inbox_post(other->inbox, &other->granted);
		}
	}
	pthread_mutex_unlock(&rs->lock);
}
