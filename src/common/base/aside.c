/* SPDX-License-Identifier: BSD-3-Clause */
/* A call is owned by its thread and its caller, until one of the two has left: the last one frees
 * the call. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "clock.h"
#include "signals.h"
#include "worker.h"

#define LOOK_MS 100u			/* how often a wait asks for patience */

enum aside_state { ASIDE_RUNS, ASIDE_ENDED, ASIDE_LEFT };

struct aside {
	void (*fn)(void *arg);
	void (*left)(void *arg);
	void *arg;
	uint64_t since_ms;
	pthread_mutex_t lock;		/* the next two; innermost */
	pthread_cond_t ended;
	enum aside_state state;
};

static atomic_uint nleft;

/* The real time, in a simulation, too: the thread is a real one. */
static uint64_t now_ms(void)
{
	return clock_measure_ns() / 1000000;
}

static void aside_free(struct aside *call)
{
	pthread_cond_destroy(&call->ended);
	pthread_mutex_destroy(&call->lock);
	free(call);
}

static void *aside_main(void *arg)
{
	struct aside *call = arg;
	bool left;

	call->fn(call->arg);
	pthread_mutex_lock(&call->lock);
	left = call->state == ASIDE_LEFT;
	call->state = ASIDE_ENDED;
	pthread_cond_signal(&call->ended);
	pthread_mutex_unlock(&call->lock);
	if (!left)
		return NULL;		/* the caller has freed the call, or does so now */
	call->left(call->arg);
	aside_free(call);
	atomic_fetch_sub(&nleft, 1);
	return NULL;
}

static int aside_start(struct aside *call)
{
	pthread_t thread;
	int rc = signals_thread(&thread, aside_main, call);

	if (!rc)
		pthread_detach(thread);
	return rc;
}

int aside_begin(struct aside **out, void (*fn)(void *arg), void (*left)(void *arg), void *arg)
{
	struct aside *call = calloc(1, sizeof(*call));
	int rc;

	*out = NULL;
	if (!call)
		return -ENOMEM;
	*call = (struct aside){ .fn = fn, .left = left, .arg = arg, .since_ms = now_ms(),
				.lock = PTHREAD_MUTEX_INITIALIZER,
				.ended = PTHREAD_COND_INITIALIZER };
	rc = aside_start(call);
	if (rc)
		aside_free(call);
	else
		*out = call;
	return rc;
}

/* Wait for the end of @call, for a while at most.  Under its lock. */
static void look_again(struct aside *call)
{
	const struct timespec until = clock_in_ms(LOOK_MS);

	pthread_cond_clockwait(&call->ended, &call->lock, CLOCK_MONOTONIC, &until);
}

int aside_wait(struct aside *call, aside_patience_fn *patience, void *patience_arg)
{
	bool ended;
	int rc = 0;

	pthread_mutex_lock(&call->lock);
	while (call->state == ASIDE_RUNS &&
	       !(rc = patience(patience_arg, now_ms() - call->since_ms)))
		look_again(call);
	ended = call->state == ASIDE_ENDED;
	if (!ended) {
		call->state = ASIDE_LEFT;
		atomic_fetch_add(&nleft, 1);
	}
	pthread_mutex_unlock(&call->lock);
	if (ended)
		aside_free(call);
	return ended ? 0 : rc;
}

bool aside_left(void)
{
	return atomic_load(&nleft) > 0;
}

void aside_here(void (*fn)(void *arg), void *arg)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	fn(arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
