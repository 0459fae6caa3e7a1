/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a program, wherever the user asked for them: over HTTP, in a file, or both.
 * Thread of the loop. */
#ifndef METRICS_H
#define METRICS_H

#include "metric-http.h"

struct metrics;

/* Serve @source, on @loop: over HTTP at @sock, unless its descriptor is -1, and in the file at
 * @file, unless NULL (metric-file.h).  *@out is NULL if there is nothing to serve.  @sock is taken
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

#endif
