/* SPDX-License-Identifier: BSD-3-Clause */
/* What the thread tests share: plain programs, because Criterion aborts under TSan. */
#ifndef TESTS_THREAD_H
#define TESTS_THREAD_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NTHREADS 4

#define check(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static pthread_barrier_t thread_start;

/* Run @fn on NTHREADS threads with its number as argument; they begin together with
 * pthread_barrier_wait(&thread_start).  Returns when all have ended. */
static inline void run_threads(void *(*fn)(void *number))
{
	static int numbers[NTHREADS];
	pthread_t threads[NTHREADS];

	check(!pthread_barrier_init(&thread_start, NULL, NTHREADS));
	for (int i = 0; i < NTHREADS; i++) {
		numbers[i] = i;
		check(!pthread_create(&threads[i], NULL, fn, &numbers[i]));
	}
	for (int i = 0; i < NTHREADS; i++)
		check(!pthread_join(threads[i], NULL));
	pthread_barrier_destroy(&thread_start);
}

#endif
