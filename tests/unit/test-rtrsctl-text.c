/* SPDX-License-Identifier: BSD-3-Clause */
/* What rtrsctl says of a text that is longer than it says (text.h). */
#include <jansson.h>

#include "say.h"
#include "text.h"
#include "unit.h"

#define LINE 64u			/* with its end */

/* "000017...": line 17 of a text of @n bytes, whose last line has an end if @ended. */
static char *text_of(size_t n, bool ended)
{
	char *text = malloc(n + 1);

	cr_assert(text);
	for (size_t i = 0; i < n; i++)
		text[i] = i % LINE == LINE - 1 ? '\n' : (char)('0' + i / LINE % 10);
	if (n && ended)
		text[n - 1] = '\n';
	text[n] = '\0';
	return text;
}

static void expect_lines(size_t n, bool ended)
{
	static char buf[TEXT_MAX_BYTES], last[64];
	char *text = text_of(n, ended), *end;
	size_t all = (n + LINE - 1) / LINE, left = 0;

	cr_assert_eq(text_lines(text, buf, sizeof(buf)), buf);
	if (n < sizeof(buf)) {
		cr_assert_str_eq(buf, text);
	} else {
		end = strrchr(buf, '\n');
		cr_assert_eq(sscanf(end, "\nand %zu lines more", &left), 1, "%s", end);
		snprintf(last, sizeof(last), "\nand %zu lines more", left);
		cr_assert_str_eq(end, last);
		/* Whole lines, and none is missing. */
		cr_assert_eq((size_t)(end - buf + 1) % LINE, 0);
		cr_assert_eq((size_t)(end - buf + 1) / LINE + left, all, "%zu: %zu", n, left);
		expect_bytes(buf, text, (size_t)(end - buf), "lines");
		cr_assert_gt(strlen(buf), sizeof(buf) - 2 * LINE, "as many as fit");
	}
	free(text);
}

Test(rtrsctl_text, lines_up_to_the_limit)
{
	static const size_t lens[] = { TEXT_MAX_BYTES - 2, TEXT_MAX_BYTES - 1, TEXT_MAX_BYTES,
				       TEXT_MAX_BYTES + 1, 4 * TEXT_MAX_BYTES };

	for_each_case(n, lens) {
		expect_lines(*n, false);
		expect_lines(*n, true);
	}
}

/* A line that is longer than all that is said. */
Test(rtrsctl_text, one_long_line)
{
	static char text[4 * TEXT_MAX_BYTES], buf[TEXT_MAX_BYTES];

	memset(text, 'x', sizeof(text) - 1);
	text_lines(text, buf, sizeof(buf));
	cr_assert_eq(strlen(buf), sizeof(buf) - 1);
	expect_bytes(buf, text, sizeof(buf) - 1, "line");
}
