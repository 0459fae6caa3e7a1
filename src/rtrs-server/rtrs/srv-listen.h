/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners and their connection managers, and the requests that come there.  Control thread. */
#ifndef SRV_LISTEN_H
#define SRV_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth-creds.h"

struct conf_listener;
struct fab_addr;
struct fab_conn;
struct srv;
struct srv_conf;

/* Open every listener of the configuration.  0, or -errno with one line in @err and no listener
 * open. */
int srv_listen_start(struct srv *srv, char *err, size_t errlen);
/* An address where the server listens now. */
struct srv_listening {
	const char *url;		/* "tcp://ADDR:PORT", with the port that the listener got */
	const struct fab_addr *addr;	/* likewise */
	enum auth_mode auth;		/* whether clients are asked who they are */
};

/* Call @each for each address where the server listens now. */
void srv_listen_each(const struct srv *srv,
		     void (*each)(void *arg, const struct srv_listening *l), void *arg);
/* Listen at @asked, too, as the configuration of a server that runs demands.  0, also if this
 * machine lacks @asked, one of several addresses of a name; or -errno with one line in @err,
 * -ECANCELED if the server stops. */
int srv_listen_add(struct srv *srv, const struct conf_listener *asked, char *err, size_t errlen);
/* 0 if the server listens at an address of each --listen of @conf; or -EADDRNOTAVAIL with one line
 * in @err. */
int srv_listen_check(const struct srv *srv, const struct srv_conf *conf, char *err, size_t errlen);
/* 0 if the server has the keys that the listeners of @conf demand; or -EINVAL with one line in
 * @err: it was started without keys. */
int srv_listen_has_keys(const struct srv *srv, const struct srv_conf *conf, char *err,
			size_t errlen);
/* Note in @conf which addresses are missing: the server does not listen there. */
void srv_listen_note(const struct srv *srv, struct srv_conf *conf);
/* Do not listen at @addr any more.  Connections live on. */
void srv_listen_del(struct srv *srv, const struct fab_addr *addr);
/* Accept no new connection.  Connections live on. */
void srv_listen_stop(struct srv *srv);
/* Close the connection managers, then call srv->part_gone().  All connections are gone. */
void srv_listen_close(struct srv *srv);

/* ---- srv-accept.c: decides about connection requests: accept, refuse or park ---- */

/* The checks are those of doc/protocol.md 1.7 in their order, with ours among them. */

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
