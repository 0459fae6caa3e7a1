/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the file and the worker that writes the file.  The loop makes the text, the worker stores
 * the text.
 *
 * How it ends: metric_file_stop() waits for the worker.  How it fails: the next interval tries
 * again. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "metric-file.h"
#include "util.h"

#define NEW_SUFFIX ".tmp"		/* node_exporter reads names that end in .prom */

/* ---- thread of the worker ---- */

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Write the text to a new file at @name.  What is there of a run before goes.  What another user
 * has put there, and this one may not remove, stays, and is never opened: a FIFO would block. */
static int write_new(const struct metric_file *f, const char *name)
{
	int fd, rc;

	unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, f->text, f->len);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

static void file_work(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%s" NEW_SUFFIX, f->path) < 0) {
		name = NULL;
		f->rc = -ENOMEM;
		return;
	}
	f->rc = write_new(f, name);
	if (!f->rc && rename(name, f->path) < 0)
		f->rc = -errno;
	if (f->rc)
		unlink(name);
}

/* ---- thread of the loop ---- */

static void file_stopped(struct loop_task *task)
{
	struct metric_file *f = container_of(task, struct metric_file, stop_task);

	metric_file_unlink(f);
	worker_fini(&f->worker);
	f->done(f->done_arg);
}

static void file_ended(struct metric_file *f, int rc)
{
	free(f->text);
	f->text = NULL;
	if (rc && !f->told)
		log_warn(NULL, "cannot write metrics to '%s': %s; trying again every %d s",
			 f->path, strerror(-rc), METRIC_FILE_INTERVAL_MS / 1000);
	f->told = rc;
	f->written |= !rc;
	if (f->state == METRIC_FILE_STOPPING) {
		loop_defer(f->loop, &f->stop_task);
		return;
	}
	f->state = METRIC_FILE_IDLE;
	loop_timer_set(f->loop, &f->timer, clock_now_ms() + METRIC_FILE_INTERVAL_MS);
}

static void file_done(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	file_ended(f, f->rc);
}

static void file_write(struct loop_timer *timer)
{
	struct metric_file *f = container_of(timer, struct metric_file, timer);
	int rc = -ENOMEM;

	f->state = METRIC_FILE_WRITING;
	f->text = metric_text(f->source->table, f->source->program, METRIC_PROMETHEUS, &f->len);
	if (f->text)
		rc = worker_run(&f->worker, &f->job);
	if (rc)
		file_ended(f, rc);
}

void metric_file_init(struct metric_file *f, struct loop *loop, const char *path,
		      const struct metric_source *source)
{
	*f = (struct metric_file){
		.loop = loop,
		.path = path,
		.source = source,
		.job = { .work = file_work, .done = file_done },
	};
	loop_timer_init(&f->timer, file_write);
	loop_task_init(&f->stop_task, file_stopped);
}

void metric_file_start(struct metric_file *f)
{
	worker_init(&f->worker, f->loop);
	file_write(&f->timer);
}

void metric_file_unlink(const struct metric_file *f)
{
	if (f->written)
		unlink(f->path);
}

void metric_file_stop(struct metric_file *f, void (*done)(void *arg), void *arg)
{
	f->done = done;
	f->done_arg = arg;
	loop_timer_cancel(&f->timer);
	metric_file_unlink(f);
	f->written = false;
	/* The job under way makes the file once more. */
	if (f->state == METRIC_FILE_WRITING)
		f->state = METRIC_FILE_STOPPING;
	else
		loop_defer(f->loop, &f->stop_task);
}
