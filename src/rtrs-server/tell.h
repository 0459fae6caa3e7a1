/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's lines for the person who starts the server: what is exported, what protects it, who can
 * reach it. */
#ifndef TELL_H
#define TELL_H

#include "conf.h"
#include "export.h"
#include "exports.h"

/* One line for @ex, which is open.  Main thread. */
void tell_export(const struct export *ex);
/* The same for each of @exports. */
void tell_exports(const struct exports *exports);
/* A warning if other machines can reach the server and all of them are let in.  Main thread. */
void tell_reach(const struct srv_conf *conf);
/* What protects requests from their clients; what depends on a client's device is told with the
 * first client (srv-key.c).  Main thread. */
void tell_protection(const struct srv_conf *conf);

#endif
