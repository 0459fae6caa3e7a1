/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and their memory.  A request is taken for its header and given back after its reply was
 * sent.  A request owns a piece of memory, or a reference of the block of input with its data, or
 * no memory.  A failure is a reply with an error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nbd-priv.h"
#include "util.h"

#define IOS_MAX 16384u			/* of all connections */

static struct nbd_request_io *to_request(struct nbd_io *io)
{
	return container_of(io, struct nbd_request_io, io);
}

/* ---- memory ---- */

struct nbd_request_io *nbd_io_get(struct nbd_conn *conn, const struct nbd_request *req)
{
	struct nbd_server *server = conn->server;
	struct nbd_request_io *q = NULL;

	if (conn->nios == NBD_CONN_IOS) {
		conn->pause = NBD_PAUSE_FULL;
		return NULL;
	}
	if (server->nios < IOS_MAX)
		q = list_pop_entry(&server->ios, struct nbd_request_io, link);
	if (!q && server->nios < IOS_MAX)
		q = malloc(align_up(sizeof(*q) + server->backend->io_size, 16));
	if (!q) {
		conn->pause = NBD_PAUSE_MEMORY;
		return NULL;
	}
	*q = (struct nbd_request_io){
		.io = { .cmd = req->type, .flags = req->flags, .handle = conn->handle,
			.off = req->off, .len = req->len },
		.conn = conn,
		.req = *req,
	};
	q->io.own = q->own;
	list_init(&q->link);
	conn->nios++;
	server->nios++;
	return q;
}

bool nbd_io_memory(struct nbd_request_io *q, size_t len)
{
	struct nbd_conn *conn = q->conn;
	size_t size = nbd_mem_size(len);

	if (conn->memory && conn->memory + size > NBD_CONN_MEMORY) {
		conn->pause = NBD_PAUSE_FULL;
		return false;
	}
	q->piece = nbd_mem_get(&conn->server->mem, len);
	if (!q->piece) {
		conn->pause = NBD_PAUSE_MEMORY;
		return false;
	}
	q->piece_len = len;
	q->io.buf = q->piece;
	conn->memory += size;
	return true;
}

struct nbd_block *nbd_block_get(struct nbd_conn *conn)
{
	struct nbd_block *block = nbd_mem_get(&conn->server->mem, NBD_BLOCK);

	if (block)
		block->refs = 1;
	else
		conn->pause = NBD_PAUSE_MEMORY;
	return block;
}

void nbd_block_put(struct nbd_server *server, struct nbd_block *block)
{
	if (--block->refs == 0)
		nbd_mem_put(&server->mem, block, NBD_BLOCK);
}

void nbd_io_unget(struct nbd_request_io *q)
{
	struct nbd_conn *conn = q->conn;
	struct nbd_server *server = conn->server;

	if (q->piece) {
		conn->memory -= nbd_mem_size(q->piece_len);
		nbd_mem_put(&server->mem, q->piece, q->piece_len);
	}
	if (q->block)
		nbd_block_put(server, q->block);
	conn->nios--;
	server->nios--;
	list_del(&q->link);
	list_add_head(&server->ios, &q->link);
}

void nbd_io_put(struct nbd_request_io *q)
{
	struct nbd_conn *conn = q->conn;
	struct nbd_server *server = conn->server;

	nbd_io_unget(q);
	if (conn->pause == NBD_PAUSE_FULL) {
		conn->pause = NBD_PAUSE_TURN;
		nbd_server_queue(conn);
	}
	if (!list_empty(&server->starved))
		nbd_server_feed(server);
}

/* ---- from the request to its reply ---- */

void nbd_io_done(struct nbd_io *io, int status)
{
	struct nbd_request_io *q = to_request(io);

	q->status = status;
	if (q->req.type == NBD_CMD_READ && status == 0) {
		q->data = q->io.buf;
		q->data_len = (uint32_t)q->io.len;
	} else if (q->req.type == NBD_CMD_BLOCK_STATUS && status == 0) {
		q->data = q->extents.buf;
		q->data_len = nbd_status_end(&q->extents);
		if (!q->data_len)
			q->status = -EIO;	/* the backend has told of no extent */
	}
	nbd_out_reply(q);
}

bool nbd_io_extent(struct nbd_io *io, uint64_t len, uint32_t flags)
{
	return nbd_status_add(&to_request(io)->extents, len, flags);
}

/* With REQ_ONE the reply has room for one extent. */
static void begin_status(struct nbd_request_io *q)
{
	bool one = q->req.flags & NBD_CMD_FLAG_REQ_ONE;
	size_t room = NBD_STATUS_ROOM;

	if (one)
		room = q->conn->headers == NBD_HEADERS_EXTENDED ?
			sizeof(struct nbd_msg_status_ext) + 16 : sizeof(struct nbd_msg_status) + 8;
	nbd_status_begin(&q->extents, q->conn->headers, (uint8_t *)q->piece + NBD_IO_SCRATCH, room);
}

int nbd_io_check(const struct nbd_request_io *q)
{
	const struct nbd_conn *conn = q->conn;

	return nbd_request_check(&q->req, conn->headers, &conn->export,
				 conn->status == NBD_STATUS_CHOSEN);
}

void nbd_io_begin(struct nbd_request_io *q)
{
	if (q->req.type == NBD_CMD_BLOCK_STATUS)
		begin_status(q);
	else if (q->req.type == NBD_CMD_CACHE)
		q->io.cmd = NBD_CMD_READ;
	q->conn->server->backend->start(&q->io);
}
