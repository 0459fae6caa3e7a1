/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the worker of steps and its inbox, and the session and socket of a connection that went
 * while its step ran. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tcp-cm.h"

/* ---- steps ---- */

/* Thread of the worker. */
static void step_work(struct worker_job *job)
{
	struct tcp_step *step = container_of(job, struct tcp_step, job);

	step->rc = tcp_tls_handshake(step->tls, &step->events, step->why);
}

static void step_done(struct worker_job *job)
{
	struct tcp_step *step = container_of(job, struct tcp_step, job);

	step->away = false;
	if (step->conn) {
		step->done(step->conn);
		return;
	}
	tcp_tls_free(step->tls);
	close(step->fd);
	free(step);
}

/* ---- the thread ---- */

static void inbox_ready(struct tcp_source *src, uint32_t events)
{
	loop_run_inbox(&container_of(src, struct tcp_aside, source)->inbox);
}

void tcp_aside_init(struct tcp_aside *a)
{
	*a = (struct tcp_aside){ .source.ready = inbox_ready };
}

void tcp_aside_fini(struct tcp_aside *a)
{
	if (!a->begun)
		return;
	worker_fini(&a->worker);
	loop_run_inbox(&a->inbox);	/* the last step, of no connection */
	loop_fini(&a->inbox);
}

/* Make the inbox, as a source of @epoll, and the worker.  0 or -errno. */
static int begin(struct tcp_aside *a, int epoll)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &a->source };
	int rc = loop_init(&a->inbox);

	if (rc)
		return rc;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, a->inbox.eventfd, &ev)) {
		rc = -errno;
		loop_fini(&a->inbox);
		return rc;
	}
	worker_init(&a->worker, &a->inbox);
	a->worker.name = "rtrs-tls";
	a->begun = true;
	return 0;
}

/* ---- connections ---- */

int tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
		   void (*done)(struct tcp_conn *c))
{
	struct tcp_step *step = c->step;
	int rc = a->begun ? 0 : begin(a, epoll);

	if (!step && !rc)
		step = calloc(1, sizeof(*step));
	if (!step)
		return rc ? rc : -ENOMEM;
	c->step = step;
	step->job.work = step_work;
	step->job.done = step_done;
	step->job.net = fab_addr_net(&c->base.peer);
	step->done = done;
	step->conn = c;
	step->tls = c->tls;
	step->fd = c->fd;
	*step->why = '\0';
	assert(!step->away);
	/* EAGAIN, which means something else to the caller: no more threads. */
	if (worker_run(&a->worker, &step->job))
		return -ENOMEM;
	step->away = true;
	return 0;
}

void tcp_aside_leave(struct tcp_aside *a, struct tcp_conn *c)
{
	struct tcp_step *step = c->step;

	if (!step)
		return;
	c->step = NULL;
	if (!step->away || worker_cancel(&a->worker, &step->job)) {
		free(step);
		return;
	}
	step->conn = NULL;
	c->tls = NULL;
	c->fd = -1;
}
