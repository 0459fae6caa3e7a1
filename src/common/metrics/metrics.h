/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a program, wherever the user asked for them: over HTTP, in a file, or both.
 * Thread of the loop.
 *
 * The file is for the textfile collector of node_exporter: written again every
 * METRIC_FILE_INTERVAL_MS, under another name first, so that readers find a whole text.  The file
 * goes with the program: a file that stayed would tell of a program that has ended.  A failure is
 * logged once, until the reason is another one, or a write succeeds again.  Short: four calls. */
#ifndef METRICS_H
#define METRICS_H

#include "metric-http.h"

#define METRIC_FILE_INTERVAL_MS 15000

struct metrics;

/* Serve @source, on @loop: over HTTP at @sock, unless its descriptor is -1, and in the file at
 * @file, unless NULL.  *@out is NULL if there is nothing to serve.  @sock is taken if 0 is
 * returned, and is the caller's after -errno. */
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

#endif
