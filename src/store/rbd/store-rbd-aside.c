/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns each thread until its end. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "store-rbd-priv.h"

struct call {
	void (*fn)(void *arg);
	void *arg;
};

static void *call_main(void *arg)
{
	struct call call = *(struct call *)arg;

	free(arg);
	call.fn(call.arg);
	return NULL;
}

/* Start @fn(@arg) on a thread without signals.  0 or -errno. */
static int call_start(pthread_t *thread, void (*fn)(void *arg), void *arg)
{
	struct call *call = malloc(sizeof(*call));
	sigset_t all, before;
	int rc;

	if (!call)
		return -ENOMEM;
	*call = (struct call){ fn, arg };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, call_main, call);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		free(call);
	return -rc;
}

int store_rbd_aside(void (*fn)(void *arg), void *arg)
{
	pthread_t thread;
	int rc = call_start(&thread, fn, arg);

	if (!rc)
		pthread_join(thread, NULL);
	return rc;
}

int store_rbd_aside_for(void (*fn)(void *arg), void *arg, unsigned seconds)
{
	struct timespec until;
	pthread_t thread;
	int rc = call_start(&thread, fn, arg);

	if (rc)
		return rc;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	rc = pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
	if (rc)
		pthread_detach(thread);
	return -rc;
}
