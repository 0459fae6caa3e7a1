/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of a connection: bytes of the client go through the negotiation (nbd-opt.h), and
 * the backend answers which exports it has.  Owns conn->negotiation while the connection
 * negotiates. */
#include <stdlib.h>

#include "nbd-priv.h"

static struct nbd_conn *to_conn(struct nbd_ask *ask)
{
	return container_of(ask, struct nbd_conn, ask);
}

static void conn_serve(struct nbd_conn *conn)
{
	conn->headers = conn->negotiation->headers;
	conn->status =
		nbd_negotiate_status(conn->negotiation) ? NBD_STATUS_CHOSEN : NBD_STATUS_NONE;
	free(conn->negotiation);
	conn->negotiation = NULL;
	conn->state = NBD_CONN_SERVES;
}

void nbd_ask_guest(struct nbd_conn *conn, uint64_t ms)
{
	unproven_enter(&conn->server->unproven, &conn->unproven, conn->net, ms);
}

/* The backend is to answer: until then the time is not the client's, and no other client takes its
 * place.  When the server is away, all clients wait so. */
static void ask_begin(struct nbd_conn *conn)
{
	conn->ask.state = NBD_ASK_WAITS;
	conn->ask.left_ms = unproven_leave(&conn->unproven);
}

/* The answer to NBD_OPT_STARTTLS goes out, then the handshake of TLS has the socket.  Bytes that
 * came with the option came in clear, and may be anybody's: the option gets no answer then. */
static void secure_begin(struct nbd_conn *conn)
{
	if (nbd_recv_avail(conn)) {
		nbd_out_drop(conn);
		conn->ops->broke(conn, "bytes in clear follow NBD_OPT_STARTTLS");
		return;
	}
	conn->securing = NBD_SECURING_ANSWERS;
	nbd_out_bytes(conn);
}

void nbd_ask_next(struct nbd_conn *conn)
{
	const struct nbd_server *server = conn->server;

	switch (conn->negotiation->state) {
	case NBD_NEGOTIATE_LISTS:
		ask_begin(conn);
		server->backend->list(server->arg, &conn->ask);
		break;
	case NBD_NEGOTIATE_LOOKS:
	case NBD_NEGOTIATE_OPENS:
		ask_begin(conn);
		server->backend->open(server->arg, &conn->ask, conn->negotiation->name);
		break;
	case NBD_NEGOTIATE_SECURES:
		secure_begin(conn);
		break;
	case NBD_NEGOTIATE_LEFT:
		conn->ops->left(conn);
		break;
	default:
		nbd_out_bytes(conn);
		break;
	}
}

/* The backend has answered: the negotiation goes on. */
static void ask_over(struct nbd_conn *conn)
{
	conn->ask.state = NBD_ASK_NONE;
	if (conn->state == NBD_CONN_NEGOTIATES)
		nbd_ask_guest(conn, conn->ask.left_ms);
	nbd_out_bytes(conn);
	if (conn->state < NBD_CONN_LEAVES && conn->pause == NBD_PAUSE_NONE) {
		conn->pause = NBD_PAUSE_TURN;
		nbd_turn_queue(conn);
	}
}

void nbd_ask_name(struct nbd_ask *ask, const char *name)
{
	struct nbd_conn *conn = to_conn(ask);

	if (conn->state == NBD_CONN_NEGOTIATES)
		nbd_negotiate_name(conn->negotiation, name, &conn->out_bytes);
}

void nbd_ask_listed(struct nbd_ask *ask, int status, const char *why)
{
	struct nbd_conn *conn = to_conn(ask);

	if (conn->state == NBD_CONN_NEGOTIATES)
		nbd_negotiate_listed(conn->negotiation, status, why, &conn->out_bytes);
	ask_over(conn);
}

void nbd_ask_opened(struct nbd_ask *ask, int status, const char *why, void *handle)
{
	struct nbd_conn *conn = to_conn(ask);
	const struct nbd_backend *backend = conn->server->backend;
	bool wanted = conn->state == NBD_CONN_NEGOTIATES;

	if (status == 0 && wanted)
		backend->info(handle, &conn->export);
	if (wanted && nbd_negotiate_opened(conn->negotiation, status, why, &conn->export,
					&conn->out_bytes) < 0) {
		conn->ops->failed(conn, conn->negotiation->why);
		wanted = false;
	}
	if (wanted && conn->negotiation->state == NBD_NEGOTIATE_SERVES) {
		conn->handle = handle;
		conn_serve(conn);
	} else if (status == 0) {
		backend->close(handle);
	}
	ask_over(conn);
}
