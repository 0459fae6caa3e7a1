/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the file and the worker that writes and removes the file.  The loop makes the text, the
 * worker stores the text.
 *
 * How it ends: metric_file_stop() waits for the worker, which leaves a file system that does not
 * answer alone (plain-file.h).  How it fails: the next interval tries again. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "metric-file.h"
#include "plain-file.h"
#include "util.h"

/* ---- thread of the worker ---- */

static void write_work(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	f->rc = plain_file_write(f->path, f->text, f->len, f->why, sizeof(f->why));
}

static void remove_work(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	f->rc = plain_file_remove(f->path, f->why, sizeof(f->why));
}

/* ---- thread of the loop ---- */

static int file_job(struct metric_file *f, void (*work)(struct worker_job *job),
		    void (*done)(struct worker_job *job))
{
	int rc;

	f->job = (struct worker_job){ .work = work, .done = done };
	rc = worker_run(&f->worker, &f->job);
	if (rc)
		snprintf(f->why, sizeof(f->why), "%s", strerror(-rc));
	return rc;
}

/* ---- the end of the file ---- */

static void file_stopped(struct loop_task *task)
{
	struct metric_file *f = container_of(task, struct metric_file, stop_task);

	worker_fini(&f->worker);
	f->done(f->done_arg);
}

static void file_removed(struct metric_file *f, int rc)
{
	if (rc)
		log_warn(NULL, "cannot remove the metrics '%s': %s", f->path, f->why);
	f->state = METRIC_FILE_REMOVED;
	if (f->removed)
		f->removed(f->removed_arg);
	if (f->done)
		loop_defer(f->loop, &f->stop_task);
}

static void remove_done(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	file_removed(f, f->rc);
}

static void begin_to_remove(struct metric_file *f)
{
	int rc = 0;

	f->state = METRIC_FILE_REMOVING;
	if (f->written)
		rc = file_job(f, remove_work, remove_done);
	if (rc || !f->written)
		file_removed(f, rc);
}

/* ---- writing ---- */

static void file_written(struct metric_file *f, int rc)
{
	free(f->text);
	f->text = NULL;
	if (rc && rc != f->told)
		log_warn(NULL, "cannot write metrics to '%s': %s; trying again every %d s",
			 f->path, f->why, METRIC_FILE_INTERVAL_MS / 1000);
	f->told = rc;
	f->written |= !rc || rc == -ETIMEDOUT;
	if (f->state == METRIC_FILE_WRITING_LAST) {
		begin_to_remove(f);
		return;
	}
	f->state = METRIC_FILE_IDLE;
	loop_timer_set(f->loop, &f->timer, clock_now_ms() + METRIC_FILE_INTERVAL_MS);
}

static void write_done(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	file_written(f, f->rc);
}

static void file_write(struct loop_timer *timer)
{
	struct metric_file *f = container_of(timer, struct metric_file, timer);
	int rc = -ENOMEM;

	f->state = METRIC_FILE_WRITING;
	snprintf(f->why, sizeof(f->why), "out of memory");
	f->text = metric_text(f->source->table, f->source->program, METRIC_PROMETHEUS, &f->len);
	if (f->text)
		rc = file_job(f, write_work, write_done);
	if (rc)
		file_written(f, rc);
}

/* ---- for the owner ---- */

void metric_file_init(struct metric_file *f, struct loop *loop, const char *path,
		      const struct metric_source *source)
{
	*f = (struct metric_file){
		.loop = loop,
		.path = path,
		.source = source,
	};
	loop_timer_init(&f->timer, file_write);
	loop_task_init(&f->stop_task, file_stopped);
}

void metric_file_start(struct metric_file *f)
{
	worker_init(&f->worker, f->loop);
	file_write(&f->timer);
}

void metric_file_remove(struct metric_file *f, void (*removed)(void *arg), void *arg)
{
	loop_timer_cancel(&f->timer);
	f->removed = removed;
	f->removed_arg = arg;
	/* The job under way makes the file once more. */
	if (f->state == METRIC_FILE_WRITING)
		f->state = METRIC_FILE_WRITING_LAST;
	else
		begin_to_remove(f);
}

void metric_file_stop(struct metric_file *f, void (*done)(void *arg), void *arg)
{
	if (f->state == METRIC_FILE_IDLE || f->state == METRIC_FILE_WRITING)
		metric_file_remove(f, NULL, NULL);
	f->done = done;
	f->done_arg = arg;
	if (f->state == METRIC_FILE_REMOVED)
		loop_defer(f->loop, &f->stop_task);
}
