/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the chains of an index: twice as many as soon as there are more nodes than chains.  The
 * thread of the caller. */
#include <assert.h>
#include <stdlib.h>

#include "index.h"

void index_init(struct index *x)
{
	list_init(&x->one);
	x->chains = &x->one;
	x->bits = x->n = 0;
}

void index_fini(struct index *x)
{
	assert(!x->n);
	if (x->chains != &x->one)
		free(x->chains);
	index_init(x);
}

static struct list *chain_of(const struct index *x, uint64_t number)
{
	/* Fibonacci's hash: neighbours are spread. */
	return x->bits ? &x->chains[number * 0x9e3779b97f4a7c15 >> (64 - x->bits)] : x->chains;
}

static void grow(struct index *x)
{
	size_t nchains = (size_t)1 << (x->bits + 1);
	struct index bigger = { .chains = calloc(nchains, sizeof(struct list)),
				.bits = x->bits + 1, .n = x->n };
	struct index_node *node;

	if (!bigger.chains)
		return;
	for (size_t i = 0; i < nchains; i++)
		list_init(&bigger.chains[i]);
	for (size_t i = 0; i < nchains / 2; i++) {
		while ((node = list_pop_entry(&x->chains[i], struct index_node, link)))
			list_add_tail(chain_of(&bigger, node->number), &node->link);
	}
	if (x->chains != &x->one)
		free(x->chains);
	x->chains = bigger.chains;
	x->bits = bigger.bits;
}

void index_add(struct index *x, struct index_node *node, uint64_t number)
{
	if (x->n >> x->bits)
		grow(x);
	node->number = number;
	list_add_tail(chain_of(x, number), &node->link);
	x->n++;
}

void index_del(struct index *x, struct index_node *node)
{
	list_del(&node->link);
	x->n--;
}

struct index_node *index_next(const struct index *x, const struct index_node *node,
			      uint64_t number)
{
	struct list *chain = chain_of(x, number);

	for (struct list *at = node ? node->link.next : chain->next; at != chain; at = at->next) {
		struct index_node *next = list_entry(at, struct index_node, link);

		if (next->number == number)
			return next;
	}
	return NULL;
}
