/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as users write them: one rule for all programs.  Pure. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* The name of the letters that size_parse() takes, in messages and manuals. */
#define SIZE_UNITS "K, M, G or T"

/* Read into @bytes a decimal number with at most a letter behind: k, m, g, t, capital or not, are
 * KiB, MiB, GiB, TiB.  Returns false and leaves @bytes unchanged, if @text is anything else or the
 * size has more than 64 bits. */
bool size_parse(const char *text, uint64_t *bytes);
#define SIZE_TEXT_MAX 24
/* Write @bytes into @buf, in the largest unit that leaves no rest: "64M", "1000".  size_parse()
 * reads the text back.  Returns @buf. */
const char *size_text(uint64_t bytes, char buf[SIZE_TEXT_MAX]);

#endif
