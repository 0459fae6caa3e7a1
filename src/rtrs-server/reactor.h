/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread with one io_uring through which everything comes: storage completions, readiness of the
 * fabric's descriptors, deadlines, and messages of other threads (doc/decisions.md D3).
 *
 * One pass of the loop: wait; run what completed (handlers may start IO, post messages, defer
 * work); run deferred work (this is where each connection posts its replies once); submit all new
 * IO with one io_uring_enter; get ready to sleep when there is nothing else to do.  Unless a function says otherwise it is called on the reactor's own
 * thread.  The simulation implements this header with virtual time (tests/sim/sim-reactor.c). */
#ifndef REACTOR_H
#define REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "inbox.h"
#include "list.h"
#include "timer.h"

struct reactor;

/* Deferred to the end of the current pass, or to the end of all passes before a sleep; a task already
 * waiting, for either, is not queued twice. */
struct reactor_task {
	struct list link;
	void (*fn)(struct reactor_task *task);
};

/* A descriptor watched for readiness.  Level semantics towards the owner: @ready runs again in the
 * next pass as long as it returns true ("there is more"), and once more when the peer has hung up;
 * otherwise when the kernel reports again.  It also runs, with nothing to read, when the kernel refuses to poll,
 * which is tried again until unwatched. */
struct reactor_watch {
	struct reactor *reactor;
	int fd;
	short events;
	bool (*ready)(struct reactor_watch *watch);
	void (*closed)(struct reactor_watch *watch);	/* see reactor_unwatch */
	void *impl;
};

/* Any thread (before the threads run: the main thread).  Why it failed has been logged. */
int reactor_create(const char *name, unsigned ring_entries, struct reactor **out);
void reactor_destroy(struct reactor *r);
/* Before the thread sleeps it looks for @us microseconds whether something completes.  Before
 * reactor_run(); 0, the default, is to sleep at once. */
void reactor_set_poll(struct reactor *r, unsigned us);
/* Run the loop on the calling thread until reactor_stop(); returns 0 or -errno.  May be run again by
 * the same thread. */
int reactor_run(struct reactor *r);
/* Any thread, also from a signal's inbox message. */
void reactor_stop(struct reactor *r);
const char *reactor_name(const struct reactor *r);

void reactor_defer(struct reactor *r, struct reactor_task *task);
/* @task runs once when nothing else is left to do, right before the thread would sleep: new IO has been
 * submitted, and what of it was quick has been taken.  It may make work; then the thread does not sleep. */
void reactor_before_sleep(struct reactor *r, struct reactor_task *task);
void reactor_task_init(struct reactor_task *task, void (*fn)(struct reactor_task *task));
/* Take @task back if it waits. */
void reactor_undefer(struct reactor_task *task);

/* @w->fd, events (POLLIN at first), ready and closed are set by the caller. */
int reactor_watch(struct reactor *r, struct reactor_watch *w);
/* Change what to wait for (fab_arm's answer).  Cheap when nothing changes. */
void reactor_watch_events(struct reactor_watch *w, short events);
/* Stop watching.  ready() does not run any more; closed() runs once when the ring no longer refers
 * to @w, never from inside this call: free or close the descriptor there, not before. */
void reactor_unwatch(struct reactor_watch *w);

/* Deadlines (timer.h): the list that feeds the wait. */
struct timers *reactor_timers(struct reactor *r);
/* Messages of other threads (inbox.h). */
struct inbox *reactor_inbox(struct reactor *r);

#endif
