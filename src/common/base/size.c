/* SPDX-License-Identifier: BSD-3-Clause */
/* Digits and a letter.  Owns nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "size.h"

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
