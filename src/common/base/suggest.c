/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Names are short, so the table of distances lies on the stack.  Three rows suffice:
 * the row of the current letter and, for swapped neighbours, the two rows above. */
#include <string.h>

#include "suggest.h"
#include "util.h"

unsigned suggest_distance(const char *a, size_t len, const char *b)
{
	unsigned rows[3][SUGGEST_LEN_MAX + 1];
	size_t blen = strlen(b);

	if (len > SUGGEST_LEN_MAX || blen > SUGGEST_LEN_MAX)
		return SUGGEST_LEN_MAX;
	for (size_t j = 0; j <= blen; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= len; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *over = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= blen; j++) {
			row[j] = MIN(above[j - 1] + (a[i - 1] != b[j - 1]),
				     MIN(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], over[j - 2] + 1);
		}
	}
	return rows[len % 3][blen];
}

const char *suggest_name(const char *text, size_t len, const char *const *names, size_t n)
{
	unsigned nearest = MAX((unsigned)len / 3, 1u) + 1;
	const char *best = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned distance = names[i] ? suggest_distance(text, len, names[i]) : nearest;

		if (distance < nearest) {
			nearest = distance;
			best = names[i];
		}
	}
	return best;
}
