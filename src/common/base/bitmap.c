/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "bitmap.h"

#define WORD_BITS 64u

static unsigned nwords(const struct bitmap *b)
{
	return (b->nbits + WORD_BITS - 1) / WORD_BITS;
}

int bitmap_init(struct bitmap *b, unsigned nbits)
{
	b->nbits = nbits;
	b->words = calloc(nwords(b) ? nwords(b) : 1, sizeof(*b->words));
	if (!b->words)
		return -ENOMEM;
	if (nbits % WORD_BITS)	/* numbers past the end are never free */
		atomic_init(&b->words[nwords(b) - 1], ~0ull << (nbits % WORD_BITS));
	return 0;
}

void bitmap_fini(struct bitmap *b)
{
	free((void *)b->words);
	b->words = NULL;
}

int bitmap_get(struct bitmap *b)
{
	for (unsigned i = 0; i < nwords(b); i++) {
		uint64_t w = atomic_load_explicit(&b->words[i], memory_order_relaxed);

		while (~w) {
			unsigned bit = (unsigned)__builtin_ctzll(~w);

			if (atomic_compare_exchange_weak_explicit(&b->words[i], &w, w | 1ull << bit,
								  memory_order_acquire,
								  memory_order_relaxed))
				return (int)(i * WORD_BITS + bit);
		}
	}
	return -EAGAIN;
}

void bitmap_put(struct bitmap *b, unsigned bit)
{
	uint64_t mask = 1ull << bit % WORD_BITS;
	uint64_t old;

	assert(bit < b->nbits);
	old = atomic_fetch_and_explicit(&b->words[bit / WORD_BITS], ~mask, memory_order_release);
	assert(old & mask);
	(void)old;
}

unsigned bitmap_weight(const struct bitmap *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nwords(b); i++)
		n += (unsigned)__builtin_popcountll(atomic_load(&b->words[i]));
	return b->nbits % WORD_BITS ? n - (WORD_BITS - b->nbits % WORD_BITS) : n;
}
