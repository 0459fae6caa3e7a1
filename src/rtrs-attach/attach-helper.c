/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the process at work.  It is this program by another name (argv[0]), so that its file may be
 * replaced meanwhile. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"

int attach_helper_start(struct attach_helper *h, enum attach_helps task, const char *program,
			const char *word, const char *more)
{
	char *argv[] = { (char *)program, (char *)word, (char *)more, NULL };
	posix_spawnattr_t attr;
	sigset_t mask, defaults;
	int r;

	/* What ends this process, systemd for instance, may send its signal to all processes at
	 * hand: the helper of the end was started by that signal. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &mask);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = -posix_spawn(&h->pid, "/proc/self/exe", NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (r < 0)
		return r;
	h->fd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	if (h->fd < 0)
		return -errno;
	h->task = task;
	return 0;
}

int attach_helper_take(struct attach_helper *h)
{
	int status;

	close(h->fd);
	h->fd = -1;
	h->task = ATTACH_HELPS_NOT;
	if (waitpid(h->pid, &status, 0) != h->pid || !WIFEXITED(status))
		return EXIT_FAILED;
	return WEXITSTATUS(status);
}
