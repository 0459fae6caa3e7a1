/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's lines for the administrator: the exports, the protection of requests, limits, and what
 * is doubtful of the configuration. */
#ifndef TELL_H
#define TELL_H

#include <stdio.h>

#include "conf.h"
#include "export.h"
#include "exports.h"
#include "plan.h"

struct auth_creds;
struct fab_tls;
struct srv;

/* Log one line for @ex, which is open.  Main thread. */
void tell_export(const struct export *ex);
/* Log one line for each of @exports, which are open.  Main thread. */
void tell_exports(const struct exports *exports);
/* Log how requests are protected from their clients.  The part that depends on a client's device
 * is logged with the first client (srv-key.c).  Main thread. */
void tell_protection(const struct srv_conf *conf);

/* Log how many clients find room, and warn of limits that this process cannot reach.  Main
 * thread. */
void tell_limits(const struct srv_conf *conf);

/* Log each line of @text as an error.  Main thread. */
void tell_mistakes(const char *text);
/* Log each line of @text as a change that a reload has made.  Main thread. */
void tell_changes(const char *text);
/* Print to @out where a server of @conf would listen, and each step of its first @plan. */
void tell_plan(const struct srv_conf *conf, const struct plan *plan, FILE *out);

/* ---- doubts: a configuration without a mistake, of which somebody hardly means a part ---- */

/* Everybody may connect, or nobody can.  A line each, said at a start, at a reload, and by
 * --check. */

/* A configuration and its keys; borrowed. */
struct doubts {
	const struct srv_conf *conf;
	const struct fab_tls *tls;		/* its keys are read; NULL: none */
	const struct auth_creds *auth;		/* likewise */
};

/* What @conf may be doubted of, with the keys of @srv. */
struct doubts tell_doubts_of(const struct srv_conf *conf, const struct srv *srv);

typedef void tell_doubt_fn(void *arg, const char *line);

/* Call @say for each doubt, in the order of the configuration.  Control thread, or the main thread
 * before there is one. */
void tell_doubts(const struct doubts *doubts, tell_doubt_fn *say, void *arg);
/* As tell_doubts(), of the export named @name alone. */
void tell_doubts_export(const struct doubts *doubts, const char *name, tell_doubt_fn *say,
			void *arg);
/* A tell_doubt_fn: the log warns.  @arg: NULL. */
void tell_doubt(void *arg, const char *line);

#endif
