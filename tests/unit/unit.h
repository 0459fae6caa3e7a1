/* SPDX-License-Identifier: BSD-3-Clause */
/* What the unit tests share: Criterion, tables of cases, byte vectors. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define for_each_case(c, table) \
	for (__typeof__(&(table)[0]) c = (table); c < (table) + ARRAY_SIZE(table); c++)

/* Compare bytes; the message names @what and shows the first difference. */
static inline void expect_bytes(const void *got, const void *want, size_t len, const char *what)
{
	const unsigned char *g = got, *w = want;

	for (size_t i = 0; i < len; i++)
		cr_assert(g[i] == w[i], "%s: byte %zu is %02x, expected %02x", what, i, g[i], w[i]);
}

/* A copy of exactly @len bytes on the heap, so that a sanitizer sees any read beyond.  The caller
 * frees it. */
static inline void *tight_copy(const void *src, size_t len)
{
	void *p = malloc(len ? len : 1);

	cr_assert_not_null(p);
	if (len)
		memcpy(p, src, len);
	return p;
}

#endif
