/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in front of two functions of the C library, for the program and its libraries: no thread
 * blocks SIGSYS.  A denied call raises SIGSYS (filter.c), and the kernel ends a process that has
 * the signal blocked.  librados blocks all signals in its threads, so a call that a new version
 * of librados makes would end the server.  Any thread. */
#include <config.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

typedef int mask_fn(int how, const sigset_t *set, sigset_t *old);

static int change_mask(const char *name, int how, const sigset_t *set, sigset_t *old)
{
	mask_fn *next = (mask_fn *)dlsym(RTLD_NEXT, name);
	sigset_t others;

	if (set && how != SIG_UNBLOCK) {
		others = *set;
		sigdelset(&others, SIGSYS);
		set = &others;
	}
	return next(how, set, old);
}

int pthread_sigmask(int how, const sigset_t *newmask, sigset_t *oldmask)
{
	return change_mask("pthread_sigmask", how, newmask, oldmask);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *oset)
{
	return change_mask("sigprocmask", how, set, oset);
}
