/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because a front end binds, opens and closes them.
 *
 * The metrics of a client (man/nbdkit-rtrs-plugin.pod lists them), on the service loop. */
#ifndef CLT_METRICS_H
#define CLT_METRICS_H

#include "client.h"
#include "clt-conf.h"
#include "metric.h"

struct clt_metrics;

/* The objects of the table: metric.read() gets this. */
struct clt_metrics_of {
	struct client *clt;
	const struct clt_conf *conf;
	uint64_t started_ns;		/* of the real-time clock */
};

/* The table.  Service thread. */
extern const struct metric_table clt_metric_table;

/* Descriptors that metrics need before a reader comes. */
#define CLT_METRICS_FDS 3

/* Listen at @conf->metrics before the fork, so that a failure is an exit status; NULL: do nothing.
 * The process that calls clt_metrics_open() gets the socket.  0, or -errno with a line in @err. */
int clt_metrics_bind(const struct clt_conf *conf, char *err, size_t errlen);
/* Serve the metrics of @clt, a session of @conf that runs on @loop, at the socket of
 * clt_metrics_bind() and in the file of @conf.  @conf outlives the metrics.  Blocks; not on the
 * service thread.  0, with *@out NULL for nowhere, or -errno with a line in @err. */
int clt_metrics_open(const struct clt_conf *conf, struct client *clt, struct loop *loop,
		     struct clt_metrics **out, char *err, size_t errlen);
/* Serve no more, and remove socket and file; NULL: do nothing.  Blocks; not on the service
 * thread. */
void clt_metrics_close(struct clt_metrics *m);

#endif
