/* SPDX-License-Identifier: BSD-3-Clause */
/* A call is owned by its thread and its caller, until one of the two has left: the last one frees
 * the call. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "exports.h"
#include "log.h"
#include "signals.h"
#include "store-rbd-priv.h"
#include "util.h"

#define LOOK_NS 100000000l		/* how often a wait looks whether the server stops */
#define TELL_MS 5000u
#define ADVISE_MS 10000u

enum call_state { CALL_RUNS, CALL_ENDED, CALL_LEFT };

struct rbd_call {
	void (*fn)(void *arg);
	void (*left)(void *arg);
	void *arg;
	uint64_t since_ms;
	pthread_mutex_t lock;		/* the next two; innermost */
	pthread_cond_t ended;
	enum call_state state;
};

static void call_free(struct rbd_call *call)
{
	pthread_cond_destroy(&call->ended);
	pthread_mutex_destroy(&call->lock);
	free(call);
}

static void *call_main(void *arg)
{
	struct rbd_call *call = arg;
	bool left;

	call->fn(call->arg);
	pthread_mutex_lock(&call->lock);
	left = call->state == CALL_LEFT;
	call->state = CALL_ENDED;
	pthread_cond_signal(&call->ended);
	pthread_mutex_unlock(&call->lock);
	if (!left)
		return NULL;		/* the caller has freed the call, or does so now */
	call->left(call->arg);
	call_free(call);
	return NULL;
}

static int call_start(struct rbd_call *call)
{
	pthread_t thread;
	int rc = signals_thread(&thread, call_main, call);

	if (!rc)
		pthread_detach(thread);
	return rc;
}

int store_rbd_aside_begin(struct rbd_call **out, void (*fn)(void *arg), void (*left)(void *arg),
			 void *arg)
{
	struct rbd_call *call = calloc(1, sizeof(*call));
	int rc;

	*out = NULL;
	if (!call)
		return -ENOMEM;
	*call = (struct rbd_call){ .fn = fn, .left = left, .arg = arg,
				   .since_ms = clock_now_ms() };
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->ended, NULL);
	rc = call_start(call);
	if (rc)
		call_free(call);
	else
		*out = call;
	return rc;
}

/* 0: the caller of @call has to wait on. */
static int why_to_leave(const struct rbd_call *call, const struct rbd_patience *p)
{
	if (p->stops && atomic_load(p->stops))
		return -ECANCELED;
	if (p->limit_s && clock_now_ms() - call->since_ms >= p->limit_s * 1000ull)
		return -ETIMEDOUT;
	return 0;
}

/* Say once for whom @call waits, and once what may be the cause: @told lines until now.  Returns
 * the lines from now on. */
static unsigned tell(const struct rbd_call *call, const struct rbd_patience *p, unsigned told)
{
	uint64_t ms = clock_now_ms() - call->since_ms;

	if (p->whom && !told && ms >= TELL_MS) {
		log_warn(p->ex->name, "'%s': waiting for %s", p->ex->path, p->whom);
		return 1;
	}
	if (p->advice && told == 1 && ms >= ADVISE_MS) {
		log_warn(p->ex->name, "'%s': still waiting for %s: %s", p->ex->path, p->whom,
			 p->advice);
		return 2;
	}
	return told;
}

int store_rbd_aside_wait(struct rbd_call *call, const struct rbd_patience *p)
{
	struct timespec until;
	unsigned told = 0;
	bool ended;
	int rc = 0;

	pthread_mutex_lock(&call->lock);
	while (call->state == CALL_RUNS && !(rc = why_to_leave(call, p))) {
		told = tell(call, p, told);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_clockwait(&call->ended, &call->lock, CLOCK_MONOTONIC, &until);
	}
	ended = call->state == CALL_ENDED;
	if (!ended)
		call->state = CALL_LEFT;
	pthread_mutex_unlock(&call->lock);
	if (ended)
		call_free(call);
	return ended ? 0 : rc;
}

void store_rbd_aside_here(void (*fn)(void *arg), void *arg)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	fn(arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
