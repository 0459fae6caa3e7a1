/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the pipe between a daemon and its parent.  A daemon that ends before it is ready closes the
 * pipe, and its parent fails.  A parent that ends before the daemon is ready ends the daemon. */
#include <config.h>

#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static int ready_fd = -1;		/* of the daemon, until it is ready */

/* The parent: returns the exit status. */
static int wait_ready(int fd)
{
	char byte;
	ssize_t n;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : 1;
}

int daemon_begin(void)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	close(fds[pid ? 1 : 0]);
	if (pid)
		_exit(wait_ready(fds[0]));
	/* Ctrl-C ends the parent alone. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	ready_fd = fds[1];
	setsid();
	return chdir("/") < 0 ? -errno : 0;
}

void daemon_ready(void)
{
	int null;

	if (ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
	/* ORDER: the parent ends when it has the byte. */
	prctl(PR_SET_PDEATHSIG, 0);
	(void)!write(ready_fd, "", 1);
	close(ready_fd);
	ready_fd = -1;
}
