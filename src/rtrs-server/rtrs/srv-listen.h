/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners and their connection managers.  Control thread. */
#ifndef SRV_LISTEN_H
#define SRV_LISTEN_H

#include <stddef.h>

#include "auth-creds.h"

struct conf_listener;
struct fab_addr;
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
 * machine lacks @asked, one of several addresses of a name; or -errno with one line in @err. */
int srv_listen_add(struct srv *srv, const struct conf_listener *asked, char *err, size_t errlen);
/* 0 if the server listens at an address of each --listen of @conf; or -EADDRNOTAVAIL with one line
 * in @err. */
int srv_listen_check(const struct srv *srv, const struct srv_conf *conf, char *err, size_t errlen);
/* Note in @conf which addresses are missing: the server does not listen there. */
void srv_listen_note(const struct srv *srv, struct srv_conf *conf);
/* Do not listen at @addr any more.  Connections live on. */
void srv_listen_del(struct srv *srv, const struct fab_addr *addr);
/* Accept no new connection.  Connections live on. */
void srv_listen_stop(struct srv *srv);
/* Close the connection managers, then call srv->part_gone().  All connections are gone. */
void srv_listen_close(struct srv *srv);

#endif
