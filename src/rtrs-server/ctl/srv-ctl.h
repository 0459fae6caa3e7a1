/* SPDX-License-Identifier: BSD-3-Clause */
/* The server as its administrator sees it: the commands of rtrsctl at the control socket, and the
 * metrics.  Control thread, the owner of all that is read but the counters (srv-stat.h). */
#ifndef SRV_CTL_H
#define SRV_CTL_H

#include <stdbool.h>
#include <stddef.h>

#include "metrics.h"

struct ctl;
struct json_t;
struct srv;
struct srv_conf;

/* ---- srv-ctl.c: the commands (man/rtrsctl.pod) ---- */

/* The command has been carried out, and @text has a line for each thing that was done; or @rc is
 * -errno, and @text says why nothing was. */
typedef void srv_ctl_done_fn(void *arg, int rc, const char *text);

/* What a command changes of the program, and what it is given. */
enum srv_ctl_change {
	SRV_CTL_EXPORT_ADD,		/* as the command line has it */
	SRV_CTL_EXPORT_REMOVE,		/* a name; by force: take it away from its openers */
	SRV_CTL_EXPORT_RESIZE,		/* a name; by force: a smaller size of one that is open,
					 * too */
	SRV_CTL_EXPORT_BREAK,		/* a name; by force: take the lock from a server that
					 * lives, too */
	SRV_CTL_EXPORT_SET,		/* "NAME,KEY=VALUE[,KEY=VALUE]..."; by force: take it away
					 * from who may not have it open so any more */
	SRV_CTL_EXPORT_SNAPSHOT,	/* "NAME\nSNAPSHOT", or "NAME\n" */
	SRV_CTL_RELOAD,			/* nothing; by force: all of the above, of all exports */
	SRV_CTL_SAVE,			/* nothing */
	SRV_CTL_CHANGES
};

/* The objects of the commands.  The caller's; constant while the socket is open. */
struct srv_ctl {
	struct srv *srv;
	/* Change @program.  @done runs once, in the call or later, and before ctl_close() ends. */
	void (*change)(void *program, enum srv_ctl_change what, const char *text, bool force,
		       srv_ctl_done_fn *done, void *arg);
	void *program;
};

/* Listen at the control socket of the server's configuration.  *@out is NULL if the configuration
 * has no socket, or if the default socket cannot be made, which is logged.  0, or -errno with one
 * line in @err. */
int srv_ctl_open(struct srv_ctl *c, struct ctl **out, char *err, size_t errlen);

/* ---- srv-ctl-json.c: properties and state as JSON (man/rtrsctl.pod has the schema) ---- */

enum srv_ctl_depth {
	SRV_CTL_NAMES,			/* list */
	SRV_CTL_SHOW,			/* properties and states, too */
	SRV_CTL_STATS,			/* counters, too */
};

/* The server as JSON down to @depth, for the caller to free.  NULL: no memory. */
struct json_t *srv_ctl_json(const struct srv *srv, enum srv_ctl_depth depth);

/* ---- srv-metrics.c: the metrics (man/rtrs-server.pod lists them) ---- */

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
