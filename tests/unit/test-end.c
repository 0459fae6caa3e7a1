/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process ends while a call of a library goes on that its caller has left. */
#include <config.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aside.h"
#include "process.h"
#include "unit.h"

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
