/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose lock of a file counts (store-file-priv.h), when many processes have one.  As root. */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock-file.h"
#include "store-file-priv.h"
#include "unit.h"

#define PIDS_MAX 64u			/* as store-file-holder.c has it */
#define NOBODY 65534

static char file[] = "/tmp/test-store-file-holder.XXXXXX";
static pid_t pids[4 * PIDS_MAX + 1];
static unsigned npids;

size_t __real_lock_holders(const struct stat *st, pid_t *found, size_t max);
size_t __wrap_lock_holders(const struct stat *st, pid_t *found, size_t max);

/* The kernel has a list of locks for each CPU.  Here the last process is behind all others. */
size_t __wrap_lock_holders(const struct stat *st, pid_t *found, size_t max)
{
	pid_t all[ARRAY_SIZE(pids)], last = pids[npids - 1];
	size_t listed = __real_lock_holders(st, all, ARRAY_SIZE(all)), n = 0;

	for (size_t i = 0; i < listed && n < max; i++) {
		if (all[i] != last)
			found[n++] = all[i];
	}
	if (listed && n < max)
		found[n++] = last;
	return n;
}

/* A process of @uid takes a lock beside those of the others. */
static void another(uid_t uid)
{
	int ready[2];
	char byte;

	cr_assert_eq(pipe(ready), 0);
	pids[npids] = fork();
	cr_assert_geq(pids[npids], 0);
	if (!pids[npids]) {
		int fd = open(file, O_RDONLY);

		if (fd < 0 || flock(fd, LOCK_SH) || setgid(uid) || setuid(uid) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	npids++;
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static void end_all(void)
{
	while (npids) {
		kill(pids[--npids], SIGKILL);
		waitpid(pids[npids], NULL, 0);
	}
}

/* No process is outside of this namespace of PIDs. */
static bool sees_all(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == 0xeffffffc;
}

/* Of strangers none counts, however many there are, if no other process may have a lock; and one of
 * ours is found behind all of them. */
Test(store_file_holder, holders_up_to_the_limit, .fini = end_all)
{
	static const unsigned counts[] = { PIDS_MAX - 1, PIDS_MAX, PIDS_MAX + 1, 4 * PIDS_MAX };
	char who[128], ours[32];
	int fd, next;
	struct stat st;
	pid_t pid;

	if (geteuid())
		cr_skip_test("not root: no processes of other users");
	fd = mkstemp(file);
	cr_assert(fd >= 0 && fchmod(fd, 0644) == 0 && fstat(fd, &st) == 0);
	another(NOBODY);
	if (!lock_holders(&st, &pid, 1)) {
		unlink(file);
		cr_skip_test("/proc/locks has other numbers for files of /tmp");
	}
	next = dup(fd);
	close(next);
	for_each_case(n, counts) {
		while (npids < *n)
			another(NOBODY);
		cr_assert_eq(store_file_holder_counts(fd, who, sizeof(who)), !sees_all(), "%u: %s",
			     *n, who);
		cr_assert(strstr(who, " of user 65534"), "%u: %s", *n, who);
		another(0);
		cr_assert(store_file_holder_counts(fd, who, sizeof(who)), "%u: %s", *n, who);
		snprintf(ours, sizeof(ours), "process %d ", pids[npids - 1]);
		cr_assert(strstr(who, ours), "%u: %s", *n, who);
		kill(pids[--npids], SIGKILL);
		waitpid(pids[npids], NULL, 0);
	}
	cr_assert_eq(dup(fd), next, "a file is left open");
	unlink(file);
	close(fd);
}
