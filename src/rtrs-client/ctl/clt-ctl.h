/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's offers to tools, on the service loop: a control socket, and metrics.  A front end
 * binds each before it forks, opens it with the lasting session, and closes it. */
#ifndef CLT_CTL_H
#define CLT_CTL_H

#include <stddef.h>

#include "client.h"
#include "clt-conf.h"

struct clt_ctl;
struct clt_metrics;
struct clt_reload;

/* ---- clt-ctl.c: the control socket, with the commands of rtrsctl (man/rtrsctl.pod) ---- */

/* Listen at @path, before the fork, so that a failure is an exit status.  The process that calls
 * clt_ctl_open() gets the socket.  NULL and "none": do nothing.  0, or -errno with a line in
 * @err. */
int clt_ctl_bind(const char *path, char *err, size_t errlen);
/* Serve the socket bound at @conf->control for @clt, a session of @conf that runs, with @reload for
 * the command of this name; both outlive the socket, and commands change options of
 * @conf.  NULL, of @conf->control: serve the default place of this process, or warn in the log and
 * serve nowhere.  "none": serve nowhere.  Blocks; not on the service thread.  0, with *@out NULL
 * for nowhere, or -errno with a line in @err. */
int clt_ctl_open(struct clt_conf *conf, struct client *clt, struct clt_reload *reload,
		 struct clt_ctl **out, char *err, size_t errlen);
/* Close and remove the socket; NULL: do nothing.  Blocks; not on the service thread. */
void clt_ctl_close(struct clt_ctl *ctl);

/* ---- clt-ctl-json.c: the state of a session, with paths and devices, as JSON (man/rtrsctl.pod has
 * the schema) ----
 * Service thread.  NULL: no memory. */

enum clt_ctl_depth {
	CLT_CTL_NAMES,			/* list */
	CLT_CTL_SHOW,			/* properties and states, too */
	CLT_CTL_STATS,			/* counters, too */
};

/* The answer to list, show or stats, by @depth, of the program with a session of @conf.  The object
 * is the caller's. */
struct json_t *clt_ctl_json(struct client *clt, const struct clt_conf *conf,
			    enum clt_ctl_depth depth);
/* Keys and certificates as show has them (ctl-json.h).  @tls is what was made of @conf; NULL:
 * TLS is off.  @auth_psk is the file of keys for authentication; NULL: none. */
struct json_t *clt_secrets_json(const struct fab_tls *tls, const struct fab_tls_conf *conf,
				const char *auth_psk);

/* ---- clt-metrics.c: the metrics of a client (man/nbdkit-rtrs-plugin.pod lists them) ---- */

/* Descriptors that metrics need before a reader comes. */
#define CLT_METRICS_FDS 3

/* Listen at @conf->metrics before the fork, so that a failure is an exit status; NULL: do nothing.
 * The process that calls clt_metrics_open() gets the socket.  0, or -errno with a line in @err. */
int clt_metrics_bind(const struct clt_conf *conf, char *err, size_t errlen);
/* Serve the metrics of @clt, a session of @conf that runs, at the socket of clt_metrics_bind() and
 * in the file of @conf.  @conf outlives the metrics.  Blocks; not on the service thread.  0, with
 * *@out NULL for nowhere, or -errno with a line in @err. */
int clt_metrics_open(const struct clt_conf *conf, struct client *clt, struct clt_metrics **out,
		     char *err, size_t errlen);
/* Serve no more, and remove socket and file; NULL: do nothing.  Blocks; not on the service
 * thread. */
void clt_metrics_close(struct clt_metrics *m);

#endif
