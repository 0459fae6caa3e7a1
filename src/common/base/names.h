/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that a peer has chosen, before a terminal or a log file gets it.  Pure. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stddef.h>

/* Replace by '?' each byte of @text that is part of a control character, or is no UTF-8.  Control
 * characters, U+0000 to U+001F and U+007F to U+009F, could end a line or steer a terminal.
 * Characters that turn the direction of a text, or that nobody sees, could make one name look like
 * another: they are replaced, too. */
void mask_control(char *text);

/* Guesses which name a user meant by a wrong name.  Pure. */
#define SUGGEST_LEN_MAX 40

/* The number of changes that make @b of the first @len bytes of @a: a letter inserted, removed or
 * replaced, or two neighbours swapped.  SUGGEST_LEN_MAX if @a or @b is longer. */
unsigned suggest_distance(const char *a, size_t len, const char *b);

/* The nearest of @n @names (some may be NULL) to the first @len bytes of @text; the first of
 * several.  NULL if more than a third of the letters differ from each name. */
const char *suggest_name(const char *text, size_t len, const char *const *names, size_t n);

/* Texts that are the same are one text, which lives as long as the program: for names that an
 * administrator writes.  Any thread. */
/* The one text that is the same as @text.  NULL: no memory. */
const char *intern(const char *text);

#endif
