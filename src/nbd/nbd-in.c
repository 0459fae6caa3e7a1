/* SPDX-License-Identifier: BSD-3-Clause */
/* The input of a client: options, which negotiate, then requests.
 *
 * The happy path: nbd_in_run() parses what came, in place, at most NBD_TURN pieces, then reads more
 * (nbd-recv.c).  take_option() gives a piece to the negotiation (nbd-opt.h), and ask_next() asks
 * the backend.  take_request() checks a request and begins it (nbd-io.c): a small WRITE uses its
 * data where it lies, the data of a larger one goes straight from the socket into the memory of the
 * request, but for bytes that came with the header.
 *
 * Possible failures: a wrong request gets an error reply, and its payload is dropped; bytes that
 * hide the next request or option end the connection (conn->ops->broke()); without memory or a turn
 * the connection waits, conn->pause. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "nbd-priv.h"

#define IN_PLACE_MAX (32u << 10)	/* bytes of a WRITE that waits in a block to be whole */
#define STATUS_PAYLOAD_MAX 64u		/* bytes; a longer payload names unknown contexts */

static struct log_limit lenient_limit = LOG_LIMIT_INIT(4, 10000);

/* ---- options ----
 * Bytes of the client go through the negotiation (nbd-opt.h), and the backend answers which exports
 * it has. */

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

/* Act on the state of the negotiation, which needs the backend or is over. */
static void ask_next(struct nbd_conn *conn)
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

/* ---- input ---- */

void nbd_in_drop(struct nbd_conn *conn)
{
	nbd_recv_drop(conn);
	conn->pause = NBD_PAUSE_NONE;
	list_del(&conn->turn);
}

/* ---- requests ---- */

/* Say once that the client omits the flag of a WRITE's data, which is taken all the same. */
static void note_lenience(struct nbd_conn *conn, const struct nbd_request *req)
{
	if (conn->lenience == NBD_LENIENCE_SAID || conn->headers != NBD_HEADERS_EXTENDED ||
	    req->type != NBD_CMD_WRITE || (req->flags & NBD_CMD_FLAG_PAYLOAD_LEN))
		return;
	conn->lenience = NBD_LENIENCE_SAID;
	log_limited(&lenient_limit, LOG_LEVEL_INFO, conn->name,
		    "sends WRITE without NBD_CMD_FLAG_PAYLOAD_LEN, as QEMU 10 and 11 do: its data "
		    "is accepted");
}

/* Wait for the rest of a request: the request is taken again when the rest has come. */
static bool take_later(struct nbd_request_io *q)
{
	nbd_req_unget(q);
	return false;
}

/* Take a WRITE that was checked, with a header of @size bytes. */
static bool take_write(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t size,
		       uint32_t have)
{
	uint8_t *data = conn->block->bytes + conn->in_pos + size;
	uint32_t len = q->req.payload;

	int64_t ahead;

	if (len <= IN_PLACE_MAX && conn->in_pos + size + len <= NBD_BLOCK_ROOM) {
		if (have < len)
			return take_later(q);
		q->block = conn->block;
		q->block->refs++;
		q->io.buf = data;
		conn->in_pos += size + len;
		nbd_io_begin(q);
		return true;
	}
	ahead = have ? -1 : nbd_ahead_give(conn, q, len);
	if (ahead < 0 && !nbd_req_memory(q, len))
		return take_later(q);
	have = MIN(have, len);
	memcpy(q->piece, data, have);
	conn->in_pos += size + have;
	nbd_recv_fill(conn, q, ahead < 0 ? have : (uint32_t)ahead);
	return true;
}

/* Take a request with the error @r: its payload is dropped. */
static bool take_wrong(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t size, int r)
{
	conn->in_pos += size;
	nbd_recv_wrong(conn, q, r);
	return true;
}

/* Bytes of memory for a request without data of the client. */
static size_t memory_of(const struct nbd_request_io *q)
{
	switch (q->req.type) {
	case NBD_CMD_READ:
		return q->req.len;
	case NBD_CMD_CACHE:
		return MIN(q->req.len, (uint64_t)NBD_DATA_MAX);
	case NBD_CMD_BLOCK_STATUS:
		return NBD_STATUS_MEMORY;
	default:
		return 0;
	}
}

/* Take the payload of a BLOCK_STATUS, which may name contexts and a length. */
static bool take_status_payload(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t size,
				uint32_t have, int *r)
{
	if (q->req.type != NBD_CMD_BLOCK_STATUS)
		return true;
	if (q->req.payload > STATUS_PAYLOAD_MAX) {
		q->why = "the payload of a BLOCK_STATUS names more contexts than there are";
		*r = -EINVAL;
		return true;
	}
	if (have < q->req.payload)
		return false;
	*r = nbd_request_payload(&q->req, conn->block->bytes + conn->in_pos + size, &q->why);
	return true;
}

/* Take @q, with a header of @size bytes at in_pos. */
static bool in_take_bytes(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t size)
{
	uint32_t have = nbd_recv_avail(conn) - size;
	size_t memory;
	int r = 0;

	note_lenience(conn, &q->req);
	conn->large = q->req.type == NBD_CMD_WRITE && q->req.payload > IN_PLACE_MAX ?
			q->req.payload : 0;
	if (q->req.payload && !take_status_payload(conn, q, size, have, &r))
		return take_later(q);
	if (r == 0)
		r = nbd_io_check(q);
	if (r < 0)
		return take_wrong(conn, q, size, r);
	if (q->req.type == NBD_CMD_WRITE)
		return take_write(conn, q, size, have);
	memory = memory_of(q);
	if (memory && !nbd_req_memory(q, memory))
		return take_later(q);
	conn->in_pos += size + q->req.payload;
	q->io.len = q->req.type == NBD_CMD_CACHE ? memory : q->req.len;
	nbd_io_begin(q);
	return true;
}

/* Take the next request.  False: more bytes, memory or a turn have to come first. */
static bool take_request(struct nbd_conn *conn)
{
	uint32_t size = (uint32_t)nbd_request_size(conn->headers);
	struct nbd_request_io *q;
	struct nbd_request req;
	const char *why;

	if (conn->input.state == NBD_INPUT_WRONG)
		nbd_recv_skip(conn);
	if (conn->input.state != NBD_INPUT_HEADER || nbd_recv_avail(conn) < size ||
	    !nbd_recv_widen(conn))
		return false;
	if (nbd_request_decode(&req, conn->headers, conn->block->bytes + conn->in_pos, &why) < 0) {
		conn->ops->broke(conn, why);
		return false;
	}
	if (req.type == NBD_CMD_DISC) {
		conn->ops->left(conn);
		return false;
	}
	q = nbd_req_get(conn, &req);
	return q && in_take_bytes(conn, q, size);
}

/* Take the next piece of the handshake.  False: more bytes have to come first. */
static bool take_option(struct nbd_conn *conn)
{
	struct nbd_negotiation *h = conn->negotiation;
	ssize_t n = 0;

	if (nbd_recv_avail(conn))
		n = nbd_negotiate_step(h, conn->block->bytes + conn->in_pos, nbd_recv_avail(conn),
				    &conn->out_bytes);
	if (n < 0) {
		conn->ops->broke(conn, h->why);
		return false;
	}
	conn->in_pos += (uint32_t)n;
	if (n)
		ask_next(conn);
	return n;
}

/* Take a request or a piece of the handshake.  False: none is whole, or the connection waits. */
static bool in_take(struct nbd_conn *conn)
{
	switch (conn->state) {
	case NBD_CONN_NEGOTIATES:
		return conn->ask.state == NBD_ASK_NONE &&
		       conn->securing == NBD_SECURING_NOT && take_option(conn);
	case NBD_CONN_SERVES:
		return take_request(conn);
	default:
		return false;
	}
}

/* ---- the whole ---- */

bool nbd_in_reads(const struct nbd_conn *conn)
{
	return conn->pause == NBD_PAUSE_NONE && conn->ask.state == NBD_ASK_NONE &&
	       conn->securing == NBD_SECURING_NOT &&
	       (conn->state == NBD_CONN_SERVES ||
		(conn->state == NBD_CONN_NEGOTIATES && conn->out_state == NBD_OUT_READY));
}

int nbd_in_run(struct nbd_conn *conn)
{
	unsigned left = NBD_TURN;
	int more = 1;

	while (nbd_in_reads(conn)) {
		while (left && in_take(conn))
			left--;
		if (!left && nbd_in_reads(conn))
			conn->pause = NBD_PAUSE_TURN;
		if (!nbd_in_reads(conn))
			break;
		if (nbd_ahead_pending(conn)) {
			if (!nbd_recv_move(conn))
				break;
			continue;
		}
		if (!more)
			break;
		more = nbd_recv_once(conn);
		if (more < 0)
			return more;
		if (!more && !nbd_recv_avail(conn))
			break;
	}
	if (conn->pause == NBD_PAUSE_TURN || conn->pause == NBD_PAUSE_MEMORY)
		nbd_turn_queue(conn);
	nbd_recv_rest(conn);
	return 0;
}

bool nbd_in_halfway(const struct nbd_conn *conn)
{
	return conn->input.state != NBD_INPUT_HEADER || nbd_recv_avail(conn);
}
