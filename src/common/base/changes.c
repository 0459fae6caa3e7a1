/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the worker, each change until its end(), and the time of the last reload. */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "changes.h"
#include "clock.h"
#include "number.h"
#include "process.h"
#include "util.h"

static bool is_read(const struct changes_call *call)
{
	return call->state == CHANGES_READING || call->state == CHANGES_STALE;
}

bool changes_reads(const struct changes *q)
{
	const struct changes_call *call;

	list_for_each(call, &q->all, link) {
		if (is_read(call))
			return true;
	}
	return false;
}

/* ---- turns ---- */

/* Run the changes whose turn it is.  A change that ends while it starts does not run the next one
 * from inside of itself. */
static void run_next(struct changes *q)
{
	struct changes_call *call;

	while (!q->starts && !q->stopping && !list_empty(&q->all)) {
		call = list_entry(q->all.next, struct changes_call, link);
		if (call->state != CHANGES_READY)
			return;
		call->state = CHANGES_RUNS;
		q->starts = call;
		call->ops->run(call);
		q->starts = NULL;
	}
}

/* ---- files ---- */

/* Thread of the worker. */
static void read_files(struct worker_job *job)
{
	struct changes_call *call = container_of(job, struct changes_call, job);

	call->ops->read(call);
}

static void files_are_read(struct worker_job *job);

/* The change whose files are to be read next; NULL: none. */
static struct changes_call *to_read(struct changes *q)
{
	struct changes_call *call, *next = NULL;

	list_for_each(call, &q->all, link) {
		if (call->state == CHANGES_NEW && (!next || call->part < next->part))
			next = call;
	}
	return next;
}

/* Have the files read that are to be read next: of one change at a time, so that whoever comes
 * meanwhile knows whether the files will be read behind that. */
static void read_next(struct changes *q)
{
	struct changes_call *call = to_read(q);
	int rc;

	if (!call || q->stopping || changes_reads(q))
		return;
	call->state = CHANGES_READING;
	call->job = (struct worker_job){ .work = read_files, .done = files_are_read };
	rc = worker_run(&q->worker, &call->job);
	if (rc)
		changes_end(call, rc, threads_strerror(rc));
}

/* Have all files of @call read, from the first part. */
static void read_all(struct changes_call *call)
{
	if (is_read(call)) {
		call->state = CHANGES_STALE;
		return;
	}
	call->state = CHANGES_NEW;
	call->part = 0;
}

/* The next change has waited: its files may be older than what has just ended, which may have
 * written them. */
static void read_next_again(struct changes *q)
{
	struct changes_call *next;

	if (list_empty(&q->all))
		return;
	next = list_entry(q->all.next, struct changes_call, link);
	if (next->ops->read && next->state != CHANGES_RUNS &&
	    (next->state == CHANGES_READY || next->part))
		read_all(next);
}

void changes_end(struct changes_call *call, int rc, const char *text)
{
	struct changes *q = call->queue;

	list_del(&call->link);
	call->ops->end(call, rc, text);
	read_next_again(q);
	read_next(q);
	run_next(q);
}

static void files_are_read(struct worker_job *job)
{
	struct changes_call *call = container_of(job, struct changes_call, job);
	const bool stale = call->state == CHANGES_STALE;
	struct changes *q = call->queue;
	const char *why = q->stopping;
	int rc = why ? -ECANCELED : call->ops->came(call, &why);

	call->state = CHANGES_READY;
	if (stale && !q->stopping) {
		read_all(call);
	} else if (rc == CHANGES_MORE) {
		call->state = CHANGES_NEW;
		call->part++;
	} else if (rc) {
		changes_end(call, rc, why);
	}
	read_next(q);
	run_next(q);
}

/* ---- changes ---- */

void changes_add(struct changes *q, struct changes_call *call, const struct changes_ops *ops)
{
	*call = (struct changes_call){ .ops = ops, .queue = q,
				       .state = ops->read ? CHANGES_NEW : CHANGES_READY };
	list_add_tail(&q->all, &call->link);
	if (q->stopping) {
		changes_end(call, -ECANCELED, q->stopping);
		return;
	}
	read_next(q);
	run_next(q);
}

bool changes_read_again(struct changes *q, const struct changes_ops *ops)
{
	struct changes_call *call;

	if (list_empty(&q->all))
		return false;
	call = list_entry(q->all.prev, struct changes_call, link);
	if (call->ops != ops || call->state == CHANGES_RUNS)
		return false;
	read_all(call);
	read_next(q);
	return true;
}

int changes_work(struct changes *q, struct worker_job *job)
{
	return worker_run(&q->worker, job);
}

/* ---- begin and end ---- */

void changes_init(struct changes *q, struct loop *loop)
{
	*q = (struct changes){ 0 };
	list_init(&q->all);
	worker_init(&q->worker, loop);
}

void changes_stop(struct changes *q, const char *why)
{
	struct changes_call *call, *next;

	q->stopping = why;
	list_for_each_safe(call, next, &q->all, link) {
		if (call->state == CHANGES_NEW || call->state == CHANGES_READY)
			changes_end(call, -ECANCELED, why);
	}
}

const char *changes_and_done(const char *why, const char *lines, char **all)
{
	size_t n = strlen(why);

	*all = NULL;
	if (!lines || !*lines)
		return why;
	*all = fmt_new("%s%sonly this has changed, configuration otherwise unchanged:\n%s", why,
		       n && why[n - 1] == '\n' ? "" : "\n", lines);
	return *all ? *all : why;
}

void changes_fini(struct changes *q)
{
	worker_fini(&q->worker);
}

/* ---- the age of what was read ---- */

static atomic_uint_fast64_t reset_ns;

void files_age_reset(void)
{
	reset_ns = clock_now_ns();
}

uint64_t files_age_ns(void)
{
	return clock_now_ns() - reset_ns;
}
