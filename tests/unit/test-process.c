/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process ends while a call of a library goes on that its caller has left; daemons, and the
 * parents that wait for them; descriptors that are kept for clients. */
#include <config.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "process.h"
#include "unit.h"
#include "worker.h"

/* LeakSanitizer calls it.  At the exit() of a forked process it cannot stop the threads, and says
 * so. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

static int out;
static sem_t answer;

/* As the destructor of a library. */
static void destruct(void)
{
	if (write(out, "d", 1) != 1)
		abort();
}

static void in_library(void *arg)
{
	(void)arg;
	sem_wait(&answer);
}

static void nobody(void *arg)
{
	(void)arg;
}

static int impatient(void *arg, uint64_t ms)
{
	(void)arg;
	(void)ms;
	return -ETIMEDOUT;
}

static void leave_call(void)
{
	struct aside *call;

	if (aside_begin(&call, in_library, nobody, NULL) ||
	    aside_wait(call, impatient, NULL) != -ETIMEDOUT || !aside_left())
		abort();
}

static void ends_alone(void)
{
	end_with(3);
}

static void ends_beside_call(void)
{
	leave_call();
	end_with(3);
}

static void ends_behind_call(void)
{
	leave_call();
	sem_post(&answer);
	while (aside_left())
		usleep(1000);
	end_with(3);
}

static void ends_at_once(void)
{
	end_at_once(3);
}

/* What a process that @ends has written: "s" is what stdio held. */
static void check_end(void (*ends)(void), const char *written)
{
	char text[8] = "";
	int pipes[2], status;
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		FILE *f = fdopen(pipes[1], "w");

		out = pipes[1];
		sem_init(&answer, 0, 0);
		if (!f || atexit(destruct) || fputs("s", f) < 0)
			abort();
		ends();
	}
	close(pipes[1]);
	while ((r = read(pipes[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)r;
	close(pipes[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3, "status %x", (unsigned)status);
	cr_assert_str_eq(text, written);
}

Test(end, destructors_run_alone) { check_end(ends_alone, "ds"); }
Test(end, no_destructor_meets_a_call) { check_end(ends_beside_call, "s"); }
Test(end, a_call_that_has_ended_meets_none) { check_end(ends_behind_call, "ds"); }
Test(end, at_once) { check_end(ends_at_once, "s"); }

/* Begin a daemon, which is ready if @ready says so, of a program that blocks SIGINT, as those do
 * that wait for signals on a thread.  The pid of its parent; from *@fd comes that of
 * the daemon, and the end with it. */
static pid_t begin(bool ready, int *fd)
{
	const int last = FD_SETSIZE - 1, first = STDERR_FILENO + 1;
	pid_t pid, own;
	int fds[2], to;
	sigset_t set;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		/* The daemon closes the descriptors of its caller, and keeps its own. */
		to = fcntl(fds[1], F_DUPFD_CLOEXEC, 10);
		dup2(fds[1], first);
		dup2(fds[1], last);
		daemon_log_init("test-process", LOG_LEVEL_INFO);
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (daemon_begin() < 0)
			_exit(3);
		/* The test shall not wait for ever. */
		alarm(60);
		if (ready) {
			daemon_ready();
			if (fcntl(first, F_GETFD) >= 0 || fcntl(last, F_GETFD) >= 0)
				_exit(5);
		}
		own = getpid();
		if (write(to, &own, sizeof(own)) != sizeof(own))
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

Test(threads, why_there_are_no_more)
{
	struct rlimit limit;
	char want[80];

	cr_assert_eq(getrlimit(RLIMIT_NPROC, &limit), 0);
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)50000);
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &limit), 0);
	snprintf(want, sizeof(want), "(RLIMIT_NPROC is %llu: raise it",
		 (unsigned long long)limit.rlim_cur);
	cr_assert(strstr(threads_strerror(-EAGAIN), want));
	cr_assert(strstr(threads_strerror(-EMFILE), "(RLIMIT_NOFILE is "));
	cr_assert_str_eq(threads_strerror(-ENOMEM), strerror(ENOMEM));
}

#define RESERVE_MAX 64u			/* clients, as process.c has it; a part of the limit: */
#define RESERVE_PART 16u

static unsigned reserve_at(rlim_t limit, unsigned client)
{
	struct rlimit rlimit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &rlimit), 0);
	cr_assert_geq(rlimit.rlim_max, limit, "raise the hard limit of open files");
	rlimit.rlim_cur = limit;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &rlimit), 0);
	return fds_reserve(client);
}

Test(fds, reserve_up_to_the_limit)
{
	for (unsigned client = 1; client <= 3; client++) {
		unsigned most = RESERVE_MAX * client, limit = RESERVE_PART * most;

		cr_assert_eq(reserve_at(limit - 1, client), most - 1);
		cr_assert_eq(reserve_at(limit, client), most);
		cr_assert_eq(reserve_at(limit + RESERVE_PART, client), most);
		if (client == 1)
			cr_assert_eq(reserve_at(4 * limit, client), most);
		/* And never for fewer than two. */
		cr_assert_eq(reserve_at(RESERVE_PART, client), 2 * client);
	}
}
