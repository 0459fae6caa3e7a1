/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of a fuzz target.
 *
 * A target is one .c file with LLVMFuzzerTestOneInput() and a corpus/NAME directory.  Configured
 * with --enable-fuzzers (CC=clang) it links libFuzzer; otherwise replay-main.c, which understands
 * the same arguments, so that `make check` runs the corpus and a bounded number of mutations of it
 * with any compiler.  See tests/fuzz/programs for what to add. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

/* @data has exactly @size bytes: a sanitizer sees any read beyond.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that holds for every input. */
#define must(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #cond);       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Take bytes from the front of the input; zeroes when it has run out. */
struct fuzz_in {
	const uint8_t *p;
	size_t left;
};

static inline uint64_t fuzz_take(struct fuzz_in *in, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes && in->left; i++, in->p++, in->left--)
		v |= (uint64_t)*in->p << 8 * i;
	return v;
}

/* A heap copy of exactly the rest of the input; the caller frees it. */
static inline uint8_t *fuzz_rest(const struct fuzz_in *in)
{
	uint8_t *copy = malloc(in->left ? in->left : 1);

	must(copy);
	if (in->left)
		memcpy(copy, in->p, in->left);
	return copy;
}

#endif
