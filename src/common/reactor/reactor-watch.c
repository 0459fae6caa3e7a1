/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the polls behind a struct loop_watch; thread of the reactor.
 *
 * POLLIN is a multishot poll, armed as long as the descriptor is watched.  The poll reports edges;
 * ready()'s return value makes levels of the edges, and ready() runs when POLLIN is wanted again.
 * An edge can report both data and the end behind the data, and two reads are needed to see both.
 * So after an end ready() runs once more than its return value asks for.  POLLOUT is wanted rarely,
 * when a socket is full: a separate poll that fires once, and is armed again while wanted.
 * Unwatching cancels both polls; closed() runs when the last completion of the polls and of their
 * cancellations has come.
 *
 * A poll can fail: no kernel memory; Linux 6.1 ends a poll when completions overflow.  The failure
 * makes the descriptor ready, so that the owner meets the descriptor's real state, and the poll is
 * armed again: at once, and after ARM_AGAIN_MS if arming at once fails as well.
 *
 * A file that a ring polls stays open when its process is killed: the kernel closes the file some
 * time after the process has ended (Linux 6.18: up to 1 s later on a busy machine).  The next
 * server would find the address of a listening socket in use.  So the ring polls an epoll of such
 * a socket, which does not keep the socket. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "reactor-ring.h"

#define ARM_AGAIN_MS 100

static struct log_limit failed_limit = LOG_LIMIT_INIT(20, 10000);

struct reactor_poll {
	struct list link;		/* on reactor.ready or .closed */
	struct reactor *reactor;
	struct loop_watch *watch;	/* NULL: unwatched, and the watch has no closed() */
	int epoll;			/* of a listening socket; -1 */
	struct reactor_op in, out, cancel;
	short armed;			/* POLLIN, POLLOUT: the ring has this poll */
	bool in_failed;			/* POLLIN's last completion was an error */
	struct loop_timer again;	/* to arm POLLIN */
	bool ended;			/* an edge told of the end; perhaps ready() saw only data */
	bool unwatched;
	bool cancel_again;
	unsigned cancelling;		/* cancellations without completion */
};

static void poll_mark_ready(struct reactor_poll *p)
{
	if (!p->unwatched && list_empty(&p->link))
		list_add_tail(&p->reactor->ready, &p->link);
}

/* Returns -1 if @fd does not listen, or if there is no descriptor left: the ring polls @fd then. */
static int epoll_of_listener(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int listens = 0, epoll;
	socklen_t len = sizeof(listens);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens)
		return -1;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(epoll);
		return -1;
	}
	return epoll;
}

static void poll_arm_in(struct reactor_poll *p)
{
	io_uring_prep_poll_multishot(reactor_ring_sqe(p->reactor, &p->in),
				     p->epoll >= 0 ? p->epoll : p->watch->fd, POLLIN | POLLRDHUP);
	p->armed |= POLLIN;
}

static void poll_arm_out(struct reactor_poll *p)
{
	io_uring_prep_poll_add(reactor_ring_sqe(p->reactor, &p->out), p->watch->fd, POLLOUT);
	p->armed |= POLLOUT;
}

static void poll_cancel(struct reactor_poll *p, struct reactor_op *op)
{
	io_uring_prep_cancel(reactor_ring_sqe(p->reactor, &p->cancel), op, 0);
	p->cancelling++;
}

static void poll_cancel_armed(struct reactor_poll *p)
{
	if (p->armed & POLLIN)
		poll_cancel(p, &p->in);
	if (p->armed & POLLOUT)
		poll_cancel(p, &p->out);
}

/* Close @p in this pass, if the ring refers to @p no longer. */
static void poll_check_closed(struct reactor_poll *p)
{
	if (p->unwatched && !p->armed && !p->cancelling && list_empty(&p->link))
		list_add_tail(&p->reactor->closed, &p->link);
}

static void poll_arm_in_again(struct loop_timer *timer)
{
	poll_arm_in(container_of(timer, struct reactor_poll, again));
}

static void poll_in_failed(struct reactor_poll *p, int err)
{
	struct reactor *r = p->reactor;

	if (p->in_failed) {
		loop_timer_set(&r->loop, &p->again, clock_now_ms() + ARM_AGAIN_MS);
		return;
	}
	log_limited(&failed_limit, LOG_LEVEL_WARN, r->name,
		    "poll of descriptor %d: %s; trying again", p->watch->fd, strerror(-err));
	poll_arm_in(p);
}

static void poll_in_done(struct reactor_op *op, int res, unsigned flags)
{
	struct reactor_poll *p = container_of(op, struct reactor_poll, in);

	if (!(flags & IORING_CQE_F_MORE))
		p->armed &= ~POLLIN;
	if (p->unwatched) {
		poll_check_closed(p);
		return;
	}
	if (res < 0 && !(p->armed & POLLIN))
		poll_in_failed(p, res);
	else if (!(p->armed & POLLIN))
		poll_arm_in(p);
	p->in_failed = res < 0;
	p->ended = p->ended || (res >= 0 && (res & (POLLRDHUP | POLLHUP | POLLERR)));
	if ((p->watch->events & (POLLIN | res)) || res < 0 || (res & (POLLERR | POLLHUP)))
		poll_mark_ready(p);
}

static void poll_out_done(struct reactor_op *op, int res, unsigned flags)
{
	struct reactor_poll *p = container_of(op, struct reactor_poll, out);

	p->armed &= ~POLLOUT;
	if (p->unwatched)
		poll_check_closed(p);
	else if (p->watch->events & POLLOUT)
		poll_mark_ready(p);
}

static void poll_cancel_done(struct reactor_op *op, int res, unsigned flags)
{
	struct reactor_poll *p = container_of(op, struct reactor_poll, cancel);

	p->cancelling--;
	/* -ENOENT: the poll had completed.  -EALREADY: the poll is completing now; if the
	 * completion is one of several shots, the poll goes on and needs another cancellation. */
	if (res == -EALREADY)
		p->cancel_again = true;
	if (p->cancel_again && !p->cancelling) {
		p->cancel_again = false;
		poll_cancel_armed(p);
	}
	poll_check_closed(p);
}

int loop_watch(struct loop *loop, struct loop_watch *w)
{
	struct reactor_poll *p;

	loop_check_thread(loop);
	assert(!w->loop && !w->impl && w->fd >= 0 && w->ready);
	assert(w->events == POLLRDHUP || !(w->events & ~(POLLIN | POLLOUT)));
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	list_init(&p->link);
	p->reactor = container_of(loop, struct reactor, loop);
	p->watch = w;
	p->epoll = epoll_of_listener(w->fd);
	p->in.done = poll_in_done;
	p->out.done = poll_out_done;
	p->cancel.done = poll_cancel_done;
	loop_timer_init(&p->again, poll_arm_in_again);
	w->loop = loop;
	w->impl = p;
	poll_arm_in(p);
	if (w->events & POLLOUT)
		poll_arm_out(p);
	return 0;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	struct reactor_poll *p = w->impl;
	short more = events & ~w->events;

	assert(!(events & ~(POLLIN | POLLOUT)));
	w->events = events;
	if (!w->loop)
		return;
	/* What ready() left, or what came meanwhile, lies there without an edge to come. */
	if (more & POLLIN)
		poll_mark_ready(p);
	if (events & ~p->armed & POLLOUT)
		poll_arm_out(p);
}

void loop_unwatch(struct loop_watch *w)
{
	struct reactor_poll *p = w->impl;

	if (!w->loop)
		return;
	loop_check_thread(w->loop);
	w->loop = NULL;
	p->unwatched = true;
	if (!w->closed)
		p->watch = w->impl = NULL;
	list_del(&p->link);
	loop_timer_cancel(&p->again);
	poll_cancel_armed(p);
	poll_check_closed(p);
}

void reactor_watch_run_ready(struct reactor *r)
{
	struct reactor_poll *p;
	struct list now;

	list_take(&now, &r->ready);
	while ((p = list_pop_entry(&now, struct reactor_poll, link))) {
		/* ready() may unwatch this or others of the list; @p lives until
		 * reactor_watch_run_closed(). */
		bool again = p->watch->ready(p->watch);

		if (p->unwatched)
			continue;
		if (again || p->ended)
			poll_mark_ready(p);
		p->ended = p->ended && again;
		if ((p->watch->events & ~p->armed & POLLOUT) && list_empty(&p->link))
			poll_arm_out(p);
	}
}

void reactor_watch_run_closed(struct reactor *r)
{
	struct reactor_poll *p;

	while ((p = list_pop_entry(&r->closed, struct reactor_poll, link))) {
		struct loop_watch *w = p->watch;

		if (p->epoll >= 0)
			close(p->epoll);
		free(p);
		if (!w)
			continue;
		w->impl = NULL;
		w->closed(w);
	}
}
