/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon, and the parent that waits for it. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "process.h"

/* Begin a daemon, which is ready if @ready says so.  The pid of its parent; from *@fd comes that of
 * the daemon, and the end with it. */
static pid_t begin(bool ready, int *fd)
{
	pid_t pid, own;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		if (daemon_begin() < 0)
			_exit(3);
		/* The test shall not wait for ever. */
		alarm(60);
		if (ready)
			daemon_ready();
		own = getpid();
		if (write(fds[1], &own, sizeof(own)) != sizeof(own))
			_exit(4);
		for (;;)
			pause();
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

static pid_t daemon_of(int fd)
{
	pid_t pid = 0;

	cr_assert_eq(read(fd, &pid, sizeof(pid)), sizeof(pid), "the daemon has begun");
	return pid;
}

static void expect_end(int fd)
{
	char byte;

	cr_assert_eq(read(fd, &byte, 1), 0, "the daemon has ended");
	close(fd);
}

/* Ctrl-C ends the parent: what it waited for does not begin later. */
Test(daemon, ends_with_a_parent_that_waits, .timeout = 30)
{
	int fd;
	pid_t parent = begin(false, &fd);

	daemon_of(fd);
	kill(parent, SIGINT);
	expect_end(fd);
	waitpid(parent, NULL, 0);
}

/* A parent that ends because the daemon is ready takes nothing with it. */
Test(daemon, outlives_its_parent, .timeout = 30)
{
	int fd, status;
	pid_t parent, pid;

	/* The daemon becomes a child of the test. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	parent = begin(true, &fd);
	pid = daemon_of(fd);
	cr_assert_eq(waitpid(parent, &status, 0), parent);
	cr_assert_eq(status, 0, "the parent has status 0");
	cr_assert_eq(waitpid(pid, &status, WNOHANG), 0, "the daemon lives");
	kill(pid, SIGKILL);
	expect_end(fd);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(WTERMSIG(status), SIGKILL, "nothing else has ended the daemon");
}
