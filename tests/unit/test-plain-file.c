/* SPDX-License-Identifier: BSD-3-Clause */
/* Files on file systems that do not answer: how many threads stay behind, and that they come back.
 * The calls of aside.h here never end by themselves: their callers lose patience at once, and the
 * test ends a call that was left. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "aside.h"
#include "plain-file.h"
#include "util.h"

#define MANY (4 * PLAIN_FILE_LEFT_MAX)

static struct call {
	void (*left)(void *arg);
	void *arg;
} calls[MANY];
static unsigned nbegun;
static bool answers;		/* the file system */
static char why[256];

int aside_begin(struct aside **out, void (*fn)(void *arg), void (*left)(void *arg), void *arg)
{
	*out = NULL;
	if (answers)
		fn(arg);
	cr_assert_lt(nbegun, MANY);
	calls[nbegun++] = (struct call){ left, arg };
	return 0;
}

int aside_wait(struct aside *call, aside_patience_fn *patience, void *patience_arg)
{
	(void)call;
	if (answers)
		return 0;
	cr_assert_eq(patience(patience_arg, 0), 0);
	return patience(patience_arg, PLAIN_FILE_MS);
}

static int load(unsigned name)
{
	struct plain_file file;
	char path[32];

	snprintf(path, sizeof(path), "/nowhere/%u", name);
	return plain_file_load(path, 4096, &file, why, sizeof(why));
}

static void ends(unsigned call)
{
	calls[call].left(calls[call].arg);
}

Test(plain_file, threads_left_up_to_the_limit)
{
	cr_assert_not(plain_file_any_left());
	for (unsigned i = 0; i < PLAIN_FILE_LEFT_MAX; i++) {
		cr_assert_eq(load(i), -ETIMEDOUT, "%u: %s", i, why);
		/* Nobody waits twice for one name. */
		cr_assert_eq(load(i), -ETIMEDOUT);
		cr_assert(strstr(why, "still has not answered"), "%s", why);
		cr_assert_eq(nbegun, i + 1);
	}
	for (unsigned i = PLAIN_FILE_LEFT_MAX; i < MANY; i++) {
		cr_assert_eq(load(i), -EBUSY, "%u: %s", i, why);
		cr_assert(strstr(why, "too many files wait"), "%s", why);
	}
	cr_assert_eq(nbegun, PLAIN_FILE_LEFT_MAX);
	ends(0);
	cr_assert_eq(load(MANY), -ETIMEDOUT);
	cr_assert_eq(load(MANY + 1), -EBUSY);
	for (unsigned i = 1; i < nbegun; i++)
		ends(i);
	cr_assert_not(plain_file_any_left());
	answers = true;
	cr_assert_eq(load(0), -ENOENT, "%s", why);
}
