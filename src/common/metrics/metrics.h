/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a program, wherever the user asked for them: over HTTP, in a file, or both.
 * Thread of the loop. */
#ifndef METRICS_H
#define METRICS_H

#include "metric-http.h"
#include "worker.h"

struct metrics;

/* Serve @source, on @loop: over HTTP at @sock, unless its descriptor is -1, and in the file at
 * @file, unless NULL (metrics.h).  *@out is NULL if there is nothing to serve.  @sock is taken
 * if 0 is returned, and is the caller's after -errno. */
int metrics_open(struct loop *loop, struct metric_sock *sock, const char *file,
		 const struct metric_source *source, struct metrics **out);
/* Remove only the name of the socket, because the program exits at once: a signal handler on the
 * loop's thread may call, unless it interrupts metrics_close().  NULL: do nothing. */
void metrics_unlink(const struct metrics *m);
/* Write no more into the file and remove it; then, and without a file, or if @m is NULL, run
 * @removed(@arg), maybe from inside this call: a program that exits at once later need not wait for
 * a file system then.  Once; metrics_close() follows. */
void metrics_remove_file(struct metrics *m, void (*removed)(void *arg), void *arg);
/* Remove the names of socket and file, and serve no more; then run @done(@arg), once, not from
 * inside this call. */
void metrics_close(struct metrics *m, void (*done)(void *arg), void *arg);

/* The metrics of a program in a file, for the textfile collector of node_exporter: written again
 * every METRIC_FILE_INTERVAL_MS, under another name first, so that readers find a whole text.  The
 * file goes with the program: a file that stayed would tell of a program that has ended.
 *
 * A worker writes and removes; the loop never waits for the storage.  A failure is logged once,
 * until the reason is another one, or a write succeeds again.  Thread of the loop. */
#define METRIC_FILE_INTERVAL_MS 15000

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
	const char *path;		/* the caller's */
	const struct metric_source *source;
	enum metric_file_state state;
	bool written;			/* @path is a file of this program, or may become one */
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

/* Initialise @f, which writes nothing yet, and needs no end before metric_file_start().  @path and
 * @source outlive @f. */
void metric_file_init(struct metric_file *f, struct loop *loop, const char *path,
		      const struct metric_source *source);
/* Write the file now, and again and again. */
void metric_file_start(struct metric_file *f);
/* Write no more and remove the file.  Run @removed(@arg) when the file is removed, or that has
 * failed, maybe from inside this call; @removed may be NULL.  Once; metric_file_stop() follows. */
void metric_file_remove(struct metric_file *f, void (*removed)(void *arg), void *arg);
/* metric_file_remove(), unless that was called, and run @done(@arg) behind @removed, once, not from
 * inside this call. */
void metric_file_stop(struct metric_file *f, void (*done)(void *arg), void *arg);

#endif
