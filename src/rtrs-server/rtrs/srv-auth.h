/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections on which clients prove who they are, before a session or path is looked up
 * (doc/decisions.md D23).  Such a connection carries nothing else; its client comes back with a
 * pass (srv-pass.h).
 *
 * At most SRV_MAX_GUESTS are open at once, of which a host has SRV_MAX_HOST_GUESTS, each for
 * SRV_GUEST_TIMEOUT.  One more pushes out another one (unproven.h).  Control thread. */
#ifndef SRV_AUTH_H
#define SRV_AUTH_H

#include <stdbool.h>

#include "auth-creds.h"
#include "unproven.h"
#include "loop.h"
#include "rtrs-msg.h"

struct fab_conn;
struct srv;

#define SRV_MAX_GUESTS 256u
#define SRV_MAX_HOST_GUESTS 64u
#define SRV_GUEST_TIMEOUT 10000		/* ms */

struct srv_guests {
	struct list all;		/* struct srv_guest, the oldest first */
	unsigned n;			/* of these, also those that are leaving */
	struct unproven unproven;	/* of these, not told to leave */
	unsigned long proven, refused;	/* how often */
};

void srv_auth_init(struct srv *srv);
/* Take @conn over, if the client asks for authentication, in the version of @conn, and its
 * listener, of @mode, does.  False: @conn is a connection as any other.  @msg: @req as it came. */
bool srv_auth_takes(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
		    const struct rtrs_conn_req *req, const struct rtrs_msg_conn_req *msg);
/* The peer of @conn has gone.  False: @conn is not for authentication. */
bool srv_auth_disconnected(struct srv *srv, struct fab_conn *conn);
/* End all: the server shuts down.  srv->part_gone() follows. */
void srv_auth_stop(struct srv *srv);

#endif
