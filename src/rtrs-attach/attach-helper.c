/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the process at work.  A helper is this program by another name (argv[0]), so that its file
 * may be replaced meanwhile. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach-nbd.h"
#include "attach.h"
#include "cleanup.h"

#define READ_BYTES 4096u		/* the first IO; aligned as a page */

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

/* ---- the first read ---- */

/* Read once.  0 or -errno. */
static int read_disk(const char *disk)
{
	_cleanup_free_ void *buf = aligned_alloc(READ_BYTES, READ_BYTES);
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (!buf || asprintf(&path, "/dev/%s", disk) < 0)
		return -ENOMEM;
	/* The kernel has the node made before it has the driver answer. */
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	return fd < 0 || pread(fd, buf, READ_BYTES, 0) < 0 ? -errno : 0;
}

int attach_helper_read_main(int argc, char **argv)
{
	const char *disk = argc == 2 ? argv[1] : "";
	int r = read_disk(disk);

	if (r < 0) {
		fprintf(stderr, "rtrs-attach: /dev/%s: %s\n", disk, strerror(-r));
		return EXIT_FAILED;
	}
	r = attach_nbd_set_look(disk);
	if (r < 0)
		fprintf(stderr, "rtrs-attach: /sys/block/%s/queue/io_timeout: %s; the next process "
			"may hold requests up for 30 s\n", disk, strerror(-r));
	return EXIT_DONE;
}

/* ---- modprobe(8) ---- */

void attach_helper_module(const char *name)
{
	char modprobe[] = "modprobe", quiet[] = "-q";
	char *argv[] = { modprobe, quiet, (char *)name, NULL };
	pid_t pid;

	if (!posix_spawnp(&pid, modprobe, NULL, NULL, argv, environ))
		waitpid(pid, NULL, 0);
}
