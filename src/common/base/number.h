/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and sizes in text, as users and files of the kernel write them: every program reads and
 * writes them here.  And texts of printf(3).  Pure. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- numbers: decimal digits, no sign, no blank ---- */

/* Read into @value the number at the start of @text, and set @rest to the byte behind its digits.
 * Returns false and leaves both unchanged, if @text begins with no digit or the number has more
 * than 64 bits. */
bool number_prefix(const char *text, const char **rest, uint64_t *value);

/* Read into @value all of @text, a number from @least to @most.  Returns false and leaves @value
 * unchanged, if @text is anything else. */
bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* Call number_parse() for an unsigned int. */
bool number_parse_u(const char *text, unsigned least, unsigned most, unsigned *value);

/* ---- sizes ---- */

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

/* ---- texts ---- */

/* A text of any length, for the caller to free; NULL: no memory. */
char *fmt_new(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Texts in a buffer: a text that has no room is cut. */

/* Write to @buf why something has failed.  Returns @rc. */
int fmt_error(int rc, char *buf, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Append to the text in @buf. */
void fmt_add(char *buf, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void fmt_vadd(char *buf, size_t len, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

#endif
