/* SPDX-License-Identifier: BSD-3-Clause */
/* Input from the socket.  recvmsg() fills blocks, and requests are parsed in place.  A WRITE with
 * all of its data in one block uses the data there.  The data of a larger WRITE goes straight from
 * the socket into the memory of its request, but for the few bytes that came with the header.
 *
 * A connection owns a reference of the block that the connection fills, only while the block has
 * bytes. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "nbd-priv.h"

#define IN_PLACE_MAX (32u << 10)	/* bytes of a WRITE that waits in a block to be whole */
#define SMALL 4096u			/* recvmsg() asks for no more in front of a large WRITE */
#define STATUS_PAYLOAD_MAX 64u		/* bytes; a longer payload names unknown contexts */
#define TAIL 4096u			/* a block with less room is left */

static uint32_t in_avail(const struct nbd_conn *conn)
{
	return conn->in_end - conn->in_pos;
}

void nbd_in_drop(struct nbd_conn *conn)
{
	if (conn->fill)
		nbd_req_put(conn->fill);
	if (conn->wrong)
		nbd_req_put(conn->wrong);
	conn->fill = conn->wrong = NULL;
	if (conn->block)
		nbd_block_put(conn->server, conn->block);
	conn->block = NULL;
	conn->in_pos = conn->in_end = conn->drop = 0;
	conn->pause = NBD_PAUSE_NONE;
	list_del(&conn->turn);
}

/* ---- requests ---- */

/* Drop the bytes of the payload of a wrong request.  The reply follows behind the last byte. */
static void drop_payload(struct nbd_conn *conn)
{
	uint32_t n = MIN(conn->drop, in_avail(conn));
	struct nbd_request_io *q = conn->wrong;

	conn->drop -= n;
	conn->in_pos += n;
	if (!q || conn->drop)
		return;
	conn->wrong = NULL;
	nbd_io_done(&q->io, q->status);
}

/* The rest of @q's data comes from the socket next. */
static void fill_begin(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t have)
{
	conn->fill = q;
	conn->filled = have;
}

static void fill_end(struct nbd_conn *conn)
{
	struct nbd_request_io *q = conn->fill;

	conn->fill = NULL;
	nbd_io_begin(q);
}

/* Wait for the rest of a request: the request is taken anew when the rest has come. */
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

	conn->in_want = len > IN_PLACE_MAX ? SMALL : (uint32_t)NBD_BLOCK_ROOM;
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
	if (!nbd_req_memory(q, len))
		return take_later(q);
	have = MIN(have, len);
	memcpy(q->piece, data, have);
	conn->in_pos += size + have;
	fill_begin(conn, q, have);
	if (have == len)
		fill_end(conn);
	return true;
}

/* Take a request with the error @r: its payload is dropped. */
static bool take_wrong(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t size, int r)
{
	conn->in_pos += size;
	conn->drop = q->req.payload;
	q->status = r;
	conn->wrong = q;
	drop_payload(conn);
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
		*r = -EINVAL;
		return true;
	}
	if (have < q->req.payload)
		return false;
	*r = nbd_request_payload(&q->req, conn->block->bytes + conn->in_pos + size);
	return true;
}

/* Take @q, with a header of @size bytes at in_pos. */
static bool in_take_bytes(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t size)
{
	uint32_t have = in_avail(conn) - size;
	size_t memory;
	int r = 0;

	if (q->req.payload && !take_status_payload(conn, q, size, have, &r))
		return take_later(q);
	if (r == 0)
		r = nbd_io_check(q);
	if (r < 0)
		return take_wrong(conn, q, size, r);
	if (q->req.type == NBD_CMD_WRITE)
		return take_write(conn, q, size, have);
	conn->in_want = NBD_BLOCK_ROOM;
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

	drop_payload(conn);
	if (conn->fill || conn->wrong || in_avail(conn) < size)
		return false;
	if (nbd_request_decode(&req, conn->headers, conn->block->bytes + conn->in_pos, &why) < 0) {
		conn->ops->failed(conn, why);
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
	struct nbd_haggle *h = conn->haggle;
	ssize_t n = 0;

	if (in_avail(conn))
		n = nbd_haggle_step(h, conn->block->bytes + conn->in_pos, in_avail(conn),
				    &conn->out_bytes);
	if (n < 0) {
		conn->ops->failed(conn, h->why);
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
	case NBD_CONN_HAGGLES:
		return conn->ask.state == NBD_ASK_NONE && take_option(conn);
	case NBD_CONN_SERVES:
		return take_request(conn);
	default:
		return false;
	}
}

/* ---- the socket ---- */

/* Make room in a block.  False: no memory now. */
static bool in_room(struct nbd_conn *conn)
{
	struct nbd_block *old = conn->block, *block = old;
	uint32_t n = in_avail(conn);

	if (old && old->refs == 1 && !n)
		conn->in_pos = conn->in_end = 0;
	if (old && NBD_BLOCK_ROOM - conn->in_end >= TAIL)
		return true;
	/* A request that is not whole stays in its block if the rest fits there. */
	if (old && old->refs > 1 && n >= TAIL)
		return conn->in_end < NBD_BLOCK_ROOM;
	if (!old || old->refs > 1)
		block = nbd_block_get(conn);
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

/* Count @n bytes that came. */
static void in_received(struct nbd_conn *conn, size_t n)
{
	uint32_t rest = conn->fill ? conn->fill->req.payload - conn->filled : 0;
	uint32_t mine = (uint32_t)MIN((size_t)rest, n);

	conn->moved_ms = clock_now_ms();
	conn->filled += mine;
	conn->in_end += (uint32_t)(n - mine);
	if (conn->fill && mine == rest)
		fill_end(conn);
}

/* Receive once.  1: the socket may have more; 0: no more; -errno, -EPIPE for the end. */
static int in_receive(struct nbd_conn *conn)
{
	struct nbd_request_io *q = conn->fill;
	size_t asked = 0;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov };
	ssize_t n;

	if (!in_room(conn)) {
		if (!q)
			return 0;
		conn->pause = NBD_PAUSE_NONE;	/* the data has its memory */
	}
	if (q)
		iov[msg.msg_iovlen++] = (struct iovec){ (uint8_t *)q->piece + conn->filled,
							q->req.payload - conn->filled };
	if (conn->block && conn->in_end < NBD_BLOCK_ROOM) {
		size_t room = NBD_BLOCK_ROOM - conn->in_end, want = conn->in_want;

		want = MIN(want, room);
		iov[msg.msg_iovlen++] = (struct iovec){ conn->block->bytes + conn->in_end, want };
	}
	for (size_t i = 0; i < msg.msg_iovlen; i++)
		asked += iov[i].iov_len;
	n = recvmsg(conn->watch.fd, &msg, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	in_received(conn, (size_t)n);
	return (size_t)n == asked;
}

static bool in_reads(const struct nbd_conn *conn)
{
	return conn->pause == NBD_PAUSE_NONE && conn->ask.state == NBD_ASK_NONE &&
	       (conn->state == NBD_CONN_HAGGLES || conn->state == NBD_CONN_SERVES);
}

/* Give the block back if all of its bytes are parsed and no WRITE uses them. */
static void in_rest(struct nbd_conn *conn)
{
	if (!conn->block || in_avail(conn) || conn->block->refs > 1)
		return;
	nbd_block_put(conn->server, conn->block);
	conn->block = NULL;
}

int nbd_in_run(struct nbd_conn *conn)
{
	unsigned left = NBD_TURN;
	int more = 1;

	while (in_reads(conn)) {
		while (left && in_take(conn))
			left--;
		if (!left && in_reads(conn))
			conn->pause = NBD_PAUSE_TURN;
		if (!more || !in_reads(conn))
			break;
		more = in_receive(conn);
		if (more < 0)
			return more;
		if (!more && !in_avail(conn))
			break;
	}
	if (conn->pause == NBD_PAUSE_TURN || conn->pause == NBD_PAUSE_MEMORY)
		nbd_turn_queue(conn);
	in_rest(conn);
	return 0;
}

bool nbd_in_halfway(const struct nbd_conn *conn)
{
	return conn->fill || conn->wrong || in_avail(conn);
}
