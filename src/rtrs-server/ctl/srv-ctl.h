/* SPDX-License-Identifier: BSD-3-Clause */
/* The server as its administrator sees it: the commands of rtrsctl at the control socket, and the
 * metrics.  Control thread, the owner of all that is read but the counters. */
#ifndef SRV_CTL_H
#define SRV_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "metrics.h"

struct change;
struct ctl;
struct export;
struct json_t;
struct srv;
struct srv_conf;
struct srv_sess;

/* ---- srv-ctl.c: the commands (man/rtrsctl.pod) ---- */

/* Listen at the control socket of the server's configuration, for commands that look at the server
 * of @change, or change the program by @change.  *@out is NULL if the configuration has no socket,
 * or if the default socket cannot be made, which is logged.  0, or -errno with one line in @err. */
int srv_ctl_open(struct change *change, struct ctl **out, char *err, size_t errlen);

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

/* ---- srv-explain-who.c: the client that "rtrsctl explain EXPORT CLIENT" means, one that is
 * connected, or one that may come ---- */

#define EXPLAIN_ADDRS 16u		/* hosts of a client that are looked at */

enum explain_kind {
	EXPLAIN_SESSION,		/* the name of one that is connected */
	EXPLAIN_IDENTITY,		/* with an address, or without */
	EXPLAIN_ADDRESS,
};

struct explain_who {
	const char *text;		/* the user's */
	enum explain_kind kind;		/* of @text */
	char identity[FAB_IDENTITY_LEN];/* "": none */
	char key[FAB_IDENTITY_LEN];	/* as @identity, with the label that the user gave */
	struct fab_addr addrs[EXPLAIN_ADDRS];
	unsigned naddrs;		/* 0: not known */
	bool address_given;		/* addrs[0] is the user's, and the only one */
	unsigned nsess;			/* sessions that the client has now */
};

/* Find the client @text: an address ("192.0.2.7", "[::1]", "uid:0"), an identity ("psk:gw1",
 * "cert:gw1"), both ("psk:gw1@192.0.2.7"), or the name of a session as srv_sess_is_called() takes
 * it, which comes first: "psk:gw1/vm" may be a session, or a key with a label.  0, or -EINVAL with
 * the reason in @err. */
int srv_explain_who_find(const struct srv *srv, const char *text, struct explain_who *who,
			 char *err, size_t len);
/* True if @sess is a session of @who. */
bool srv_explain_who_has(const struct explain_who *who, const struct srv_sess *sess);

/* ---- srv-explain.c: why a client may or may not open an export ---- */

/* Each check of the server, in the order in which a client meets them.  A client reads less: an
 * export that the client may not open is one that does not exist, and a name that is not known a
 * wrong key. */

/* The answer to "explain": "checks" are objects with "check", "verdict" ("passes", "refuses", or
 * "depends" on an address that was not given, or on another server) and "text"; "may_open", and
 * "mode" then; and "last_refusal", if the server knows one (srv-log.h).  NULL: no memory. */
struct json_t *srv_explain(const struct srv *srv, const char *name, const struct explain_who *who);

#endif
