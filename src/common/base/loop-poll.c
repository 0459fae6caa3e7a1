/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop as a thread around poll().  Owns the thread and the table of poll(), which only the thread
 * uses.  Ends by a message to itself.  Creating the thread can fail, and loop_watch() without
 * memory; the running thread cannot. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "clock.h"
#include "loop-impl.h"
#include "loop-poll.h"

#define SLEEP_MAX_MS 60000
#define ROOM_STEP 16

struct loop_poll {
	struct loop loop;
	pthread_t thread;
	struct loop_msg stop_msg;
	bool stopped;
	struct list watches;		/* struct loop_watch */
	struct list closed;		/* unwatched, closed() is due */
	struct loop_watch *in_ready;	/* ready() runs; NULL when unwatched meanwhile */
	unsigned nwatches;
	unsigned changes;		/* watches added or removed: pfds[] is stale */
	struct pollfd *pfds;		/* [room], 0 is the inbox */
	struct loop_watch **watched;	/* [i] belongs to pfds[i] */
	unsigned room;
};

static struct loop_poll *to_poll(struct loop *loop)
{
	return container_of(loop, struct loop_poll, loop);
}

/* ---- loop.h ---- */

static int watches_make_room(struct loop_poll *lp)
{
	unsigned room = lp->room + ROOM_STEP;
	struct loop_watch **watched;
	struct pollfd *pfds;

	if (lp->nwatches + 1 < lp->room)
		return 0;
	pfds = realloc(lp->pfds, room * sizeof(*pfds));
	if (!pfds)
		return -ENOMEM;
	lp->pfds = pfds;
	watched = realloc(lp->watched, room * sizeof(*watched));
	if (!watched)
		return -ENOMEM;
	lp->watched = watched;
	lp->room = room;
	return 0;
}

int loop_watch(struct loop *loop, struct loop_watch *w)
{
	struct loop_poll *lp = to_poll(loop);
	int r = watches_make_room(lp);

	loop_check_thread(loop);
	assert(!w->loop && w->fd >= 0 && w->ready);
	if (r < 0)
		return r;
	w->loop = loop;
	w->more = false;
	list_init(&w->link);
	list_add_tail(&lp->watches, &w->link);
	lp->nwatches++;
	lp->changes++;
	return 0;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	w->events = events;
}

void loop_unwatch(struct loop_watch *w)
{
	struct loop_poll *lp;

	if (!w->loop)
		return;
	loop_check_thread(w->loop);
	lp = to_poll(w->loop);
	w->loop = NULL;
	list_del(&w->link);
	lp->nwatches--;
	lp->changes++;
	if (lp->in_ready == w)
		lp->in_ready = NULL;
	if (w->closed)
		list_add_tail(&lp->closed, &w->link);
}

/* ---- a pass ---- */

static bool pass_has_work(const struct loop_poll *lp)
{
	struct loop_watch *w;

	if (!list_empty(&lp->loop.tasks) || !list_empty(&lp->closed))
		return true;
	list_for_each(w, &lp->watches, link) {
		if (w->more)
			return true;
	}
	return false;
}

static int pass_sleep_ms(const struct loop_poll *lp)
{
	uint64_t at_ms = loop_deadline(&lp->loop), now_ms = clock_now_ms();

	if (pass_has_work(lp) || at_ms <= now_ms)
		return 0;
	return at_ms == CLOCK_NEVER ? -1 : (int)MIN(at_ms - now_ms, (uint64_t)SLEEP_MAX_MS);
}

/* Fill the table; returns its length. */
static unsigned list_watches(struct loop_poll *lp)
{
	struct loop_watch *w;
	unsigned n = 0;

	lp->pfds[n++] = (struct pollfd){ .fd = lp->loop.eventfd, .events = POLLIN };
	list_for_each(w, &lp->watches, link) {
		lp->watched[n] = w;
		lp->pfds[n++] = (struct pollfd){ .fd = w->fd, .events = w->events };
	}
	return n;
}

/* A ready() may remove any watch; the remaining watches are then checked in the next pass. */
static void run_ready(struct loop_poll *lp, unsigned n)
{
	unsigned changes = lp->changes;

	for (unsigned i = 1; i < n && changes == lp->changes; i++) {
		struct loop_watch *w = lp->watched[i];
		bool more;

		if (!lp->pfds[i].revents && !w->more)
			continue;
		lp->in_ready = w;
		more = w->ready(w);
		if (lp->in_ready)
			w->more = more;
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
	unsigned n;

	if (!pass_has_work(lp))
		loop_run_sleep_tasks(&lp->loop);
	n = list_watches(lp);
	if (poll(lp->pfds, n, pass_sleep_ms(lp)) >= 0) {
		bool posted = lp->pfds[0].revents;

		run_ready(lp, n);
		if (posted)
			loop_run_inbox(&lp->loop);
	}
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

static void poll_free(struct loop_poll *lp)
{
	free(lp->pfds);
	free(lp->watched);
	free(lp);
}

int loop_poll_create(const char *name, struct loop **out)
{
	struct loop_poll *lp = calloc(1, sizeof(*lp));
	int r;

	if (!lp)
		return -ENOMEM;
	list_init(&lp->watches);
	list_init(&lp->closed);
	loop_msg_init(&lp->stop_msg, poll_stop);
	r = watches_make_room(lp);
	if (r < 0)
		goto err_free;
	r = loop_init(&lp->loop);
	if (r < 0)
		goto err_free;
	r = -pthread_create(&lp->thread, NULL, poll_main, lp);
	if (r < 0)
		goto err_loop;
	pthread_setname_np(lp->thread, name);
	*out = &lp->loop;
	return 0;

err_loop:
	loop_fini(&lp->loop);
err_free:
	poll_free(lp);
	return r;
}

void loop_poll_destroy(struct loop *loop)
{
	struct loop_poll *lp = to_poll(loop);

	loop_post(loop, &lp->stop_msg);
	pthread_join(lp->thread, NULL);
	loop_fini(loop);
	poll_free(lp);
}
