/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read and written by request @number, in words so that a guest has not too much to do. */
#ifndef RW_PATTERN_H
#define RW_PATTERN_H

#include <string.h>

#include "harness.h"

static inline uint32_t rw_pattern_word(uint32_t number, size_t i)
{
	return number * 2654435761u + (uint32_t)i;
}

static inline void rw_pattern_fill(uint8_t *mem, uint32_t number, size_t len)
{
	for (size_t i = 0; i < len / 4; i++) {
		uint32_t word = rw_pattern_word(number, i);

		memcpy(mem + 4 * i, &word, 4);
	}
}

/* @len bytes are it, and those up to @size are zeroes. */
static inline void rw_pattern_check(const uint8_t *mem, uint32_t number, size_t len, size_t size)
{
	for (size_t i = 0; i < size / 4; i++) {
		uint32_t word;

		memcpy(&word, mem + 4 * i, 4);
		check_eq(word, i < len / 4 ? rw_pattern_word(number, i) : 0);
	}
}

#endif
