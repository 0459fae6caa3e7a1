/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides about connection requests: accept, refuse or park.  The checks are those of
 * doc/protocol.md 1.7 in their order, with ours among them.  Control thread. */
#ifndef SRV_ACCEPT_H
#define SRV_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth-creds.h"

struct fab_conn;
struct srv;

/* Begin with no request parked. */
void srv_accept_init(struct srv *srv);
/* Decide about @conn, a CONNECT_REQUEST at a listener of @mode with @data as its private data. 
 * Takes @conn over. */
void srv_accept_request(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
			const uint8_t *data, size_t len);
/* Destroy @conn, whose peer went away, if the request of @conn is parked.  True if this was so. */
bool srv_accept_forget(struct srv *srv, struct fab_conn *conn);
/* Decide again about the parked requests, because a path has been unlinked. */
void srv_accept_retry(struct srv *srv);
/* Refuse all parked requests: the server shuts down. */
void srv_accept_refuse_parked(struct srv *srv);

#endif
