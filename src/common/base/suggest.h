/* SPDX-License-Identifier: BSD-3-Clause */
/* A guess which name was meant by one that does not exist.  Pure. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

#define SUGGEST_LEN_MAX 40

/* How many letters must be put in, taken out or replaced, or neighbours swapped, to make @b of the
 * first @len bytes of @a; SUGGEST_LEN_MAX if one of them is longer. */
unsigned suggest_distance(const char *a, size_t len, const char *b);

/* Of @n @names (some may be NULL) the nearest to the first @len bytes of @text, the first of
 * several; NULL if more than a third of the letters differ from each. */
const char *suggest(const char *text, size_t len, const char *const *names, size_t n);

#endif
