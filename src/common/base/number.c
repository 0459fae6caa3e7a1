/* SPDX-License-Identifier: BSD-3-Clause */
/* Digits.  Owns nothing. */
#include <errno.h>
#include <stdlib.h>

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
