/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop as a thread around epoll_wait(): a pass costs what is ready, not what is watched, so a
 * thousand idle clients cost nothing.  Owns the thread and the epoll descriptor.  Ends by a message
 * to itself.  Creating the thread can fail, and loop_watch(); the running thread cannot.
 *
 * The kernel hears of changed events right before the next epoll_wait(): events that a pass changes
 * and changes back are no system call. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "loop-impl.h"
#include "loop.h"
#include "signals.h"

#define SLEEP_MAX_MS 60000
#define EVENTS 64			/* of one pass; the others come in the next ones */

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLRDHUP == POLLRDHUP,
	       "events of poll() are those of epoll");

struct loop_poll {
	struct loop loop;
	pthread_t thread;
	struct loop_msg stop_msg;
	bool stopped;
	bool due;			/* timers may be: the wait has ended by time, or was none */
	int epfd;
	struct list changed;		/* struct loop_watch.change: events != asked, perhaps */
	struct list run;		/* struct loop_watch.link: ready() is due */
	struct list closed;		/* struct loop_watch.link: unwatched, closed() is due */
	struct loop_watch *in_ready;	/* ready() runs; NULL when unwatched meanwhile */
};

static struct loop_poll *to_poll(struct loop *loop)
{
	return container_of(loop, struct loop_poll, loop);
}

/* ---- loop.h ---- */

/* 0 or -errno. */
static int kernel_tell(const struct loop_poll *lp, int op, struct loop_watch *w)
{
	struct epoll_event ev = { .events = (uint32_t)w->events, .data.ptr = w };

	w->asked = w->events;
	return epoll_ctl(lp->epfd, op, w->asked_fd, &ev) < 0 ? -errno : 0;
}

/* The kernel takes a descriptor once: a second watch has a copy. */
static int kernel_add(const struct loop_poll *lp, struct loop_watch *w)
{
	int r;

	w->asked_fd = w->fd;
	r = kernel_tell(lp, EPOLL_CTL_ADD, w);
	if (r != -EEXIST)
		return r;
	w->asked_fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
	if (w->asked_fd < 0)
		return -errno;
	r = kernel_tell(lp, EPOLL_CTL_ADD, w);
	if (r < 0)
		close(w->asked_fd);
	return r;
}

static void kernel_del(const struct loop_poll *lp, struct loop_watch *w)
{
	kernel_tell(lp, EPOLL_CTL_DEL, w);
	if (w->asked_fd != w->fd)
		close(w->asked_fd);
}

int loop_watch(struct loop *loop, struct loop_watch *w)
{
	struct loop_poll *lp = to_poll(loop);
	int r;

	loop_check_thread(loop);
	assert(!w->loop && w->fd >= 0 && w->ready);
	r = kernel_add(lp, w);
	if (r < 0)
		return r;
	w->loop = loop;
	list_init(&w->link);
	list_init(&w->change);
	return 0;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	w->events = events;
	if (w->loop && events != w->asked && list_empty(&w->change))
		list_add_tail(&to_poll(w->loop)->changed, &w->change);
}

void loop_unwatch(struct loop_watch *w)
{
	struct loop_poll *lp;

	if (!w->loop)
		return;
	loop_check_thread(w->loop);
	lp = to_poll(w->loop);
	kernel_del(lp, w);
	w->loop = NULL;
	list_del(&w->link);
	list_del(&w->change);
	if (lp->in_ready == w)
		lp->in_ready = NULL;
	if (w->closed)
		list_add_tail(&lp->closed, &w->link);
}

/* ---- a pass ---- */

static bool pass_has_work(const struct loop_poll *lp)
{
	return !list_empty(&lp->loop.tasks) || !list_empty(&lp->closed) || !list_empty(&lp->run);
}

static int pass_sleep_ms(const struct loop_poll *lp)
{
	uint64_t at_ms = loop_deadline(&lp->loop), now_ms = clock_now_ms();

	if (pass_has_work(lp) || at_ms <= now_ms)
		return 0;
	return at_ms == CLOCK_NEVER ? -1 : (int)MIN(at_ms - now_ms, (uint64_t)SLEEP_MAX_MS);
}

static void tell_changes(struct loop_poll *lp)
{
	struct loop_watch *w;

	while ((w = list_pop_entry(&lp->changed, struct loop_watch, change))) {
		if (w->events != w->asked)
			kernel_tell(lp, EPOLL_CTL_MOD, w);
	}
}

/* Sleep, and put what is ready on the list.  Returns whether messages wait. */
static bool wait_events(struct loop_poll *lp)
{
	struct epoll_event ev[EVENTS];
	bool posted = false;
	int sleep_ms, n;

	tell_changes(lp);
	sleep_ms = pass_sleep_ms(lp);
	n = epoll_wait(lp->epfd, ev, EVENTS, sleep_ms);
	lp->due = !n || !sleep_ms;
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = ev[i].data.ptr;

		if (!w)
			posted = true;
		else if (list_empty(&w->link))
			list_add_tail(&lp->run, &w->link);
	}
	return posted;
}

/* A ready() may remove any watch, which then is on no list. */
static void run_ready(struct loop_poll *lp)
{
	struct loop_watch *w;
	struct list now;

	list_take(&now, &lp->run);
	while ((w = list_pop_entry(&now, struct loop_watch, link))) {
		bool more;

		lp->in_ready = w;
		more = w->ready(w);
		if (lp->in_ready && more)
			list_add_tail(&lp->run, &w->link);
	}
	lp->in_ready = NULL;
}

static void run_closed(struct loop_poll *lp)
{
	struct loop_watch *w;

	while ((w = list_pop_entry(&lp->closed, struct loop_watch, link)))
		w->closed(w);
}

static void poll_pass(struct loop_poll *lp)
{
	bool posted;

	if (!pass_has_work(lp))
		loop_run_sleep_tasks(&lp->loop);
	posted = wait_events(lp);
	run_ready(lp);
	if (posted)
		loop_run_inbox(&lp->loop);
	if (lp->due)
		loop_run_timers(&lp->loop, clock_now_ms());
	loop_run_tasks(&lp->loop);
	run_closed(lp);
}

static void *poll_main(void *arg)
{
	struct loop_poll *lp = arg;

	loop_enter(&lp->loop);
	while (!lp->stopped)
		poll_pass(lp);
	return NULL;
}

/* ---- life ---- */

static void poll_stop(struct loop_msg *msg)
{
	container_of(msg, struct loop_poll, stop_msg)->stopped = true;
}

static void poll_fini(struct loop_poll *lp)
{
	close(lp->epfd);
	loop_fini(&lp->loop);
}

static int poll_init(struct loop_poll *lp)
{
	struct epoll_event ev = { .events = EPOLLIN };	/* no watch: the inbox */
	int r = loop_init(&lp->loop);

	if (r < 0)
		return r;
	lp->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (lp->epfd < 0) {
		r = -errno;
		loop_fini(&lp->loop);
		return r;
	}
	if (epoll_ctl(lp->epfd, EPOLL_CTL_ADD, lp->loop.eventfd, &ev) < 0) {
		r = -errno;
		poll_fini(lp);
	}
	return r;
}

int loop_poll_create(const char *name, struct loop **out)
{
	struct loop_poll *lp = calloc(1, sizeof(*lp));
	int r;

	if (!lp)
		return -ENOMEM;
	list_init(&lp->changed);
	list_init(&lp->run);
	list_init(&lp->closed);
	loop_msg_init(&lp->stop_msg, poll_stop);
	r = poll_init(lp);
	if (r < 0)
		goto err_free;
	r = signals_thread(&lp->thread, poll_main, lp);
	if (r < 0)
		goto err_fini;
	pthread_setname_np(lp->thread, name);
	*out = &lp->loop;
	return 0;

err_fini:
	poll_fini(lp);
err_free:
	free(lp);
	return r;
}

void loop_poll_destroy(struct loop *loop)
{
	struct loop_poll *lp = to_poll(loop);

	loop_post(loop, &lp->stop_msg);
	pthread_join(lp->thread, NULL);
	poll_fini(lp);
	free(lp);
}
