/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because it is the header with jansson.
 *
 * The state of a session, with paths and devices, as JSON (man/rtrsctl.pod has the schema).
 * Service thread.  NULL: no memory. */
#ifndef CLT_CTL_JSON_H
#define CLT_CTL_JSON_H

#include <jansson.h>

#include "client.h"
#include "clt-conf.h"
#include "fab-tls.h"

enum clt_ctl_depth {
	CLT_CTL_NAMES,			/* list */
	CLT_CTL_SHOW,			/* properties and states, too */
	CLT_CTL_STATS,			/* counters, too */
};

/* The answer to list, show or stats, by @depth, of the program with a session of @conf.  The object
 * is the caller's. */
json_t *clt_ctl_json(struct client *clt, const struct clt_conf *conf, enum clt_ctl_depth depth);
/* Keys and certificates as show has them (ctl-json.h).  @tls is what was made of @conf; NULL:
 * TLS is off.  @auth_psk is the file of keys for authentication; NULL: none. */
json_t *clt_secrets_json(const struct fab_tls *tls, const struct fab_tls_conf *conf,
			 const char *auth_psk);

#endif
