/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the place where the metrics of the lasting session are served.  The service thread serves;
 * the other functions call it there and wait. */
#include <config.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clt-ctl.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"

struct clt_metrics {
	struct clt_metrics_of of;
	struct metric_source source;	/* of @of */
	struct metrics *served;
};

/* Listens, and is not served yet: a fork keeps the socket. */
static struct metric_sock bound = { .fd = -1 };

int clt_metrics_bind(const struct clt_conf *conf, char *err, size_t errlen)
{
	return conf->metrics ? metric_sock_listen(&bound, conf->metrics, err, errlen) : 0;
}

/* Remove the socket if the program ends between .get_ready and .after_fork, unless a forked process
 * goes on. */
static void __attribute__((destructor)) metrics_unbind(void)
{
	metric_sock_leave(&bound);
}

/* ---- service thread ---- */

static void metrics_open_call(struct loop_call *call)
{
	struct clt_metrics *m = call->arg;

	call->rc = metrics_open(m->of.clt->sess.loop, &bound, m->of.conf->metrics_file, &m->source,
				&m->served);
	loop_call_end(call);
}

static void metrics_close_call(struct loop_call *call)
{
	metrics_close(((struct clt_metrics *)call->arg)->served, loop_call_end, call);
}

/* ---- other threads ---- */

/* The answer to rtrsctl stats. */
static char *metrics_status(const void *program)
{
	const struct clt_metrics_of *of = program;
	json_t *object = clt_ctl_json(of->clt, of->conf, CLT_CTL_STATS);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

static struct clt_metrics *metrics_create(const struct clt_conf *conf, struct client *clt)
{
	struct clt_metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->of = (struct clt_metrics_of){ .clt = clt, .conf = conf, .started_ns = metric_time_ns() };
	m->source = (struct metric_source){ .table = &clt_metric_table, .program = &m->of,
					    .hosts = conf->metrics_host };
	if (conf->metrics_page == METRIC_PAGE_YES)
		m->source.status = metrics_status;
	return m;
}

int clt_metrics_open(const struct clt_conf *conf, struct client *clt, struct clt_metrics **out,
		     char *err, size_t errlen)
{
	struct clt_metrics *m;
	int rc;

	*out = NULL;
	if (bound.fd < 0 && !conf->metrics_file)
		return 0;
	m = metrics_create(conf, clt);
	rc = m ? loop_call(clt->sess.loop, metrics_open_call, m) : -ENOMEM;
	if (rc) {
		snprintf(err, errlen, "cannot serve metrics: %s", strerror(-rc));
		free(m);
		return rc;
	}
	if (bound.fd >= 0)
		log_info(NULL, "metrics: %s", bound.url);
	bound = (struct metric_sock){ .fd = -1 };
	*out = m;
	return 0;
}

void clt_metrics_close(struct clt_metrics *m)
{
	if (!m)
		return;
	loop_call(m->of.clt->sess.loop, metrics_close_call, m);
	free(m);
}
