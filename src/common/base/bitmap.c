/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "bitmap.h"

int bitmap_init(struct bitmap *b, unsigned nbits)
{
	b->nbits = nbits;
	b->words = calloc(bitmap_nwords(b) ? bitmap_nwords(b) : 1, sizeof(*b->words));
	if (!b->words)
		return -ENOMEM;
	if (nbits % BITMAP_WORD)	/* numbers past the end are never free */
		atomic_init(&b->words[bitmap_nwords(b) - 1], ~0ull << (nbits % BITMAP_WORD));
	return 0;
}

void bitmap_fini(struct bitmap *b)
{
	free((void *)b->words);
	b->words = NULL;
}

unsigned bitmap_weight(const struct bitmap *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < bitmap_nwords(b); i++)
		n += (unsigned)__builtin_popcountll(atomic_load(&b->words[i]));
	return b->nbits % BITMAP_WORD ? n - (BITMAP_WORD - b->nbits % BITMAP_WORD) : n;
}
