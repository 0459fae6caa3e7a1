/* SPDX-License-Identifier: BSD-3-Clause */
/* Input is parsed in place.  A WRITE with all of its data in one block uses the data there.  The
 * data of a larger WRITE goes straight from the socket into the memory of its request, but for
 * bytes that came with the header. */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "nbd-priv.h"

#define IN_PLACE_MAX (32u << 10)	/* bytes of a WRITE that waits in a block to be whole */
#define STATUS_PAYLOAD_MAX 64u		/* bytes; a longer payload names unknown contexts */

void nbd_in_drop(struct nbd_conn *conn)
{
	nbd_recv_drop(conn);
	conn->pause = NBD_PAUSE_NONE;
	list_del(&conn->turn);
}

static struct log_limit lenient_limit = LOG_LIMIT_INIT(4, 10000);

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
		nbd_ask_next(conn);
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
	bool negotiates = conn->state == NBD_CONN_NEGOTIATES && conn->out_state == NBD_OUT_READY;

	return conn->pause == NBD_PAUSE_NONE && conn->ask.state == NBD_ASK_NONE &&
	       conn->securing == NBD_SECURING_NOT &&
	       (negotiates || conn->state == NBD_CONN_SERVES);
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
