/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection request is accepted, refused, or parked.  The checks are those of doc/protocol.md
 * 1.7 in their order, with ours among them.  Control thread. */
#ifndef SRV_ACCEPT_H
#define SRV_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fab_conn;
struct srv;

void srv_accept_init(struct srv *srv);
/* A CONNECT_REQUEST with its private data.  Takes @conn over. */
void srv_accept_request(struct srv *srv, struct fab_conn *conn, const uint8_t *data, size_t len);
/* The peer of @conn went away: if it was parked it is destroyed and true returned. */
bool srv_accept_forget(struct srv *srv, struct fab_conn *conn);
/* A path has been unlinked: decide anew about those that were parked. */
void srv_accept_retry(struct srv *srv);
/* Shutdown: refuse all that are parked. */
void srv_accept_refuse_parked(struct srv *srv);

#endif
