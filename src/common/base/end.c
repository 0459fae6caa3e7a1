/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the thread, which sleeps until the end begins, and then until it is over. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "aside.h"
#include "end.h"
#include "log.h"
#include "signals.h"

enum end_state { END_NOT, END_BEGUN, END_OVER };

static _Atomic(enum end_state) state;
static _Atomic(const char *) waits_for = "its start";
static void (*last_fn)(void);
static sem_t news;			/* posted for each change of @state */
static pthread_t thread;
static bool running;

static void end_by_force(void)
{
	if (last_fn)
		last_fn();
	log_err(NULL, "shutdown has taken %u s: exiting without waiting for %s",
		END_MS / 1000, atomic_load(&waits_for));
	_exit(1);
}

static void *end_main(void *arg)
{
	struct timespec until;
	int r;

	while (atomic_load(&state) == END_NOT)
		sem_wait(&news);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += END_MS / 1000;
	while (atomic_load(&state) == END_BEGUN) {
		r = sem_clockwait(&news, CLOCK_MONOTONIC, &until);
		if (r < 0 && errno == ETIMEDOUT && atomic_load(&state) == END_BEGUN)
			end_by_force();
	}
	return NULL;
}

int end_init(void (*last)(void))
{
	int r;

	last_fn = last;
	sem_init(&news, 0, 0);
	r = signals_thread(&thread, end_main, NULL);
	if (r < 0)
		return r;
	pthread_setname_np(thread, "end");
	running = true;
	return 0;
}

void end_begin(void)
{
	enum end_state not = END_NOT;

	if (atomic_compare_exchange_strong(&state, &not, END_BEGUN))
		sem_post(&news);
}

bool end_has_begun(void)
{
	return atomic_load(&state) != END_NOT;
}

void end_waits_for(const char *what)
{
	atomic_store(&waits_for, what);
}

void end_over(void)
{
	if (!running)
		return;
	atomic_store(&state, END_OVER);
	sem_post(&news);
	pthread_join(thread, NULL);
	running = false;
}

void end_at_once(int status)
{
	fflush(NULL);
	_exit(status);
}

void end_with(int status)
{
	if (aside_left())
		end_at_once(status);
	exit(status);
}
