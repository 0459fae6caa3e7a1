/* SPDX-License-Identifier: BSD-3-Clause */
/* The next request for a chunk goes on when the answer before it has been posted, and not earlier,
 * once: by itself or because it is told (key is plain memory: TSan checks the ordering). */
#include <sched.h>
#include <stdatomic.h>

#include "srv-key.h"
#include "thread.h"
#include "util.h"

#define ROUNDS 200000

static struct srv_turn turn;
static unsigned key;			/* what posted() changes, and the next one takes */
static atomic_uint answers, requests;	/* as the client counts them: a request follows an answer */
static atomic_bool told;
static unsigned long by_itself, by_word;

/* Posts answers; the client has each before it is posted as far as this thread knows. */
static void *answering(void *arg)
{
	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		while (atomic_load_explicit(&requests, memory_order_acquire) != i)
			sched_yield();
		srv_turn_post(&turn);
		atomic_store_explicit(&answers, i + 1, memory_order_release);
		if (i % 2)
			sched_yield();
		key++;
		if (srv_turn_posted(&turn))
			atomic_store_explicit(&told, true, memory_order_release);
	}
	return NULL;
}

static void *requesting(void *arg)
{
	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		while (atomic_load_explicit(&answers, memory_order_acquire) != i + 1)
			sched_yield();
		if (srv_turn_next(&turn)) {
			by_itself++;
		} else {
			while (!atomic_exchange_explicit(&told, false, memory_order_acquire))
				sched_yield();
			by_word++;
		}
		check(key == i + 1);
		check(!atomic_load(&told));
		atomic_store_explicit(&requests, i + 1, memory_order_release);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	check(!pthread_barrier_init(&thread_start, NULL, 2));
	check(!pthread_create(&threads[0], NULL, answering, NULL));
	check(!pthread_create(&threads[1], NULL, requesting, NULL));
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		check(!pthread_join(threads[i], NULL));
	check(key == ROUNDS && by_itself + by_word == ROUNDS);
	check(by_word);		/* else nothing was tried */
	return 0;
}
