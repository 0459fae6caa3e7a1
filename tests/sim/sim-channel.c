/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS of the sim provider, and somebody between the hosts who ends it.  A session is a number that
 * both of its ends know.  Owns nothing: the relay is the test's.  One thread. */
#include <string.h>

#include "sim-fab-priv.h"

static struct sim_relay *relay;
static uint64_t last_session;

void sim_tls(const char *host, enum fab_tls_mode mode)
{
	sim_host_find(host)->tls = mode;
}

void sim_put_between(struct sim_relay *other)
{
	relay = other;
}

/* The session of an end of mode @mode whose other end has TLS, if @offered. */
static uint64_t session(enum fab_tls_mode mode, bool offered)
{
	return mode != FAB_TLS_OFF && offered ? ++last_session : 0;
}

/* Note the next connection of the relay, and return what happens to it. */
static enum sim_between meet(struct sim_channel *client, struct sim_channel *server)
{
	if (!relay || relay->met == SIM_RELAY_CONNS)
		return SIM_PASSES;
	client->nth = server->nth = ++relay->met;
	return relay->plan[client->nth - 1];
}

static void note(const struct sim_channel *client, const struct sim_channel *server)
{
	if (!client->nth)
		return;
	relay->conn[client->nth - 1].client_tls = client->tls;
	relay->conn[client->nth - 1].server_tls = server->tls;
}

bool sim_channel_make(struct sim_conn *c, struct sim_channel *peer)
{
	enum fab_tls_mode clt = c->host->tls, srv = c->peer_host->tls;
	struct sim_channel *own = &c->channel;
	enum sim_between how;

	*own = *peer = (struct sim_channel){ 0 };
	how = meet(own, peer);
	if (how == SIM_PASSES) {
		own->tls = peer->tls = session(clt, srv != FAB_TLS_OFF);
	} else {
		own->tls = session(clt, how == SIM_TLS_TLS || how == SIM_TLS_PLAIN);
		peer->tls = session(srv, how == SIM_TLS_TLS || how == SIM_PLAIN_TLS);
	}
	note(own, peer);
	if (how == SIM_PASSES && own->tls)
		own->nth = peer->nth = 0;
	return (own->tls || clt != FAB_TLS_REQUIRE) && (peer->tls || srv != FAB_TLS_REQUIRE);
}

void sim_channel_read(const struct sim_conn *c, uint32_t len)
{
	if (relay && c->channel.nth)
		relay->conn[c->channel.nth - 1].read += len;
}

bool sim_channel_binding(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN])
{
	const struct sim_channel *channel = &to_conn(conn)->channel;

	memcpy(out, &channel->tls, sizeof(channel->tls));
	return channel->tls;
}
