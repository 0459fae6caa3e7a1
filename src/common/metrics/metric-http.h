/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of metrics over HTTP, on the program's own loop and without a thread: GET /metrics
 * answers with the text of a table, GET / with a status page, which asks for /status.json.
 *
 * Over TCP only readers that ask for a name of this machine get an answer (metric-sock.h).
 *
 * No call blocks.  A connection serves one request and has METRIC_HTTP_DEADLINE_MS from accept to
 * the end of the answer.  At most METRIC_HTTP_CLIENTS connections are open: the oldest makes room
 * for the next, so clients that send nothing or read nothing keep nobody out.  Thread of the
 * loop. */
#ifndef METRIC_HTTP_H
#define METRIC_HTTP_H

#include "loop.h"
#include "metric-sock.h"
#include "metric.h"

#define METRIC_HTTP_CLIENTS 32
#define METRIC_HTTP_DEADLINE_MS 10000

struct metric_http;

/* The metrics of a program.  Constant; outlives the server. */
struct metric_source {
	const struct metric_table *table;
	const void *program;		/* for metric.read() and @status */
	/* JSON for the status page, for the caller to free; NULL: no memory.  Without this
	 * function there is no page. */
	char *(*status)(const void *program);
	const char *hosts;		/* names of this machine: metric-sock.h; NULL: none */
};

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
