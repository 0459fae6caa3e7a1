/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that are the same are one text, which lives as long as the program: for names that an
 * administrator writes.  Any thread. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

/* The one text that is the same as @text.  NULL: no memory. */
const char *intern(const char *text);

#endif
