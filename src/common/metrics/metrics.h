/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a program, wherever the user asked for them: over HTTP, in a file, or both.
 * Thread of the loop.
 *
 * The file is for the textfile collector of node_exporter: written again every
 * METRIC_FILE_INTERVAL_MS, under another name first, so that readers find a whole text.  The file
 * goes with the program: a file that stayed would tell of a program that has ended.  A failure is
 * logged once, until the reason is another one, or a write succeeds again. */
#ifndef METRICS_H
#define METRICS_H

#include "loop.h"
#include "metric-sock.h"
#include "metric.h"

#define METRIC_FILE_INTERVAL_MS 15000

struct metrics;

/* The metrics of a program.  Constant; outlives the server. */
struct metric_source {
	const struct metric_table *table;
	const void *program;		/* for metric.read() and @status */
	/* JSON for the status page, for the caller to free; NULL: no memory.  Without this
	 * function there is no page. */
	char *(*status)(const void *program);
	const char *hosts;		/* names of this machine: metric-sock.h; NULL: none */
};

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

/* ---- private: the server of metrics over HTTP, metric-http.c, for metrics.c ----
 *
 * On the program's own loop and without a thread: GET /metrics answers with the text of a table,
 * GET / with a status page, which asks for /status.json.  Over TCP only readers that ask for a name
 * of this machine get an answer (metric-sock.h).
 *
 * No call blocks.  A connection serves one request and has METRIC_HTTP_DEADLINE_MS from accept to
 * the end of the answer.  At most METRIC_HTTP_CLIENTS connections are open: the oldest makes room
 * for the next, so clients that send nothing or read nothing keep nobody out. */

#define METRIC_HTTP_CLIENTS 32
#define METRIC_HTTP_DEADLINE_MS 10000

struct metric_http;

/* Serve @source at @sock on @loop.  @sock is taken if 0 is returned, and is the caller's after
 * -errno. */
int metric_http_open(struct loop *loop, struct metric_sock *sock,
		     const struct metric_source *source, struct metric_http **out);
/* Remove only the name of a unix socket, like metric_sock_unlink(). */
void metric_http_unlink(const struct metric_http *http);
/* Remove the name of a unix socket, cut all clients off and close, then run @done(@arg), once, not
 * from inside this call. */
void metric_http_close(struct metric_http *http, void (*done)(void *arg), void *arg);

/* The status page: metric-page.html, which the build makes a constant.  Each METRIC_PAGE_NONCE
 * stands for the nonce of an answer, of the same length. */
extern const char metric_page[];

#define METRIC_PAGE_NONCE "NONCENONCENONCENONCENONCENONCE00"

#endif
