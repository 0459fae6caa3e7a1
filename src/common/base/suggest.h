/* SPDX-License-Identifier: BSD-3-Clause */
/* Guesses which name a user meant by a wrong name.  Pure. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

#define SUGGEST_LEN_MAX 40

/* The number of changes that make @b of the first @len bytes of @a: a letter inserted, removed or
 * replaced, or two neighbours swapped.  SUGGEST_LEN_MAX if @a or @b is longer. */
unsigned suggest_distance(const char *a, size_t len, const char *b);

/* The nearest of @n @names (some may be NULL) to the first @len bytes of @text; the first of
 * several.  NULL if more than a third of the letters differ from each name. */
const char *suggest_name(const char *text, size_t len, const char *const *names, size_t n);

#endif
