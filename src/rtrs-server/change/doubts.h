/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration without a mistake, of which somebody hardly means a part: everybody may connect,
 * or nobody can.  A line each, said at a start, at a reload, and by --check. */
#ifndef DOUBTS_H
#define DOUBTS_H

#include "conf.h"

struct auth_creds;
struct fab_tls;
struct srv;

/* A configuration and its keys; borrowed. */
struct doubts {
	const struct srv_conf *conf;
	const struct fab_tls *tls;		/* its keys are read; NULL: none */
	const struct auth_creds *auth;		/* likewise */
};

/* What @conf may be doubted of, with the keys of @srv. */
struct doubts doubts_of(const struct srv_conf *conf, const struct srv *srv);

typedef void doubts_say_fn(void *arg, const char *line);

/* Call @say for each doubt, in the order of the configuration.  Control thread, or the main thread
 * before there is one. */
void doubts_each(const struct doubts *doubts, doubts_say_fn *say, void *arg);
/* As doubts_each(), of the export named @name alone. */
void doubts_each_of(const struct doubts *doubts, const char *name, doubts_say_fn *say, void *arg);
/* A doubts_say_fn: the log warns.  @arg: NULL. */
void doubts_log(void *arg, const char *line);

#endif
