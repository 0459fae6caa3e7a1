/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread opens, closes and revives a device while others use it: nobody uses it closed, and the
 * end of a closing is told exactly once (dev->ex is plain memory: TSan checks). */
#include <sched.h>

#include "export.h"
#include "srv-dev.h"
#include "thread.h"

#define CLOSINGS 20000

static struct srv_dev_table devs;
static struct export exports[2];
static atomic_uint id;			/* of the last one opened */
static atomic_bool stop;
static _Atomic(unsigned long) quiet_told;

static void quiet(struct loop_msg *msg)
{
}

static void use(void)
{
	struct srv_dev *dev = srv_dev_get(&devs, atomic_load(&id));

	if (!dev) {
		sched_yield();
		return;
	}
	check(dev->ex == &exports[0] || dev->ex == &exports[1]);
	if (srv_dev_put(dev))
		atomic_fetch_add(&quiet_told, 1);
}

/* Returns when the closing that has begun is complete. */
static void wait_quiet(unsigned long before)
{
	while (atomic_load(&quiet_told) == before)
		sched_yield();
	check(atomic_load(&quiet_told) == before + 1);
}

static void open_close(unsigned round)
{
	struct srv_dev *dev = srv_dev_open(&devs, &exports[round & 1], RNBD_ACCESS_RW);
	unsigned long before = atomic_load(&quiet_told);

	check(dev->id % SRV_DEV_SLOTS == 0 && dev->id / SRV_DEV_SLOTS == round);
	atomic_store(&id, dev->id);
	if (round % 16 == 0)
		sched_yield();
	if (!srv_dev_begin_close(dev, SRV_DEV_LOST)) {
		if (round % 2 && srv_dev_revive(dev)) {
			if (!srv_dev_begin_close(dev, SRV_DEV_CLOSED))
				wait_quiet(before);
		} else {
			wait_quiet(before);
		}
	}
	srv_dev_free(dev);
}

static void *worker(void *arg)
{
	int me = *(int *)arg;

	pthread_barrier_wait(&thread_start);
	if (me) {
		while (!atomic_load(&stop))
			use();
		return NULL;
	}
	for (unsigned i = 0; i < CLOSINGS; i++)
		open_close(i);
	atomic_store(&stop, true);
	return NULL;
}

int main(void)
{
	srv_dev_table_init(&devs, NULL, 1, quiet);
	run_threads(worker);
	srv_dev_table_fini(&devs);
	return 0;
}
