/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the HTTP server, the file of the metrics and the worker that writes and removes the file,
 * and ends all.  Thread of the loop. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "metrics.h"
#include "plain-file.h"
#include "process.h"
#include "util.h"
#include "worker.h"

/* ---- the file ----
 *
 * The loop makes the text, and a worker stores the text and removes the file: the loop never waits
 * for the storage.  How it ends: metric_file_stop() waits for the worker, which leaves a file
 * system that does not answer alone (plain-file.h).  How it fails: the next interval tries
 * again. */

enum metric_file_state {
	METRIC_FILE_IDLE,		/* waits for the timer */
	METRIC_FILE_WRITING,		/* the worker has the job */
	METRIC_FILE_WRITING_LAST,	/* the same, and metric_file_remove() was called */
	METRIC_FILE_REMOVING,		/* the worker removes the file */
	METRIC_FILE_REMOVED,		/* or not: the worker has no job any more */
};

/* Embedded in its owner. */
struct metric_file {
	struct loop *loop;
	struct plain_file_own own;	/* the worker's while it has the job, but for @path */
	const struct metric_source *source;
	char process[NAME_MAX + 1];	/* the name of the file, without ".prom" */
	enum metric_file_state state;
	bool written;			/* there is a file of this program, or may be soon */
	int told;			/* the last failure, which the log has; 0: none */
	struct loop_timer timer;
	struct loop_task stop_task;	/* after metric_file_stop() */
	struct worker worker;
	struct worker_job job;
	char *text;			/* the worker's while WRITING, [len] */
	size_t len;
	int rc;				/* of the worker */
	char why[128];			/* of @rc, and of a job that has not begun */
	void (*removed)(void *arg);	/* NULL: nobody asks */
	void *removed_arg;
	void (*done)(void *arg);	/* NULL before metric_file_stop() */
	void *done_arg;
};

/* ---- thread of the worker ---- */

static void write_work(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	f->rc = plain_file_own_write(&f->own, f->text, f->len, f->why, sizeof(f->why));
}

static void remove_work(struct worker_job *job)
{
	struct metric_file *f = container_of(job, struct metric_file, job);

	f->rc = plain_file_own_remove(&f->own, f->why, sizeof(f->why));
}

/* ---- thread of the loop ---- */

static int file_job(struct metric_file *f, void (*work)(struct worker_job *job),
		    void (*done)(struct worker_job *job))
{
	int rc;

	f->job = (struct worker_job){ .work = work, .done = done };
	rc = worker_run(&f->worker, &f->job);
	if (rc)
		snprintf(f->why, sizeof(f->why), "%s", threads_strerror(rc));
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
		log_warn(NULL, "cannot remove the metrics '%s': %s", f->own.path, f->why);
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
			 f->own.path, f->why, METRIC_FILE_INTERVAL_MS / 1000);
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
	f->text = metric_text(f->source->table, f->source->program, METRIC_PROMETHEUS, f->process,
			      &f->len);
	if (f->text)
		rc = file_job(f, write_work, write_done);
	if (rc)
		file_written(f, rc);
}

/* ---- for the owner ---- */

/* Prometheus' node_exporter takes the files of a directory as one text, and drops a sample that it
 * has had from another file: so each sample says which file it is from. */
static void name_process(struct metric_file *f, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	if (len > 5 && !strcmp(name + len - 5, ".prom"))
		len -= 5;
	snprintf(f->process, sizeof(f->process), "%.*s", (int)len, name);
}

/* Initialise @f, which writes nothing yet, and needs no end before metric_file_start().  @path and
 * @source outlive @f. */
static void metric_file_init(struct metric_file *f, struct loop *loop, const char *path,
			     const struct metric_source *source)
{
	*f = (struct metric_file){
		.loop = loop,
		.own = { .path = path, .begin = "# HELP " },
		.source = source,
	};
	if (path)
		name_process(f, path);
	loop_timer_init(&f->timer, file_write);
	loop_task_init(&f->stop_task, file_stopped);
}

/* Write the file now, and again and again. */
static void metric_file_start(struct metric_file *f)
{
	worker_init(&f->worker, f->loop);
	file_write(&f->timer);
}

/* Write no more and remove the file.  Run @removed(@arg) when the file is removed, or that has
 * failed, maybe from inside this call; @removed may be NULL.  Once; metric_file_stop() follows. */
static void metric_file_remove(struct metric_file *f, void (*removed)(void *arg), void *arg)
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

/* metric_file_remove(), unless that was called, and run @done(@arg) behind @removed, once, not from
 * inside this call. */
static void metric_file_stop(struct metric_file *f, void (*done)(void *arg), void *arg)
{
	if (f->state == METRIC_FILE_IDLE || f->state == METRIC_FILE_WRITING)
		metric_file_remove(f, NULL, NULL);
	f->done = done;
	f->done_arg = arg;
	if (f->state == METRIC_FILE_REMOVED)
		loop_defer(f->loop, &f->stop_task);
}

/* ---- all metrics ---- */

struct metrics {
	struct metric_http *http;	/* NULL: none */
	struct metric_file file;	/* own.path NULL: none */
	unsigned nparts;		/* that have not ended */
	void (*done)(void *arg);
	void *done_arg;
};

int metrics_open(struct loop *loop, struct metric_sock *sock, const char *file,
		 const struct metric_source *source, struct metrics **out)
{
	struct metrics *m;
	int r = 0;

	*out = NULL;
	if (sock->fd < 0 && !file)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	if (sock->fd >= 0)
		r = metric_http_open(loop, sock, source, &m->http);
	if (r) {
		free(m);
		return r;
	}
	metric_file_init(&m->file, loop, file, source);
	if (file)
		metric_file_start(&m->file);
	*out = m;
	return 0;
}

void metrics_unlink(const struct metrics *m)
{
	if (m && m->http)
		metric_http_unlink(m->http);
}

void metrics_remove_file(struct metrics *m, void (*removed)(void *arg), void *arg)
{
	if (m && m->file.own.path)
		metric_file_remove(&m->file, removed, arg);
	else
		removed(arg);
}

/* ---- end ---- */

/* A part has ended. */
static void part_ended(void *arg)
{
	struct metrics *m = arg;
	void (*done)(void *arg) = m->done;
	void *done_arg = m->done_arg;

	if (--m->nparts)
		return;
	free(m);
	done(done_arg);
}

void metrics_close(struct metrics *m, void (*done)(void *arg), void *arg)
{
	m->done = done;
	m->done_arg = arg;
	m->nparts = (m->http != NULL) + (m->file.own.path != NULL);
	if (m->http)
		metric_http_close(m->http, part_ended, m);
	if (m->file.own.path)
		metric_file_stop(&m->file, part_ended, m);
}
