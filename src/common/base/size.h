/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as users write them: one rule for all programs.  Pure. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* How messages and manuals name the letters that size_parse() takes. */
#define SIZE_UNITS "K, M, G or T"

/* Read into @bytes a decimal number, with one letter behind it or none: k, m, g, t, capital or
 * not, are KiB, MiB, GiB, TiB.  False, and @bytes is as it was, if @text is anything else or the
 * size has more than 64 bits. */
bool size_parse(const char *text, uint64_t *bytes);
/* @bytes as size_parse() takes it, in the largest unit that leaves no rest: "64M", "1000".  Returns
 * @buf, SIZE_TEXT_MAX bytes. */
#define SIZE_TEXT_MAX 24
const char *size_text(uint64_t bytes, char buf[SIZE_TEXT_MAX]);

#endif
