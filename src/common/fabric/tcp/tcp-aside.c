/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the thread of handshakes, the steps that wait, and the session and socket of a connection
 * that went while its step ran.
 *
 * RACE: a step is the thread's from STEP_RUNS on; with STEP_DONE, or as one of no connection, it is
 * not any more.  Both changes happen under aside->lock. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "signals.h"
#include "tcp-aside.h"

/* ---- the thread ---- */

/* @step has run.  aside->lock is held, and is let go of for a step of no connection. */
static void step_ran(struct tcp_aside *a, struct tcp_step *step)
{
	const uint64_t one = 1;

	if (step->conn) {
		step->state = STEP_DONE;
		list_add_tail(&a->done, &step->turn.link);
		(void)!write(a->fd, &one, sizeof(one));
		return;
	}
	pthread_mutex_unlock(&a->lock);
	tcp_tls_free(step->tls);
	close(step->fd);
	free(step);
	pthread_mutex_lock(&a->lock);
}

static void *aside_main(void *arg)
{
	struct tcp_aside *a = arg;
	struct deal_item *turn;
	struct tcp_step *step;

	pthread_setname_np(pthread_self(), "rtrs-tls");
	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		turn = deal_take(&a->waiting);
		if (!turn) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		step = container_of(turn, struct tcp_step, turn);
		step->state = STEP_RUNS;
		pthread_mutex_unlock(&a->lock);
		step->rc = tcp_tls_handshake(step->tls, &step->events, step->why);
		pthread_mutex_lock(&a->lock);
		step_ran(a, step);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static int start_thread(struct tcp_aside *a)
{
	/* EAGAIN, which means something else to the caller: no more threads. */
	return signals_thread(&a->thread, aside_main, a) < 0 ? -ENOMEM : 0;
}

/* Make the eventfd, as a source of @epoll, and the thread.  0 or -errno. */
static int start(struct tcp_aside *a, int epoll,
		 void (*ready)(struct tcp_source *src, uint32_t events))
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &a->source };
	int rc;

	a->source.ready = ready;
	a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->fd < 0)
		return -errno;
	rc = epoll_ctl(epoll, EPOLL_CTL_ADD, a->fd, &ev) ? -errno : start_thread(a);
	if (rc) {
		/* With its last descriptor the eventfd leaves the epoll. */
		close(a->fd);
		a->fd = -1;
	}
	return rc;
}

/* ---- the cm's thread ---- */

void tcp_aside_init(struct tcp_aside *a)
{
	*a = (struct tcp_aside){ .fd = -1 };
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	deal_init(&a->waiting);
	list_init(&a->done);
}

void tcp_aside_fini(struct tcp_aside *a)
{
	pthread_mutex_lock(&a->lock);
	assert(list_empty(&a->waiting.waiting) && list_empty(&a->done));
	a->stop = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (a->fd >= 0) {
		pthread_join(a->thread, NULL);
		close(a->fd);
	}
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
}

int tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
		   void (*ready)(struct tcp_source *src, uint32_t events))
{
	struct tcp_step *step = c->step;
	int rc = a->fd < 0 ? start(a, epoll, ready) : 0;

	if (!step && !rc)
		step = calloc(1, sizeof(*step));
	if (!step)
		return rc ? rc : -ENOMEM;
	c->step = step;
	step->conn = c;
	step->tls = c->tls;
	step->fd = c->fd;
	*step->why = '\0';
	LOCK_SCOPE(&a->lock);
	assert(step->state == STEP_HOME);
	step->state = STEP_WAITS;
	deal_add(&a->waiting, &step->turn, fab_addr_net(&c->base.peer));
	pthread_cond_signal(&a->changed);
	return 0;
}

struct tcp_conn *tcp_aside_take(struct tcp_aside *a)
{
	struct tcp_step *step;
	uint64_t n;

	LOCK_SCOPE(&a->lock);
	step = list_pop_entry(&a->done, struct tcp_step, turn.link);
	/* The source stays ready as long as there are more. */
	if (list_empty(&a->done))
		(void)!read(a->fd, &n, sizeof(n));
	if (!step)
		return NULL;
	step->state = STEP_HOME;
	return step->conn;
}

void tcp_aside_leave(struct tcp_aside *a, struct tcp_conn *c)
{
	struct tcp_step *step = c->step;

	if (!step)
		return;
	c->step = NULL;
	LOCK_SCOPE(&a->lock);
	if (step->state == STEP_RUNS) {
		step->conn = NULL;
		c->tls = NULL;
		c->fd = -1;
		return;
	}
	if (step->state != STEP_HOME)
		list_del(&step->turn.link);
	free(step);
}
