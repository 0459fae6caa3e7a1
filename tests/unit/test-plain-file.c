/* SPDX-License-Identifier: BSD-3-Clause */
/* Files on file systems that do not answer: how many threads stay behind, and that they come back.
 * The calls of worker.h here never end by themselves: their callers lose patience at once, and the
 * test ends a call that was left. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plain-file.h"
#include "process.h"
#include "util.h"
#include "worker.h"

#define MANY (4 * PLAIN_FILE_LEFT_MAX)

static struct call {
	void (*left)(void *arg);
	void *arg;
} calls[MANY];
static unsigned nbegun;
static bool answers;		/* the file system */
static unsigned asked;		/* how often the last caller has waited on */
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
	int rc;

	(void)call;
	asked = 0;
	if (answers)
		return 0;
	while (!(rc = patience(patience_arg, asked * 100ull))) {
		asked++;
		cr_assert_lt(asked, 1000u, "somebody waits for ever");
	}
	return rc;
}

bool aside_left(void)
{
	return false;
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
	for (unsigned i = 0; i < PLAIN_FILE_LEFT_MAX; i++) {
		cr_assert_eq(load(i), -ETIMEDOUT, "%u: %s", i, why);
		/* Two threads never wait for one name. */
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
	answers = true;
	cr_assert_eq(load(0), -ENOENT, "%s", why);
}

static char growing[] = "/tmp/test-plain-file.XXXXXX";
static unsigned grows;		/* the next reads that somebody writes to @growing before */
static bool goes;		/* ... and removes it */

ssize_t read(int fd, void *buf, size_t n)
{
	if (grows) {
		int writer = open(growing, O_WRONLY | O_APPEND);

		grows--;
		cr_assert_eq(write(writer, "+", 1), 1);
		close(writer);
		if (goes)
			unlink(growing);
	}
	return syscall(SYS_read, fd, buf, n);
}

/* A file that grows while it is read is read again, three times at most. */
Test(plain_file, grows_while_it_is_read)
{
	struct plain_file file;
	int fd = mkstemp(growing);

	answers = true;
	cr_assert_eq(write(fd, "text", 4), 4);
	grows = 3;
	cr_assert_eq(plain_file_load(growing, 4096, &file, why, sizeof(why)), 0, "%s", why);
	cr_assert_str_eq(file.text, "text+++");
	plain_file_free(&file);
	grows = 4;
	cr_assert_eq(plain_file_load(growing, 4096, &file, why, sizeof(why)), -EAGAIN);
	cr_assert_eq(grows, 0);
	grows = 1000;
	cr_assert_eq(plain_file_load(growing, 4096, &file, why, sizeof(why)), -EAGAIN);
	cr_assert_gt(grows, 900u);
	grows = 0;
	cr_assert(strstr(why, "has grown"), "%s", why);
	/* The last try has the reason. */
	grows = 1;
	goes = true;
	cr_assert_eq(plain_file_load(growing, 4096, &file, why, sizeof(why)), -ENOENT);
	cr_assert_not(strstr(why, "has grown"), "%s", why);
	close(fd);
}

/* Writing and removing have the same bound as reading, and nobody goes where a writer waits. */
Test(plain_file, a_write_is_left)
{
	cr_assert_eq(plain_file_write("/nowhere/w", "text", 4, why, sizeof(why)), -ETIMEDOUT);
	cr_assert_eq(plain_file_remove("/nowhere/w", why, sizeof(why)), -ETIMEDOUT);
	cr_assert_eq(nbegun, 1);
	cr_assert_eq(plain_file_remove("/nowhere/r", why, sizeof(why)), -ETIMEDOUT);
	cr_assert_eq(nbegun, 2);
	ends(0);
	ends(1);
	answers = true;
	cr_assert_eq(plain_file_write("/nowhere/w", "text", 4, why, sizeof(why)), -ENOENT);
	cr_assert_str_eq(why, "No such file or directory");
	cr_assert_eq(plain_file_remove("/nowhere/w", why, sizeof(why)), 0, "%s", why);
}

/* The end of the program does not wait for what is read, and waits for what is changed. */
Test(plain_file, the_end_does_not_wait_for_reads)
{
	cr_assert_eq(load(0), -ETIMEDOUT);
	cr_assert_gt(asked, 0);
	end_begin();
	cr_assert_eq(load(1), -ECANCELED);
	cr_assert_eq(asked, 0);
	cr_assert_str_eq(why, "the program ends");
	cr_assert_eq(plain_file_remove("/nowhere/r", why, sizeof(why)), -ETIMEDOUT);
	cr_assert_gt(asked, 0);
	for (unsigned i = 0; i < nbegun; i++)
		ends(i);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

/* A file that the program keeps at a path is replaced and removed, and no other file. */
Test(plain_file, what_is_of_others_stays)
{
	char path[] = "/tmp/test-plain-file.XXXXXX", new[sizeof(path) + 4];
	struct plain_file_own own = { .path = path, .begin = "# HELP " };
	int fd = mkstemp(path);
	char tmp[64];
	struct stat st;

	answers = true;
	snprintf(new, sizeof(new), "%s.tmp", path);
	put(new, "image");
	cr_assert_eq(plain_file_own_write(&own, "# HELP ", 7, why, sizeof(why)), -EEXIST);
	cr_assert(strstr(why, "its name with '.tmp' exists"), "%s", why);
	cr_assert_eq(access(new, F_OK), 0);
	/* As a run before has left it. */
	put(new, "# HE");
	cr_assert_eq(plain_file_own_write(&own, "# HELP a", 8, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(plain_file_own_write(&own, "# HELP b", 8, why, sizeof(why)), 0, "%s", why);
	/* Others write to this very file. */
	put(path, "image");
	cr_assert_eq(plain_file_own_write(&own, "# HELP c", 8, why, sizeof(why)), -EEXIST);
	cr_assert(strstr(why, "does not begin with '# HELP '"), "%s", why);
	cr_assert_eq(plain_file_own_remove(&own, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(access(path, F_OK), 0);
	/* Nor is what somebody has at the name of the new file. */
	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	unlink(path);
	for (unsigned i = 0; i < 5; i++) {
		cr_assert_eq(i == 0 ? symlink("/", tmp) : i == 1 ? mkfifo(tmp, 0600) :
			     i == 2 ? mkdir(tmp, 0700) : i == 3 ? symlink("none", tmp) : 0, 0);
		if (i == 4)
			put(tmp, "image");
		cr_assert_eq(plain_file_own_write(&own, "# HELP c", 8, why, sizeof(why)), -EEXIST);
		cr_assert(strstr(why, i == 4 ? "'.tmp' exists and does not begin with" :
				 "'.tmp' exists and is no regular file"), "%s", why);
		cr_assert(i == 4 || plain_file_write(path, "x", 1, why, sizeof(why)) == -EEXIST);
		cr_assert_eq(lstat(tmp, &st), 0, "%u", i);
		cr_assert_eq(remove(tmp), 0);
	}
	/* A part of a text, which a call that was left may have written. */
	answers = false;
	cr_assert_eq(plain_file_own_write(&own, "# HELP d", 8, why, sizeof(why)), -ETIMEDOUT);
	ends(nbegun - 1);
	answers = true;
	put(path, "# HE");
	cr_assert_eq(plain_file_own_remove(&own, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(access(path, F_OK), -1);
	close(fd);
}
