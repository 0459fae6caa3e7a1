/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker is a thread for calls that block, as opening a file does, or that cost, as a step of a
 * handshake does: a loop gives jobs to its worker and goes on.  Jobs of many hosts are dealt out by
 * host (struct deal).  The simulation has a worker of its own (tests/sim/sim-worker.c).  Thread of
 * the loop, unless a function says otherwise.
 *
 * And calls that their caller may leave. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "loop.h"

/* ---- the order of jobs ---- */

/* A deal: waiting items of many hosts, dealt out one of each host in turn.  A host with many items
 * waits behind itself: an item of another host has at most one item of each host in front of it.
 *
 * Items have rounds.  An item gets the round that is dealt out now, or one behind the last item of
 * its host that waits, or one behind its own last round, whichever is the latest.  A net is what
 * one host may fill at will, as in unproven.h.
 *
 * Pure; one thread at a time.  Adding costs a step for each item behind the last one of the same
 * host. */
struct deal {
	struct list waiting;		/* deal_item.link, by rounds */
	uint64_t round;			/* of the item that was taken last */
};

/* Inside of what waits; all 0 before deal_add(). */
struct deal_item {
	struct list link;
	uint64_t net;
	uint64_t round;			/* the last one of the item */
};

/* Make @d empty. */
static inline void deal_init(struct deal *d)
{
	*d = (struct deal){ 0 };
	list_init(&d->waiting);
}

/* The round of the next item of @net. */
static inline uint64_t deal_next_round(const struct deal *d, const struct deal_item *item,
				       uint64_t net)
{
	uint64_t round = MAX(d->round, item->round + 1);
	const struct deal_item *other;

	/* From the end: the last one of a host has its latest round. */
	for (const struct list *at = d->waiting.prev; at != &d->waiting; at = at->prev) {
		other = list_entry(at, struct deal_item, link);
		if (other->net == net)
			return MAX(round, other->round + 1);
	}
	return round;
}

/* Let @item, of @net, wait in @d. */
static inline void deal_add(struct deal *d, struct deal_item *item, uint64_t net)
{
	struct list *at = &d->waiting;

	item->round = deal_next_round(d, item, net);
	item->net = net;
	while (at->prev != &d->waiting &&
	       list_entry(at->prev, struct deal_item, link)->round > item->round)
		at = at->prev;
	list_insert_before(at, &item->link);
}

/* Take out the item whose turn it is.  NULL: none waits. */
static inline struct deal_item *deal_take(struct deal *d)
{
	struct deal_item *item = list_pop_entry(&d->waiting, struct deal_item, link);

	if (item)
		d->round = item->round;
	return item;
}

/* Take out @item, which waits. */
static inline void deal_leave(struct deal_item *item)
{
	list_del(&item->link);
}

/* ---- workers ---- */

/* Embedded in its owner, and the worker's from worker_run() until done(). */
struct worker_job {
	struct deal_item turn;
	uint64_t net;				/* whose job (fab_addr_net()); 0: all are of one */
	void (*work)(struct worker_job *job);	/* thread of the worker; may block */
	void (*done)(struct worker_job *job);	/* thread of the loop; work() has returned */
	struct worker *worker;
	struct loop_msg msg;
};

/* The thread begins with the first job. */
struct worker {
	struct loop *loop;
	const char *name;			/* of the thread, at most 15 characters */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;			/* jobs, stop; innermost */
	pthread_cond_t changed;
	struct deal jobs;			/* worker_job.turn */
	bool stop;
};

void worker_init(struct worker *w, struct loop *loop);
/* Run @job->work, behind all jobs of its net from before.  0; or -errno if there is no thread: then
 * neither function of @job runs. */
int worker_run(struct worker *w, struct worker_job *job);
/* Take back @job, which was given to @w and is not done: then neither function of it runs.  False:
 * it has begun.  Any thread that keeps done() away meanwhile. */
bool worker_cancel(struct worker *w, struct worker_job *job);
/* Wait until the thread has ended.  Each job is done. */
void worker_fini(struct worker *w);

/* ---- calls aside: aside.c ----
 *
 * A call on a thread of its own, without signals, whose caller may leave before the end: for calls
 * that nobody can end, as of a library that waits for a cluster, or of a file system whose server
 * is away.  What the call works with belongs to the call alone.  Any thread that may block. */

struct aside;

/* Asked some ten times a second whether the caller, who has waited for @ms, waits on: 0; or the
 * -errno with which the caller leaves. */
typedef int aside_patience_fn(void *arg, uint64_t ms);

/* Begin @fn(@arg), which is *@out then.  0; or -errno without a thread: nothing has run.
 * aside_wait() follows. */
int aside_begin(struct aside **out, void (*fn)(void *arg), void (*left)(void *arg), void *arg);
/* Wait for the end of @call, which is freed.  0; or what @patience(@patience_arg) said: then @fn
 * goes on, @left(@arg) follows on its thread, and @arg is theirs. */
int aside_wait(struct aside *call, aside_patience_fn *patience, void *patience_arg);
/* True while a call that its caller has left goes on.  Any thread. */
bool aside_left(void);
/* Run @fn(@arg) with all signals blocked on this thread, for those who have got no other one. */
void aside_here(void (*fn)(void *arg), void *arg);

#endif
