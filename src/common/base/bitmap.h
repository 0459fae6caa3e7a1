/* SPDX-License-Identifier: BSD-3-Clause */
/* A bitmap is a set of free numbers 0..n-1.  Many threads take and give back numbers, without a
 * lock.  Permits use it (doc/protocol.md 2.7: lowest free bit first). */
#ifndef BASE_BITMAP_H
#define BASE_BITMAP_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define BITMAP_WORD 64u

struct bitmap {
	_Atomic(uint64_t) *words;	/* bit set = taken */
	unsigned nbits;
};

/* The number of words in @b. */
static inline unsigned bitmap_nwords(const struct bitmap *b)
{
	return (b->nbits + BITMAP_WORD - 1) / BITMAP_WORD;
}

/* All @nbits numbers free.  Returns 0 or -ENOMEM. */
static inline int bitmap_init(struct bitmap *b, unsigned nbits)
{
	b->nbits = nbits;
	b->words = calloc(bitmap_nwords(b) ? bitmap_nwords(b) : 1, sizeof(*b->words));
	if (!b->words)
		return -ENOMEM;
	if (nbits % BITMAP_WORD)	/* numbers past the end are never free */
		atomic_init(&b->words[bitmap_nwords(b) - 1], ~0ull << (nbits % BITMAP_WORD));
	return 0;
}

/* Free the bits. */
static inline void bitmap_fini(struct bitmap *b)
{
	free((void *)b->words);
	b->words = NULL;
}

/* Take the lowest free number (lowest at some moment of the call).  Returns the number, or -EAGAIN
 * when all numbers are taken.  Acquire. */
static inline int bitmap_get(struct bitmap *b)
{
	for (unsigned i = 0; i < bitmap_nwords(b); i++) {
		uint64_t w = atomic_load_explicit(&b->words[i], memory_order_relaxed);

		while (~w) {
			unsigned bit = (unsigned)__builtin_ctzll(~w);

			if (atomic_compare_exchange_weak_explicit(&b->words[i], &w, w | 1ull << bit,
								  memory_order_acquire,
								  memory_order_relaxed))
				return (int)(i * BITMAP_WORD + bit);
		}
	}
	return -EAGAIN;
}

/* Give back @bit, which is taken.  Release. */
static inline void bitmap_put(struct bitmap *b, unsigned bit)
{
	uint64_t mask = 1ull << bit % BITMAP_WORD;
	uint64_t old;

	assert(bit < b->nbits);
	old = atomic_fetch_and_explicit(&b->words[bit / BITMAP_WORD], ~mask, memory_order_release);
	assert(old & mask);
	(void)old;
}

/* The number of taken bits; exact only while no other thread works on @b. */
static inline unsigned bitmap_weight(const struct bitmap *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < bitmap_nwords(b); i++)
		n += (unsigned)__builtin_popcountll(atomic_load(&b->words[i]));
	return b->nbits % BITMAP_WORD ? n - (BITMAP_WORD - b->nbits % BITMAP_WORD) : n;
}

#endif
