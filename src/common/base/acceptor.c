/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the pause.  The socket, and the clients, are the owner's. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>

#include "acceptor.h"
#include "clock.h"
#include "process.h"

/* The owner has no room: a pause is needed only if a client waits. */
static int no_room(int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0 ? fds_tell_short(-EMFILE) : -EAGAIN;
}

static bool acceptor_ready(struct loop_watch *watch)
{
	struct acceptor *a = container_of(watch, struct acceptor, watch);

	for (unsigned i = 0; i < FDS_ACCEPT_ROUND; i++) {
		struct sockaddr_storage addr;
		socklen_t len;
		int fd = a->has_room && !a->has_room(a) ? no_room(watch->fd) :
							  fds_accept(watch->fd, &addr, &len);

		if (fd >= 0) {
			a->take(a, fd, &addr, len);
			continue;
		}
		if (fd != -EAGAIN) {
			loop_watch_events(watch, 0);
			loop_timer_set(watch->loop, &a->again, clock_now_ms() + FDS_PAUSE_MS);
		}
		return false;
	}
	return true;
}

static void accept_again(struct loop_timer *timer)
{
	struct acceptor *a = container_of(timer, struct acceptor, again);

	assert(a->watch.loop);
	loop_watch_events(&a->watch, POLLIN);
}

int acceptor_start(struct acceptor *a, struct loop *loop)
{
	loop_timer_init(&a->again, accept_again);
	a->watch.events = POLLIN;
	a->watch.ready = acceptor_ready;
	return loop_watch(loop, &a->watch);
}

void acceptor_stop(struct acceptor *a)
{
	if (!a->watch.loop)
		return;
	loop_timer_cancel(&a->again);
	loop_unwatch(&a->watch);
}
