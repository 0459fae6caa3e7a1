/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads digits and the letter of a unit, and writes them.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

bool number_prefix(const char *text, const char **rest, uint64_t *value)
{
	uint64_t n;
	char *end;

	/* The C library would take blanks and signs, too. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno)
		return false;
	*rest = end;
	*value = n;
	return true;
}

bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	const char *rest;
	uint64_t n;

	if (!number_prefix(text, &rest, &n) || *rest || n < least || n > most)
		return false;
	*value = n;
	return true;
}

bool number_parse_u(const char *text, unsigned least, unsigned most, unsigned *value)
{
	uint64_t n;

	if (!number_parse(text, least, most, &n))
		return false;
	*value = (unsigned)n;
	return true;
}

/* ---- sizes ---- */

bool size_parse(const char *text, uint64_t *bytes)
{
	static const char letters[] = "kKmMgGtT";
	const char *letter, *end;
	unsigned shift = 0;
	uint64_t n;

	if (!number_prefix(text, &end, &n))
		return false;
	letter = *end ? strchr(letters, *end) : NULL;
	if (letter) {
		shift = 10 * ((unsigned)(letter - letters) / 2 + 1);
		end++;
	}
	if (*end || n > UINT64_MAX >> shift)
		return false;
	*bytes = n << shift;
	return true;
}

const char *size_text(uint64_t bytes, char buf[SIZE_TEXT_MAX])
{
	static const char letters[] = "KMGT";
	char letter[2] = "";

	for (unsigned i = 0; letters[i] && bytes && bytes % 1024 == 0; i++) {
		bytes /= 1024;
		letter[0] = letters[i];
	}
	snprintf(buf, SIZE_TEXT_MAX, "%" PRIu64 "%s", bytes, letter);
	return buf;
}

/* ---- texts in a buffer ---- */

int fmt_error(int rc, char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, len, fmt, ap);
	va_end(ap);
	return rc;
}

char *fmt_new(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
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
