/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "fmt.h"

int fmt_error(int rc, char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, len, fmt, ap);
	va_end(ap);
	return rc;
}

void fmt_vadd(char *buf, size_t len, const char *fmt, va_list ap)
{
	size_t at = strlen(buf);

	vsnprintf(buf + at, len - at, fmt, ap);
}

void fmt_add(char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fmt_vadd(buf, len, fmt, ap);
	va_end(ap);
}
