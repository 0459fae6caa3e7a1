/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of the socket.  recvmsg() fills blocks, and the memory of a WRITE whose data is to come
 * (conn->fill).
 *
 * A connection owns a reference of the block that the connection fills, only while the block has
 * bytes. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "nbd-priv.h"

#define TAIL 4096u			/* a block with less room is left */

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

/* Make room in a block.  False: no memory now. */
static bool recv_room(struct nbd_conn *conn)
{
	struct nbd_block *old = conn->block, *block = old;
	uint32_t n = nbd_recv_avail(conn);

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
static void recv_count(struct nbd_conn *conn, size_t n)
{
	uint32_t rest = conn->fill ? conn->fill->req.payload - conn->filled : 0;
	uint32_t mine = (uint32_t)MIN((size_t)rest, n);

	conn->moved_ms = clock_now_ms();
	conn->filled += mine;
	conn->in_end += (uint32_t)(n - mine);
	if (conn->fill && mine == rest)
		fill_end(conn);
}

int nbd_recv_once(struct nbd_conn *conn)
{
	struct nbd_request_io *q = conn->fill;
	size_t asked = 0;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov };
	ssize_t n;

	if (!recv_room(conn)) {
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
	recv_count(conn, (size_t)n);
	return (size_t)n == asked;
}

void nbd_recv_rest(struct nbd_conn *conn)
{
	if (!conn->block || nbd_recv_avail(conn) || conn->block->refs > 1)
		return;
	nbd_block_put(conn->server, conn->block);
	conn->block = NULL;
}

void nbd_recv_drop(struct nbd_conn *conn)
{
	if (conn->fill)
		nbd_req_put(conn->fill);
	conn->fill = NULL;
	if (conn->block)
		nbd_block_put(conn->server, conn->block);
	conn->block = NULL;
	conn->in_pos = conn->in_end = 0;
}
