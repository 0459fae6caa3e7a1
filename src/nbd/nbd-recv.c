/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of the socket.  recvmsg() fills the memory of a WRITE whose data is to come (FILL), blocks,
 * and the memory of a WRITE that is expected (nbd-ahead.c), in this order.  The table says what the
 * next bytes are.
 *
 * A connection owns a reference of the block that the connection fills, only while the block has
 * bytes. */
#define FSM_PREFIX NBD_INPUT_

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "nbd-priv.h"

#define TAIL 4096u			/* a block with less room is left */

/* ---- what comes next ---- */

static struct nbd_request_io *input_take(struct nbd_conn *conn)
{
	struct nbd_request_io *q = conn->input.q;

	conn->input.q = NULL;
	conn->input.left = 0;
	return q;
}

static void begin_write(void *object)
{
	nbd_io_begin(input_take(object));
}

static void answer_wrong(void *object)
{
	struct nbd_request_io *q = input_take(object);

	nbd_io_done(&q->io, q->status);
}

static void give_up(void *object)
{
	nbd_req_put(input_take(object));
}

static const char *const states[] = { "header", "fill", "wrong" };
static const char *const events[] = { "write", "wrong", "last-byte", "drop" };

static const struct fsm_row rows[] = {
	ROW(IN(HEADER), WRITE, FILL, NULL),
	ROW(IN(HEADER), WRONG, WRONG, NULL),
	ROW(IN(FILL), LAST_BYTE, HEADER, begin_write),
	ROW(IN(WRONG), LAST_BYTE, HEADER, answer_wrong),
	ROW(IN(FILL) | IN(WRONG), DROP, HEADER, give_up),
	STAY(IN(HEADER), DROP),
};

const struct fsm nbd_input_fsm = FSM("input", rows, states, events);

static void input_event(struct nbd_conn *conn, enum nbd_input_event event)
{
	fsm_run(&nbd_input_fsm, NULL, &conn->input.state, event, conn);
}

/* Of the payload @n bytes came. */
static void input_count(struct nbd_conn *conn, uint32_t n)
{
	assert(n <= conn->input.left);
	conn->input.left -= n;
	if (!conn->input.left)
		input_event(conn, NBD_INPUT_EV_LAST_BYTE);
}

static void input_begin(struct nbd_conn *conn, struct nbd_request_io *q,
			enum nbd_input_event event, uint32_t have)
{
	input_event(conn, event);
	conn->input.q = q;
	conn->input.left = q->req.payload;
	input_count(conn, have);
}

void nbd_recv_fill(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t have)
{
	input_begin(conn, q, NBD_INPUT_EV_WRITE, have);
}

void nbd_recv_wrong(struct nbd_conn *conn, struct nbd_request_io *q, int status)
{
	q->status = status;
	input_begin(conn, q, NBD_INPUT_EV_WRONG, 0);
}

void nbd_recv_skip(struct nbd_conn *conn)
{
	uint32_t n = MIN(conn->input.left, nbd_recv_avail(conn));

	conn->in_pos += n;
	input_count(conn, n);
}

/* ---- blocks ---- */

/* Is @block, with @n bytes that came, a small one that is too small for what comes? */
static bool is_outgrown(const struct nbd_conn *conn, const struct nbd_block *block, uint32_t n)
{
	return block->room < NBD_BLOCK_ROOM &&
	       (conn->state != NBD_CONN_NEGOTIATES || n == block->room);
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

/* ---- receive ---- */

/* The places of bytes to come, in their order. */
struct places {
	struct iovec iov[4];
	size_t n, sum;
	size_t data;			/* bytes of the place in a WRITE's memory */
	uint32_t block;			/* of the block's place */
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
	bool ahead = !nbd_ahead_pending(conn) && have < head && nbd_ahead_expect(conn);

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
	struct nbd_request_io *q = conn->input.state == NBD_INPUT_FILL ? conn->input.q : NULL;

	*p = (struct places){ 0 };
	if (!recv_room(conn)) {
		if (!q)
			return false;
		conn->pause = NBD_PAUSE_NONE;	/* the data has its memory */
	}
	if (q)
		places_add(p, (uint8_t *)q->piece + q->req.payload - conn->input.left,
			   conn->input.left);
	p->data = p->sum;
	if (conn->block && conn->in_end < conn->block->room)
		places_of_block(p, conn);
	return true;
}

/* Count @n bytes that came to these places. */
static void recv_count(struct nbd_conn *conn, const struct places *p, size_t n)
{
	uint32_t data = (uint32_t)MIN(p->data, n);
	uint32_t block = (uint32_t)MIN(n - data, (size_t)p->block);

	assert(n <= p->sum);
	conn->in_end += block;
	nbd_ahead_came(conn, n - data - block);
	/* ORDER: last, because the connection may end in the request that begins. */
	if (data)
		input_count(conn, data);
}

bool nbd_recv_move(struct nbd_conn *conn)
{
	struct places p;

	if (!places_find(&p, conn))
		return false;
	recv_count(conn, &p, nbd_ahead_move(conn, p.iov, p.n));
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
	nbd_ahead_rest(conn);
	if (!conn->block || nbd_recv_avail(conn) || conn->block->refs > 1)
		return;
	nbd_block_put(conn->server, conn->block);
	conn->block = NULL;
}

void nbd_recv_drop(struct nbd_conn *conn)
{
	struct nbd_server *server = conn->server;

	input_event(conn, NBD_INPUT_EV_DROP);
	if (conn->block)
		nbd_block_put(server, conn->block);
	conn->block = NULL;
	nbd_ahead_drop(conn);
	conn->large = 0;
	conn->in_pos = conn->in_end = 0;
	if (!list_empty(&server->starved))
		nbd_turn_feed(server);
}
