/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's log, read anew each time.  Owns nothing. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "hostile.h"

unsigned hlog_count(const char *text)
{
	char line[2048];
	unsigned n = 0;
	FILE *f;

	if (!hrun.log)
		return 0;
	f = fopen(hrun.log, "r");
	expect(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

void hlog_expect_one(const char *text, unsigned before)
{
	uint64_t deadline = hdeadline();

	if (!hrun.log)
		return;
	while (hlog_count(text) == before) {
		if (hnow_ms() > deadline)
			die("not in the log: %s", text);
		poll(NULL, 0, 5);
	}
	if (hlog_count(text) != before + 1)
		die("in the log more than once: %s", text);
}
