/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a client may or may not open an export: each check of the server, in the order in which a
 * client meets them.  A client reads less: an export that the client may not open is one that does
 * not exist, and a name that is not known a wrong key.  Control thread. */
#ifndef SRV_EXPLAIN_H
#define SRV_EXPLAIN_H

#include <jansson.h>

struct explain_who;
struct srv;

/* The answer to "explain": "checks" are objects with "check", "verdict" ("passes", "refuses", or
 * "depends" on an address that was not given, or on another server) and "text"; "may_open", and
 * "mode" then; and "last_refusal", if the server knows one (srv-refused.h).  NULL: no memory. */
json_t *srv_explain(const struct srv *srv, const char *name, const struct explain_who *who);

#endif
