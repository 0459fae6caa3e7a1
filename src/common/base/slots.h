/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots are numbers from 0 on, which objects take and give back: places in an array.  Slots that
 * were given back are taken first, so the highest one is below the most that were taken at a time.
 * One thread at a time.  A zeroed struct has no slot taken. */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct slots {
	unsigned n;			/* above each slot that was ever taken */
	/* private */
	unsigned *free;			/* [n] */
	unsigned nfree, room;
};

/* Take a slot to @slot.  False: no memory. */
static inline bool slots_take(struct slots *s, unsigned *slot)
{
	unsigned *more;

	if (s->nfree) {
		*slot = s->free[--s->nfree];
		return true;
	}
	if (s->n == s->room) {
		more = reallocarray(s->free, 2 * (size_t)s->room + 1, sizeof(*more));
		if (!more)
			return false;
		s->free = more;
		s->room = 2 * s->room + 1;
	}
	*slot = s->n++;
	return true;
}

/* Give back @slot, which is taken. */
static inline void slots_put(struct slots *s, unsigned slot)
{
	assert(s->nfree < s->n);
	s->free[s->nfree++] = slot;
}

/* Free the memory of @s, of which no slot is used any more. */
static inline void slots_fini(struct slots *s)
{
	free(s->free);
	*s = (struct slots){ 0 };
}

#endif
