/* SPDX-License-Identifier: BSD-3-Clause */
/* The service loop as a thread around poll(): tasks, then timers, then descriptors.  Owns the
 * thread, its eventfd and its lists; @lock covers the task list alone.  Ends in clt_svc_destroy().
 * The thread itself cannot fail; creating it can. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "clt-svc.h"

struct clt_svc {
	pthread_t thread;
	pthread_mutex_t lock;
	struct list tasks;
	int wake_fd;
	atomic_bool stop;
	/* service thread */
	struct list timers;		/* earliest first */
	struct list watches;
	unsigned nwatches;
	unsigned changes;		/* watches added or removed: pfds[] is stale */
	struct pollfd *pfds;
	struct clt_watch **pwatch;	/* [i] belongs to pfds[i + 1] */
	unsigned room;
};

/* clt_svc_unwatch() has no svc argument; there is one loop per process that has threads. */
static _Thread_local struct clt_svc *this_svc;

static void svc_wake(struct clt_svc *svc)
{
	eventfd_write(svc->wake_fd, 1);
}

void clt_svc_post(struct clt_svc *svc, struct clt_task *task)
{
	bool first = false;

	pthread_mutex_lock(&svc->lock);
	if (list_empty(&task->link)) {
		first = list_empty(&svc->tasks);
		list_add_tail(&svc->tasks, &task->link);
	}
	pthread_mutex_unlock(&svc->lock);
	if (first && this_svc != svc)
		svc_wake(svc);
}

void clt_svc_cancel(struct clt_svc *svc, struct clt_task *task)
{
	LOCK_SCOPE(&svc->lock);
	list_del(&task->link);
}

static void run_tasks(struct clt_svc *svc)
{
	for (;;) {
		struct list *link;

		pthread_mutex_lock(&svc->lock);
		link = list_pop(&svc->tasks);
		pthread_mutex_unlock(&svc->lock);
		if (!link)
			return;
		struct clt_task *task = list_entry(link, struct clt_task, link);

		task->fn(task);
	}
}

void clt_svc_timer_set(struct clt_svc *svc, struct clt_timer *timer, uint64_t at_ms)
{
	struct clt_timer *pos;

	list_del(&timer->link);
	timer->at_ms = at_ms;
	list_for_each(pos, &svc->timers, link) {
		if (pos->at_ms > at_ms)
			break;
	}
	list_insert_before(&pos->link, &timer->link);
}

void clt_svc_timer_cancel(struct clt_timer *timer)
{
	list_del(&timer->link);
}

static struct clt_timer *first_timer(struct clt_svc *svc)
{
	return list_empty(&svc->timers) ? NULL :
		list_entry(svc->timers.next, struct clt_timer, link);
}

static void run_timers(struct clt_svc *svc)
{
	uint64_t now = clock_now_ms();
	struct clt_timer *timer;

	while ((timer = first_timer(svc)) && timer->at_ms <= now) {
		list_del(&timer->link);
		timer->fn(timer);
	}
}

void clt_svc_watch(struct clt_svc *svc, struct clt_watch *watch)
{
	assert(list_empty(&watch->link));
	list_add_tail(&svc->watches, &watch->link);
	svc->nwatches++;
	svc->changes++;
}

void clt_svc_unwatch(struct clt_watch *watch)
{
	if (list_empty(&watch->link))
		return;
	list_del(&watch->link);
	this_svc->nwatches--;
	this_svc->changes++;
}

/* Grow in steps; a thread that serves connections cannot go on without, so running out of a few
 * hundred bytes ends the process. */
static void poll_room(struct clt_svc *svc)
{
	unsigned n = svc->nwatches + 1;

	if (n <= svc->room)
		return;
	svc->room = n + 16;
	svc->pfds = realloc(svc->pfds, svc->room * sizeof(*svc->pfds));
	svc->pwatch = realloc(svc->pwatch, svc->room * sizeof(*svc->pwatch));
	if (!svc->pfds || !svc->pwatch)
		abort();
}

static int poll_timeout(struct clt_svc *svc)
{
	struct clt_timer *timer = first_timer(svc);
	uint64_t now = clock_now_ms();
	bool tasks;

	pthread_mutex_lock(&svc->lock);
	tasks = !list_empty(&svc->tasks);
	pthread_mutex_unlock(&svc->lock);
	if (tasks || (timer && timer->at_ms <= now))
		return 0;
	return timer ? (int)MIN(timer->at_ms - now, (uint64_t)60000) : -1;
}

static void run_watches(struct clt_svc *svc)
{
	struct clt_watch *w;
	unsigned n = 0, changes;
	eventfd_t ignored;

	poll_room(svc);
	svc->pfds[0] = (struct pollfd){ .fd = svc->wake_fd, .events = POLLIN };
	list_for_each(w, &svc->watches, link) {
		svc->pwatch[n++] = w;
		svc->pfds[n] = (struct pollfd){ .fd = w->fd, .events = w->events };
	}
	if (poll(svc->pfds, n + 1, poll_timeout(svc)) <= 0)
		return;
	if (svc->pfds[0].revents)
		eventfd_read(svc->wake_fd, &ignored);
	changes = svc->changes;
	/* A function may remove any watch; the rest is told in the next round (level). */
	for (unsigned i = 0; i < n && changes == svc->changes; i++) {
		if (svc->pfds[i + 1].revents)
			svc->pwatch[i]->ready(svc->pwatch[i], svc->pfds[i + 1].revents);
	}
}

static void *svc_main(void *arg)
{
	struct clt_svc *svc = arg;

	this_svc = svc;
	while (!atomic_load(&svc->stop)) {
		run_tasks(svc);
		run_timers(svc);
		run_watches(svc);
	}
	return NULL;
}

int clt_svc_create(struct clt_svc **out)
{
	struct clt_svc *svc = calloc(1, sizeof(*svc));
	int r;

	if (!svc)
		return -ENOMEM;
	list_init(&svc->tasks);
	list_init(&svc->timers);
	list_init(&svc->watches);
	pthread_mutex_init(&svc->lock, NULL);
	svc->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (svc->wake_fd < 0) {
		r = -errno;
		goto err_free;
	}
	r = -pthread_create(&svc->thread, NULL, svc_main, svc);
	if (r < 0)
		goto err_fd;
	pthread_setname_np(svc->thread, "rtrs-service");
	*out = svc;
	return 0;

err_fd:
	close(svc->wake_fd);
err_free:
	pthread_mutex_destroy(&svc->lock);
	free(svc);
	return r;
}

void clt_svc_destroy(struct clt_svc *svc)
{
	atomic_store(&svc->stop, true);
	svc_wake(svc);
	pthread_join(svc->thread, NULL);
	close(svc->wake_fd);
	pthread_mutex_destroy(&svc->lock);
	free(svc->pfds);
	free(svc->pwatch);
	free(svc);
}
