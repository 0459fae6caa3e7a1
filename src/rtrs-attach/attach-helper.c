/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes for work that may wait for a device.  Owns the process at work.  A helper is this
 * program by another name (argv[0]), so that its file may be replaced meanwhile. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach-nbd.h"
#include "attach.h"
#include "cleanup.h"
#include "clock.h"
#include "process.h"

#define READ_BYTES 4096u		/* the first IO; aligned as a page */

int attach_helper_start(struct attach_helper *h, enum attach_helps task, const char *program,
			const char *word, const char *more)
{
	char parent[16], *argv[] = { (char *)program, (char *)word, (char *)more, NULL, NULL };
	posix_spawnattr_t attr;
	sigset_t mask, defaults;
	int r;

	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	argv[more ? 3 : 2] = parent;
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

int attach_helper_begin(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* RACE: it may have ended before. */
	if (argc < 2 || atoi(argv[argc - 1]) != (int)getppid())
		return -1;
	argv[argc - 1] = NULL;
	return argc - 1;
}

int attach_helper_take(struct attach_helper *h)
{
	int status;

	close(h->fd);
	h->fd = -1;
	h->task = ATTACH_HELPS_NOT;
	if (waitpid(h->pid, &status, 0) != h->pid)
		return EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
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

/* ---- the child of rtrs-detach ---- */

/* Owns the child, and a pipe from it: a byte for each step, and the end of its process. */

#define STEP_SAYS_MS 5000		/* a step that takes longer is named */
#define STEP_WAIT_MS (END_MS + 7000)	/* for the end of a step; the child's limits are shorter */
#define FORCE_WAIT_MS 10000		/* with --force: then the process is killed */

static int step_fd = -1;		/* the child's end */

static void say(const char *name, enum detach_step at, uint64_t ms, const char *then)
{
	static const char *const missing[DETACH_STEPS] = {
		[DETACH_OPENS] = "the device cannot be opened yet",
		[DETACH_FLUSHES] = "the device is not flushed yet",
		[DETACH_REMOVES] = "the kernel has not removed the device yet",
		[DETACH_WAITS] = "the process of the device has not ended yet",
	};

	fprintf(stderr, "rtrs-detach: %s: %s, after %llu s: %s%s\n", name, missing[at],
		(unsigned long long)ms / 1000, then, at > DETACH_FLUSHES ? "" :
		"; its process or its server may be away; --force loses what is not written");
}

/* Wait until @until_ms for news of the child over @fd.  1: it is at *@at; 0: there are none; -1: it
 * has ended. */
static int next_step(int fd, uint64_t until_ms, enum detach_step *at)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now_ms = clock_now_ms();
	char byte;

	if (poll(&pfd, 1, until_ms > now_ms ? (int)(until_ms - now_ms) : 0) <= 0)
		return 0;
	if (read(fd, &byte, 1) != 1)
		return -1;
	*at = (enum detach_step)byte;
	return 1;
}

/* Kill the process of the device, which is of no use any more.  nbd.ko may wait for the requests of
 * a resize, and would wait for ever without the process; other removals by nbd.ko wait for none. */
static void kill_process(const char *name, pid_t child, enum detach_step at)
{
	pid_t pid = attach_state_process(name);
	struct attach_state s;
	char err[256];

	if (pid <= 0 || pid == child)
		return;
	if (at == DETACH_REMOVES && (attach_state_read(&s, name, err, sizeof(err)) < 0 ||
				     !strcmp(s.driver, "nbd")))
		return;
	fprintf(stderr, "rtrs-detach: %s: its process %d does not end, and is killed\n", name,
		(int)pid);
	kill(pid, SIGKILL);
}

/* Follow the steps of @child, which come over @fd.  False: it is given up. */
static bool follow(const char *name, bool force, pid_t child, int fd)
{
	uint64_t since_ms = clock_now_ms(), ms = STEP_SAYS_MS;
	enum detach_step at = DETACH_OPENS;
	int r;

	while ((r = next_step(fd, since_ms + ms, &at)) >= 0) {
		if (r > 0) {
			since_ms = clock_now_ms();
			ms = STEP_SAYS_MS;
		} else if (clock_now_ms() < since_ms + ms) {
			;		/* a signal */
		} else if (ms == STEP_SAYS_MS) {
			say(name, at, ms, "waiting");
			ms = force ? FORCE_WAIT_MS : STEP_WAIT_MS;
		} else if (ms == FORCE_WAIT_MS) {
			kill_process(name, child, at);
			ms = STEP_WAIT_MS;
		} else {
			say(name, at, ms, "given up");
			return false;
		}
	}
	return true;
}

static int complain(const char *name)
{
	fprintf(stderr, "rtrs-detach: %s: %s\n", name, fds_strerror(-errno));
	return -1;
}

/* The steps of @child come over @fd, which is taken. */
static int wait_for(const char *name, bool force, pid_t child, int fd)
{
	int status = 1;

	if (follow(name, force, child, fd))
		waitpid(child, &status, 0);
	else
		kill(child, SIGKILL);
	close(fd);
	return status ? -1 : 0;
}

int detach_child_run(const char *name, bool force, int (*work)(const char *name, const void *arg),
		     const void *arg)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return complain(name);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILED);
		close(fds[0]);
		step_fd = fds[1];
		_exit(work(name, arg) < 0 ? EXIT_FAILED : EXIT_DONE);
	}
	close(fds[1]);
	if (pid > 0)
		return wait_for(name, force, pid, fds[0]);
	close(fds[0]);
	return complain(name);
}

void detach_child_at(enum detach_step step)
{
	char byte = (char)step;

	(void)!write(step_fd, &byte, 1);
}
