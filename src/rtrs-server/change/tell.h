/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's lines for the person who starts the server: the exports, the protection of requests.
 * Warnings about the configuration are in doubts.h. */
#ifndef TELL_H
#define TELL_H

#include <stdio.h>

#include "conf.h"
#include "export.h"
#include "exports.h"
#include "plan.h"

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

#endif
