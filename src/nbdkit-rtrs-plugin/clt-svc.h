/* SPDX-License-Identifier: BSD-3-Clause */
/* The service loop of a session: everything that is not IO happens on it.  Connection management,
 * heartbeats, back-off, the user messages of RNBD, and the draining of a failed path are tasks,
 * timers and watched descriptors here, so their owners need no locks.
 *
 * clt-svc.c is a thread around poll().  The simulation links its own implementation of this
 * header: one loop in virtual time that runs tasks before timers before watches.  So of what it links
 * nothing else may create a thread, read a random number, or wait for a descriptor of the control path.
 *
 * "Service thread" below means: inside a task, timer or watch function.  Other threads may call what says
 * "any thread", and nothing else. */
#ifndef CLT_SVC_H
#define CLT_SVC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct clt_svc;

/* Runs once per clt_svc_post(); posting a task that is queued changes nothing.  Embedded in its
 * owner, who must not free it while it is queued. */
struct clt_task {
	struct list link;
	void (*fn)(struct clt_task *task);
};

struct clt_timer {
	struct list link;
	uint64_t at_ms;
	void (*fn)(struct clt_timer *timer);
};

/* A descriptor of the fabric and the poll(2) events to wait for.  Level semantics: @ready runs as
 * long as one of them (or POLLERR, POLLHUP, never masked) holds; @events may be 0.  @ready may
 * change events, unwatch and free any watch, its own too. */
struct clt_watch {
	struct list link;
	int fd;
	short events;
	void (*ready)(struct clt_watch *watch, short revents);
};

/* Start the loop.  Returns 0 or -errno. */
int clt_svc_create(struct clt_svc **out);
/* Stop it when the functions that run now have returned, and free it; nothing runs any more
 * afterwards, queued tasks are forgotten.  Not on the service thread. */
void clt_svc_destroy(struct clt_svc *svc);

/* Any thread.  Tasks run in the order of their posting, never inside this call. */
void clt_svc_post(struct clt_svc *svc, struct clt_task *task);
/* Take @task back if it is queued.  Service thread. */
void clt_svc_cancel(struct clt_svc *svc, struct clt_task *task);

/* (Re)arm @timer for clock_now_ms() time @at_ms.  Service thread, as all below. */
void clt_svc_timer_set(struct clt_svc *svc, struct clt_timer *timer, uint64_t at_ms);
/* Idempotent. */
void clt_svc_timer_cancel(struct clt_timer *timer);

/* @watch->fd, events and ready are set.  Change events by assignment. */
void clt_svc_watch(struct clt_svc *svc, struct clt_watch *watch);
/* Idempotent.  @watch->ready does not run any more. */
void clt_svc_unwatch(struct clt_watch *watch);

static inline void clt_task_init(struct clt_task *task, void (*fn)(struct clt_task *task))
{
	list_init(&task->link);
	task->fn = fn;
}

static inline void clt_timer_init(struct clt_timer *timer, void (*fn)(struct clt_timer *timer))
{
	list_init(&timer->link);
	timer->at_ms = 0;
	timer->fn = fn;
}

static inline void clt_watch_init(struct clt_watch *watch,
				  void (*ready)(struct clt_watch *watch, short revents))
{
	list_init(&watch->link);
	watch->fd = -1;
	watch->events = 0;
	watch->ready = ready;
}

#endif
