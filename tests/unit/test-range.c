/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges that are being written: who waits for whom, and who is told when one leaves. */
#include "range.h"
#include "unit.h"

static struct range_lock lock;
static struct range r[4];
static char trace[16];

static void granted(struct range *range)
{
	size_t n = strlen(trace);

	trace[n] = (char)('0' + (range - r));
	trace[n + 1] = '\0';
}

/* A word of a case:
 *	s1:0-8192 x1:0-512	range 1 enters, shared or exclusive, and need not wait
 *	s1:0-8192?		and waits
 *	-1			it leaves, and nobody goes on
 *	-1>23			2 goes on, then 3 */
static void step(const char *word)
{
	unsigned i = (unsigned)(word[1] - '0');
	unsigned long start, end;
	bool waits = word[strlen(word) - 1] == '?';

	if (*word == '-') {
		trace[0] = '\0';
		range_leave(&lock, &r[i]);
		cr_assert_str_eq(trace, word[2] ? word + 3 : "", "%s: woke '%s'", word, trace);
		for (const char *woken = trace; *woken; woken++)
			cr_assert(range_is_granted(&lock, &r[*woken - '0']), "%s", word);
		return;
	}
	cr_assert_eq(sscanf(word + 2, ":%lu-%lu", &start, &end), 2, "%s", word);
	r[i] = (struct range){ .start = start, .end = end, .exclusive = *word == 'x',
			       .granted = granted };
	cr_assert_eq(range_enter(&lock, &r[i]), !waits, "%s", word);
	cr_assert_eq(range_is_granted(&lock, &r[i]), !waits, "%s", word);
}

Test(range, steps)
{
	static const struct {
		const char *name, *steps;
	} cases[] = {
		{ "whole blocks never wait", "s0:0-8192 s1:0-8192 s2:4096-12288 -1 -0 -2" },
		{ "waits for both in front", "x0:0-4096 x1:4096-8192 x2:0-8192? -0 -1>2 -2" },
		{ "waits for all in front", "x0:0-4096 x1:0-4096? x2:0-4096? -0>1 -1>2 -2" },
		{ "a change excludes writers of its block only",
		  "x0:4096-8192 s1:0-4096 s2:8192-12288 s3:0-4097? -1 -0>3 -2 -3" },
		{ "a change waits for writers, and goes before later ones",
		  "s0:0-4096 x1:0-512? s2:0-512? s3:512-1024 -0>1 -1>2 -2 -3" },
		{ "neighbours do not wait", "x0:4096-8192 x1:0-4096 x2:8192-12288 -0 -1 -2" },
		/* 2 overlaps 1, which waits: it keeps its place behind it, though what 0 holds is
		 * elsewhere. */
		{ "order of arrival",
		  "x0:0-4096 x1:0-8192? x2:4096-8192? x3:8192-12288 -3 -0>1 -1>2 -2" },
		{ "several wake at once",
		  "x0:0-16384 x1:0-4096? x2:4096-8192? s3:8192-16384? -0>123 -2 -1 -3" },
		{ "leaves while it waits, and lets those behind it go",
		  "s0:0-4096 x1:0-4096? s2:0-4096? -1>2 -0 -2" },
	};

	for_each_case(c, cases) {
		char text[128], *rest = text, *word;

		snprintf(text, sizeof(text), "%s", c->steps);
		range_lock_init(&lock);
		while ((word = strsep(&rest, " ")))
			step(word);
		cr_assert(list_empty(&lock.ranges), "%s", c->name);
		cr_assert_eq(lock.nexclusive, 0u, "%s", c->name);
		range_lock_fini(&lock);
	}
}
