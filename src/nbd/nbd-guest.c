/* SPDX-License-Identifier: BSD-3-Clause */
/* Guests: connections that haggle, and whose client is to move.  They are bounded in number, since
 * a client becomes one without a key and without an export.
 *
 * One more than a net may have, or than all may have, drives out the oldest one of a net: of the
 * newcomer's own, or of the net with the most.  So a net with many guests loses its own ones. */
#include "nbd-priv.h"

static unsigned net_count(const struct nbd_server *server, uint64_t net)
{
	const struct nbd_conn *conn;
	unsigned n = 0;

	list_for_each(conn, &server->guests, guest)
		n += conn->net == net;
	return n;
}

static struct nbd_conn *net_oldest(const struct nbd_server *server, uint64_t net)
{
	struct nbd_conn *conn;

	list_for_each(conn, &server->guests, guest) {
		if (conn->net == net)
			return conn;
	}
	return NULL;
}

/* The oldest guest of the net that has the most. */
static struct nbd_conn *crowd_oldest(const struct nbd_server *server)
{
	struct nbd_conn *conn, *found = NULL;
	unsigned most = 0;

	list_for_each(conn, &server->guests, guest) {
		unsigned n = net_count(server, conn->net);

		if (n > most) {
			most = n;
			found = conn;
		}
	}
	return found;
}

/* The guest that makes room for one of @net; NULL: there is room. */
static struct nbd_conn *guest_to_go(const struct nbd_server *server, uint64_t net)
{
	if (net != NBD_NET_LOCAL && net_count(server, net) >= server->net_guests_max)
		return net_oldest(server, net);
	return server->nguests >= server->guests_max ? crowd_oldest(server) : NULL;
}

void nbd_guest_add(struct nbd_conn *conn)
{
	struct nbd_server *server = conn->server;
	struct nbd_conn *old = guest_to_go(server, conn->net);

	if (old)
		old->ops->driven_out(old);
	list_add_tail(&server->guests, &conn->guest);
	server->nguests++;
}

void nbd_guest_del(struct nbd_conn *conn)
{
	if (list_empty(&conn->guest))
		return;
	list_del(&conn->guest);
	conn->server->nguests--;
}
