/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a client may or may not open an export: each check of the server, in the order in which a
 * client meets them.  A client reads less: an export that the client may not open is one that does
 * not exist, and a name that is not known a wrong key.  Control thread. */
#ifndef SRV_EXPLAIN_H
#define SRV_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fabric.h"

struct srv;
struct srv_sess;

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

/* ---- srv-explain.c: the checks ---- */

/* The answer to "explain": "checks" are objects with "check", "verdict" ("passes", "refuses", or
 * "depends" on an address that was not given, or on another server) and "text"; "may_open", and
 * "mode" then; and "last_refusal", if the server knows one (srv-log.h).  NULL: no memory. */
json_t *srv_explain(const struct srv *srv, const char *name, const struct explain_who *who);

#endif
