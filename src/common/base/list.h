/* SPDX-License-Identifier: BSD-3-Clause */
/* Intrusive doubly linked list.  The list owns nothing; an entry is on at most a single list.  A
 * removed or initialised entry points to itself, so list_empty() tells whether the entry is
 * linked. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

#include "util.h"

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name) { &(name), &(name) }

/* Make @l an empty list, or an element that is on no list. */
static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

/* True if @l has no entry; of an entry: true if on no list. */
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Insert @e, which is on no list, in front of @at. */
static inline void list_insert_before(struct list *at, struct list *e)
{
	e->next = at;
	e->prev = at->prev;
	at->prev->next = e;
	at->prev = e;
}

/* Insert @e, which is on no list, as the last entry of @l. */
static inline void list_add_tail(struct list *l, struct list *e)
{
	list_insert_before(l, e);
}

/* Insert @e, which is on no list, as the first entry of @l. */
static inline void list_add_head(struct list *l, struct list *e)
{
	list_insert_before(l->next, e);
}

/* Remove @e from its list, if @e is on a list. */
static inline void list_del(struct list *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	list_init(e);
}

/* Remove and return the first entry of @l; NULL: the list is empty. */
static inline struct list *list_pop(struct list *l)
{
	struct list *e = l->next;

	if (e == l)
		return NULL;
	list_del(e);
	return e;
}

/* Move all entries of @from, in order, to the end of @to. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

/* Initialise @to and move all entries of @from, in order, to @to. */
static inline void list_take(struct list *to, struct list *from)
{
	list_init(to);
	list_splice_tail(to, from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)

/* Remove the first entry and return the struct around the entry; or NULL. */
#define list_pop_entry(l, type, member)                                                            \
	({                                                                                         \
		struct list *popped_ = list_pop(l);                                                \
		popped_ ? list_entry(popped_, type, member) : NULL;                                \
	})

#define list_for_each(pos, l, member)                                                              \
	for (pos = list_entry((l)->next, __typeof__(*pos), member);                                \
	     LIST_LINK_(pos, member) != (l);                                                       \
	     pos = list_entry(LIST_LINK_(pos, member)->next, __typeof__(*pos), member))

/* Like list_for_each, but the body may remove or free @pos. */
#define list_for_each_safe(pos, tmp, l, member)                                                    \
	for (pos = list_entry((l)->next, __typeof__(*pos), member),                                \
	    tmp = list_entry(LIST_LINK_(pos, member)->next, __typeof__(*pos), member);             \
	     LIST_LINK_(pos, member) != (l);                                                       \
	     pos = tmp, tmp = list_entry(LIST_LINK_(tmp, member)->next, __typeof__(*tmp), member))

/* At the end of a walk @pos is computed from the list head, and is no object, so @pos must not be
 * dereferenced. */
#define LIST_LINK_(pos, member) \
	((struct list *)((char *)(pos) + offsetof(__typeof__(*(pos)), member)))

#endif
