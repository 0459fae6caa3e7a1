/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of the socket.  recvmsg() fills the memory of a WRITE whose data is to come (conn->fill),
 * blocks, and the memory of a WRITE that is expected (conn->ahead), in this order.
 *
 * A connection owns a reference of the block that the connection fills, only while the block has
 * bytes. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "nbd-priv.h"

#define TAIL 4096u			/* a block with less room is left */
#define AHEAD_MAX (256u << 10)		/* bytes, more than a unix socket holds */

static void fill_end(struct nbd_conn *conn)
{
	struct nbd_request_io *q = conn->fill;

	conn->fill = NULL;
	nbd_io_begin(q);
}

void nbd_recv_fill(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t have)
{
	conn->fill = q;
	conn->filled = have;
	if (have == q->req.payload)
		fill_end(conn);
}

/* Is @block, with @n bytes that came, a small one that is too small for what comes? */
static bool is_outgrown(const struct nbd_conn *conn, const struct nbd_block *block, uint32_t n)
{
	return block->room < NBD_BLOCK_ROOM &&
	       (conn->state != NBD_CONN_HAGGLES || n == block->room);
}

/* Make room in a block.  False: no memory now. */
static bool recv_room(struct nbd_conn *conn)
{
	struct nbd_block *old = conn->block, *block = old;
	uint32_t n = nbd_recv_avail(conn);

	if (old && old->refs == 1 && !n)
		conn->in_pos = conn->in_end = 0;
	if (old && old->room - conn->in_end >= TAIL)
		return true;
	/* A request that is not whole stays in its block if the rest fits there. */
	if (old && old->refs > 1 && n >= TAIL)
		return conn->in_end < NBD_BLOCK_ROOM;
	if (!old || old->refs > 1 || is_outgrown(conn, old, n))
		block = nbd_block_get(conn, n);
	if (!block)
		return false;
	if (old)
		memmove(block->bytes, old->bytes + conn->in_pos, n);
	if (old && old != block)
		nbd_block_put(conn->server, old);
	conn->block = block;
	conn->in_pos = 0;
	conn->in_end = n;
	return true;
}

bool nbd_recv_widen(struct nbd_conn *conn)
{
	return !is_outgrown(conn, conn->block, nbd_recv_avail(conn)) || recv_room(conn);
}

/* ---- the WRITE that is expected ---- */

static void ahead_end(struct nbd_conn *conn)
{
	struct nbd_ahead *a = &conn->ahead;

	if (a->piece)
		nbd_req_piece_put(conn, a->piece, a->len);
	a->piece = NULL;
	a->len = a->pos = a->end = 0;
}

/* Make memory for the data of the next request, if the last one says its length. */
static bool ahead_begin(struct nbd_conn *conn)
{
	struct nbd_ahead *a = &conn->ahead;

	if (!a->piece && conn->large && conn->large <= AHEAD_MAX) {
		a->piece = nbd_req_piece(conn, conn->large);
		a->len = conn->large;
	}
	return a->piece;
}

int64_t nbd_recv_ahead(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t len)
{
	struct nbd_ahead *a = &conn->ahead;
	uint32_t have = MIN(a->end, len);

	if (!a->piece || a->len != len || a->pos)
		return -1;
	nbd_req_piece_set(q, a->piece, len);
	a->piece = NULL;
	a->pos = have;
	/* The positions belong to the piece, unless bytes behind it are still to be moved. */
	if (!nbd_recv_pending(conn))
		ahead_end(conn);
	return have;
}

/* Copy at most @n bytes that came ahead to @to.  Returns how many. */
static uint32_t ahead_copy(struct nbd_ahead *a, uint8_t *to, size_t n)
{
	uint32_t data = (uint32_t)MIN(n, (size_t)(MIN(a->end, a->len) - MIN(a->pos, a->len)));
	uint32_t head;

	if (data)
		memcpy(to, a->piece + a->pos, data);
	a->pos += data;
	head = a->pos < a->len ? 0 : (uint32_t)MIN(n - data, (size_t)(a->end - a->pos));
	if (head)
		memcpy(to + data, a->head + (a->pos - a->len), head);
	a->pos += head;
	return data + head;
}

/* ---- receive ---- */

/* The places of bytes to come, in their order. */
struct places {
	struct iovec iov[4];
	size_t n, sum;
	uint32_t block;			/* bytes of the block's place */
};

static void places_add(struct places *p, void *base, size_t len)
{
	p->iov[p->n++] = (struct iovec){ base, len };
	p->sum += len;
}

/* If a WRITE is expected, whose data has other memory, the block gets the rest of the header. */
static void places_of_block(struct places *p, struct nbd_conn *conn)
{
	uint32_t head = (uint32_t)nbd_request_size(conn->headers), have = nbd_recv_avail(conn);
	bool ahead = !nbd_recv_pending(conn) && have < head && ahead_begin(conn);

	p->block = conn->block->room - conn->in_end;
	if (ahead)
		p->block = MIN(p->block, head - have);
	places_add(p, conn->block->bytes + conn->in_end, p->block);
	if (ahead) {
		places_add(p, conn->ahead.piece, conn->ahead.len);
		places_add(p, conn->ahead.head, head);
	}
}

/* False: no memory now. */
static bool places_find(struct places *p, struct nbd_conn *conn)
{
	struct nbd_request_io *q = conn->fill;

	*p = (struct places){ 0 };
	if (!recv_room(conn)) {
		if (!q)
			return false;
		conn->pause = NBD_PAUSE_NONE;	/* the data has its memory */
	}
	if (q)
		places_add(p, (uint8_t *)q->piece + conn->filled,
			   q->req.payload - conn->filled);
	if (conn->block && conn->in_end < conn->block->room)
		places_of_block(p, conn);
	return true;
}

/* Count @n bytes that came to these places. */
static void recv_count(struct nbd_conn *conn, const struct places *p, size_t n)
{
	uint32_t rest = conn->fill ? conn->fill->req.payload - conn->filled : 0;
	uint32_t mine = (uint32_t)MIN((size_t)rest, n);
	uint32_t block = (uint32_t)MIN(n - mine, (size_t)p->block);

	conn->filled += mine;
	conn->in_end += block;
	conn->ahead.end += (uint32_t)(n - mine - block);
	if (conn->fill && mine == rest)
		fill_end(conn);
}

bool nbd_recv_move(struct nbd_conn *conn)
{
	struct places p;
	size_t n = 0;

	if (!places_find(&p, conn))
		return false;
	for (size_t i = 0; i < p.n; i++)
		n += ahead_copy(&conn->ahead, p.iov[i].iov_base, p.iov[i].iov_len);
	if (!nbd_recv_pending(conn))
		ahead_end(conn);
	recv_count(conn, &p, n);
	return true;
}

int nbd_recv_once(struct nbd_conn *conn)
{
	struct places p;
	struct msghdr msg = { .msg_iov = p.iov };
	ssize_t n;

	if (!places_find(&p, conn))
		return 0;
	msg.msg_iovlen = p.n;
	n = conn->stream ? conn->stream->ops->recv(conn->stream, p.iov, p.n) :
			   recvmsg(conn->watch.fd, &msg, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	conn->moved_ms = clock_now_ms();
	recv_count(conn, &p, (size_t)n);
	return (size_t)n == p.sum || (conn->stream && conn->stream->ops->pending(conn->stream));
}

void nbd_recv_rest(struct nbd_conn *conn)
{
	if (!nbd_recv_pending(conn))
		ahead_end(conn);
	if (!conn->block || nbd_recv_avail(conn) || conn->block->refs > 1)
		return;
	nbd_block_put(conn->server, conn->block);
	conn->block = NULL;
}

void nbd_recv_drop(struct nbd_conn *conn)
{
	struct nbd_server *server = conn->server;

	if (conn->fill)
		nbd_req_put(conn->fill);
	conn->fill = NULL;
	if (conn->block)
		nbd_block_put(server, conn->block);
	conn->block = NULL;
	ahead_end(conn);
	conn->large = 0;
	conn->in_pos = conn->in_end = 0;
	if (!list_empty(&server->starved))
		nbd_turn_feed(server);
}
