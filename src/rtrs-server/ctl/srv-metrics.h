/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of the server (man/rtrs-server.pod lists them).  Control thread, the owner of all
 * that is read but the counters (srv-stat.h). */
#ifndef SRV_METRICS_H
#define SRV_METRICS_H

#include "metrics.h"

struct srv;
struct srv_conf;

/* Embedded in its owner; constant while the metrics are served. */
struct srv_metrics {
	const struct srv *srv;
	uint64_t started_ns;		/* of the real-time clock */
	struct metric_sock sock;	/* until srv_metrics_open() */
	struct metric_source source;	/* of this struct */
	struct metrics *served;		/* NULL: nowhere */
};

/* The table; metric.read() gets a struct srv_metrics. */
extern const struct metric_table srv_metric_table;

/* Listen where @conf says, before the server starts, so that a failure leaves nothing behind.  0:
 * srv_metrics_open() or metric_sock_close(&m->sock) follows; or -errno with one line in @err. */
int srv_metrics_listen(struct srv_metrics *m, const struct srv_conf *conf, char *err, size_t len);
/* Serve the metrics of @srv, at the socket and in the file of the configuration.  0 or -errno. */
int srv_metrics_open(struct srv_metrics *m, const struct srv *srv);
/* Serve no more, then run @done(@arg), once; from inside this call if there is nothing to end. */
void srv_metrics_close(struct srv_metrics *m, void (*done)(void *arg), void *arg);

#endif
