/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as users and files of the kernel write them: decimal digits, no sign, no blank.  Every
 * program reads its numbers here, and its sizes in size.h.  Pure. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Read into @value the number at the start of @text, and set @rest to the byte behind its digits.
 * Returns false and leaves both unchanged, if @text begins with no digit or the number has more
 * than 64 bits. */
bool number_prefix(const char *text, const char **rest, uint64_t *value);

/* Read into @value all of @text, a number from @least to @most.  Returns false and leaves @value
 * unchanged, if @text is anything else. */
bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* Call number_parse() for an unsigned int. */
bool number_parse_u(const char *text, unsigned least, unsigned most, unsigned *value);

#endif
