/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that must not end a program, and threads that get no signals.  Short: six calls. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/* Ignore SIGXFSZ: a write beyond the limit of a file's size (RLIMIT_FSIZE) fails with EFBIG, and
 * does not end the program.  Do not ignore SIGCHLD, which the starter may: the end of a child would
 * be lost.  Call in main(), before anything is written, and any child is started. */
void signals_begin(void);

/* Signals that end a program by default and that daemons get out of habit; 0 is behind the last. */
extern const int signals_of_habit[];
/* Log that the program ignores @sig, one of signals_of_habit, because of @why; NULL: because it has
 * no log file.  Any thread. */
void signals_tell_ignored(int sig, const char *why);

/* Add @signals, up to a 0, to @set. */
void signals_add(sigset_t *set, const int *signals);
/* pthread_sigmask() of @signals, up to a 0. */
void signals_mask(int how, const int *signals);

/* pthread_create() of a thread that blocks all signals.  Signals are for other threads of the
 * program, which may be somebody else's (nbdkit): a write there is refused as signals_begin() says,
 * too.  Returns 0 or -errno. */
static inline int signals_thread(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

#endif
