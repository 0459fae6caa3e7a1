/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what drained connections leave behind, until the device lets go of it.
 *
 * To destroy a queue pair may take long (doc/verbs.md Q19), and whoever ends a path has other paths
 * to keep alive meanwhile.  A connection that has drained touches no memory any more, so a thread
 * destroys it, and behind it, in the order of the calls, the regions and windows of its pd and the
 * pd itself.
 *
 * A device has a thread of its own (struct verbs_dev) while there is something to destroy: no
 * device waits for another one.  The program's end waits for these threads, VERBS_DRAIN_MS at
 * most. */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <rdma/rdma_cma.h>

#include "clock.h"
#include "log.h"
#include "signals.h"
#include "verbs-priv.h"

/* The threads of all devices. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;		/* n; innermost */
	pthread_cond_t ended;
	unsigned n;
} reapers = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

/* All objects of a path end together. */
static struct log_limit late_limit = LOG_LIMIT_INIT(1, 10000);

/* librdmacm ends behind this, and must not meanwhile. */
static void wait_for_reapers(void)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += VERBS_DRAIN_MS / 1000;
	pthread_mutex_lock(&reapers.lock);
	while (reapers.n && !rc)
		rc = pthread_cond_timedwait(&reapers.ended, &reapers.lock, &until);
	pthread_mutex_unlock(&reapers.lock);
}

static void prepare(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reapers.ended, &attr);
	pthread_condattr_destroy(&attr);
	atexit(wait_for_reapers);
}

static void count_reapers(int more)
{
	pthread_once(&reapers.once, prepare);
	pthread_mutex_lock(&reapers.lock);
	reapers.n += (unsigned)more;
	pthread_cond_signal(&reapers.ended);
	pthread_mutex_unlock(&reapers.lock);
}

/* The last one of a pd is the pd's own, which frees it. */
static void run(struct verbs_reap *job)
{
	struct verbs_pd *pd = job->pd;

	job->destroy(job);
	if (pd)
		atomic_fetch_sub(&pd->nleaving, 1);
}

static void tell_late(const struct verbs_dev *dev)
{
	uint64_t ms = clock_now_ms() - dev->since_ms;

	if (ms >= VERBS_DRAIN_MS)
		log_limited(&late_limit, LOG_LEVEL_WARN, NULL,
			    "rdma: %s took %llu s to release a connection",
			    ibv_get_device_name(dev->verbs->device),
			    (unsigned long long)ms / 1000);
}

static void *reaper_main(void *arg)
{
	struct verbs_dev *dev = arg;
	struct verbs_cm *cm = dev->cm;
	struct verbs_reap *job;
	struct rdma_cm_id *id;
	void (*cm_free)(struct verbs_cm *cm);

	pthread_mutex_lock(&cm->lock);
	while ((job = list_pop_entry(&dev->jobs, struct verbs_reap, link))) {
		dev->since_ms = clock_now_ms();
		pthread_mutex_unlock(&cm->lock);
		run(job);
		tell_late(dev);
		pthread_mutex_lock(&cm->lock);
		dev->njobs--;
	}
	id = verbs_dev_release(dev);
	pthread_mutex_unlock(&cm->lock);
	/* RACE: the id needs the channel of @cm, which verbs_cm_destroy() does not free yet. */
	if (id)
		rdma_destroy_id(id);
	pthread_mutex_lock(&cm->lock);
	cm_free = --cm->nreapers ? NULL : cm->free;
	pthread_mutex_unlock(&cm->lock);
	if (cm_free)
		cm_free(cm);
	count_reapers(-1);
	return NULL;
}

/* Give @job to the thread of @dev.  False: there is none.  cm->lock held. */
static bool give(struct verbs_dev *dev, struct verbs_reap *job)
{
	pthread_t thread;

	if (!dev->njobs) {
		dev->since_ms = clock_now_ms();
		count_reapers(1);
		/* ORDER: the thread begins with the lock. */
		if (signals_thread(&thread, reaper_main, dev)) {
			count_reapers(-1);
			return false;
		}
		pthread_detach(thread);
		dev->cm->nreapers++;
	}
	dev->njobs++;
	list_add_tail(&dev->jobs, &job->link);
	return true;
}

bool verbs_reap_is_late(const struct verbs_dev *dev)
{
	return dev->njobs && clock_now_ms() - dev->since_ms >= VERBS_DRAIN_MS;
}

bool verbs_reap_follows(const struct verbs_pd *pd)
{
	return !atomic_load(&pd->nconns) && atomic_load(&pd->nleaving);
}

void verbs_reap(struct verbs_pd *pd, struct verbs_reap *job)
{
	struct verbs_cm *cm = pd->cm;
	bool given;

	if (job->pd)
		atomic_fetch_add(&pd->nleaving, 1);
	pthread_mutex_lock(&cm->lock);
	given = give(pd->dev, job);
	pthread_mutex_unlock(&cm->lock);
	if (!given)
		run(job);
}
