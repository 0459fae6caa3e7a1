/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of printf(3) in a buffer of the caller.  What has no room is cut.  Pure. */
#ifndef BASE_FMT_H
#define BASE_FMT_H

#include <stdarg.h>
#include <stddef.h>

/* Write to @buf why something has failed.  Returns @rc. */
int fmt_error(int rc, char *buf, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Append to the text in @buf. */
void fmt_add(char *buf, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void fmt_vadd(char *buf, size_t len, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

#endif
