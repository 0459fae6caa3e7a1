/* SPDX-License-Identifier: BSD-3-Clause */
/* A number is never held by two threads, none is lost, and what one holder wrote the next one sees
 * (owners[] is plain memory: TSan checks the ordering that get and put promise). */
#include <errno.h>

#include "bitmap.h"
#include "thread.h"
#include "util.h"

#define ROUNDS 50000
#define NBITS_MAX 130

static struct bitmap bitmap;
static struct {
	int holder;			/* thread number + 1 */
	unsigned long times;
} owners[NBITS_MAX];
static unsigned long got[NTHREADS];

static void *worker(void *arg)
{
	int me = *(int *)arg;

	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int bit = bitmap_get(&bitmap);

		if (bit == -EAGAIN)
			continue;
		check(bit >= 0 && bit < (int)bitmap.nbits);
		check(!owners[bit].holder);
		owners[bit].holder = me + 1;
		owners[bit].times++;
		got[me]++;
		check(owners[bit].holder == me + 1);
		owners[bit].holder = 0;
		bitmap_put(&bitmap, (unsigned)bit);
	}
	return NULL;
}

int main(void)
{
	/* fewer numbers than threads, as many, and several words */
	static const unsigned sizes[] = { 1, 3, 4, NBITS_MAX };

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned long taken = 0, given = 0;

		memset(owners, 0, sizeof(owners));
		memset(got, 0, sizeof(got));
		check(!bitmap_init(&bitmap, sizes[i]));
		run_threads(worker);
		check(!bitmap_weight(&bitmap));
		for (unsigned t = 0; t < NTHREADS; t++)
			taken += got[t];
		for (unsigned b = 0; b < NBITS_MAX; b++)
			given += owners[b].times;
		check(taken == given && taken);
		/* as many numbers as threads are always enough */
		check(sizes[i] < NTHREADS || taken == (unsigned long)ROUNDS * NTHREADS);
		bitmap_fini(&bitmap);
	}
	return 0;
}
