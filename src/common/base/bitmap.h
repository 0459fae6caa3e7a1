/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of free numbers 0..n-1 that many threads take from and give back to without a lock.
 * Used for permits (doc/protocol.md 2.7: lowest free bit first). */
#ifndef BASE_BITMAP_H
#define BASE_BITMAP_H

#include <stdatomic.h>
#include <stdint.h>

struct bitmap {
	_Atomic(uint64_t) *words;	/* bit set = taken */
	unsigned nbits;
};

/* All @nbits numbers free.  Returns 0 or -ENOMEM. */
int bitmap_init(struct bitmap *b, unsigned nbits);
void bitmap_fini(struct bitmap *b);

/* Take the lowest free number (lowest at some moment of the call).  Returns it, or -EAGAIN when
 * all are taken.  Acquire. */
int bitmap_get(struct bitmap *b);
/* Give @bit back.  It must be taken.  Release. */
void bitmap_put(struct bitmap *b, unsigned bit);
/* How many are taken; exact only when nobody else is working on @b. */
unsigned bitmap_weight(const struct bitmap *b);

#endif
