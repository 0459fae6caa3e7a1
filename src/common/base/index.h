/* SPDX-License-Identifier: BSD-3-Clause */
/* An index finds objects by a number of theirs: the hash of a name, as a rule.  Each object has a
 * node inside, and several objects may have one number.  Adding needs no memory: an index that
 * cannot grow gets slower, and fails nothing.
 *
 * The caller owns the objects, and compares what the number is a hash of.  One thread at a time
 * changes an index; others may look meanwhile only if nobody changes it. */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "util.h"

struct index_node {
	struct list link;		/* private */
	uint64_t number;
};

/* private */
struct index {
	struct list *chains;		/* [1 << bits] */
	struct list one;		/* @chains before there are more */
	unsigned bits, n;
};

/* Begin without objects.  @x does not move. */
void index_init(struct index *x);
/* Free the memory of @x, in which no object is left. */
void index_fini(struct index *x);
/* Let @node be found by @number. */
void index_add(struct index *x, struct index_node *node, uint64_t number);
/* Take @node out of @x. */
void index_del(struct index *x, struct index_node *node);
/* The next node with @number behind @node, or the first one if @node is NULL; NULL: no more. */
struct index_node *index_next(const struct index *x, const struct index_node *node,
			      uint64_t number);

/* For each @node of @x with @number. */
#define index_for_each(node, x, number) \
	for (node = index_next(x, NULL, number); node; node = index_next(x, node, number))

/* The number of a name. */
static inline uint64_t index_text(const char *text)
{
	return fnv1a(FNV1A_INIT, text, strlen(text));
}

/* ---- slots ---- */

/* Slots are numbers from 0 on, which objects take and give back: places in an array.  Slots that
 * were given back are taken first, so the highest one is below the most that were taken at a time.
 * One thread at a time.  A zeroed struct has no slot taken. */
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
