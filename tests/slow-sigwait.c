/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into rtrs-nbd: a busy machine.  A thread that has taken a signal by sigwait() writes
 * the file $SIGWAIT_TAKEN, and gets no CPU until another one waits for its end. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_t taker;
static atomic_bool has_taken, joins;

int pthread_join(pthread_t thread, void **value)
{
	int (*join)(pthread_t thread, void **value);

	*(void **)&join = dlsym(RTLD_NEXT, "pthread_join");
	if (atomic_load(&has_taken) && pthread_equal(thread, taker))
		atomic_store(&joins, true);
	return join(thread, value);
}

int sigwait(const sigset_t *set, int *sig)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int (*wait)(const sigset_t *set, int *sig), rc;

	*(void **)&wait = dlsym(RTLD_NEXT, "sigwait");
	rc = wait(set, sig);
	taker = pthread_self();
	atomic_store(&has_taken, true);
	close(open(getenv("SIGWAIT_TAKEN"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	/* pthread_cancel() ends the thread here, as in the call of the kernel. */
	while (!atomic_load(&joins))
		nanosleep(&nap, NULL);
	return rc;
}
