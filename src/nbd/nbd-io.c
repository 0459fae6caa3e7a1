/* SPDX-License-Identifier: BSD-3-Clause */
/* A request between its header and its reply: checked, carried out by the backend, answered.  A
 * failure is a reply with an error. */
#include <errno.h>
#include <string.h>

#include "nbd-priv.h"

static struct nbd_request_io *to_request(struct nbd_io *io)
{
	return container_of(io, struct nbd_request_io, io);
}

/* While the server stops, no error is sent that the next server may not have: the request ends
 * without a reply, and its connection, which leaves, is closed behind the others' replies.  These
 * may be the only word of a loss. */
bool nbd_io_error_is_sent(const struct nbd_io *io)
{
	const struct nbd_request_io *q = container_of(io, struct nbd_request_io, io);

	return q->conn->server->state != NBD_SERVER_STOPS || io->error != NBD_IO_MAY_PASS;
}

bool nbd_io_may_go_on(const struct nbd_io *io)
{
	const struct nbd_conn *conn = container_of(io, struct nbd_request_io, io)->conn;

	return conn->state != NBD_CONN_BROKEN && conn->server->state == NBD_SERVER_RUNS;
}

static void io_count(struct nbd_counts *counts, const struct nbd_request_io *q)
{
	uint64_t bytes = q->status == 0 ? q->req.len : 0;

	switch (q->req.type) {
	case NBD_CMD_READ:
		counts->reads++;
		counts->read_bytes += bytes;
		break;
	case NBD_CMD_WRITE:
		counts->writes++;
		counts->write_bytes += bytes;
		break;
	default:
		counts->others++;
		break;
	}
}

/* Give the reply, an error, a text for people. */
static void add_text(struct nbd_request_io *q)
{
	const char *text = q->why ? q->why : nbd_error_text(nbd_error_of(q->status));

	if (q->io.error == NBD_IO_LASTS)
		text = "the server may have lost earlier writes";
	if (!nbd_reply_is_chunk(q->conn->headers, &q->req))
		return;
	q->data = text;
	q->data_len = (uint32_t)strlen(text);
}

static void io_answer(struct nbd_request_io *q)
{
	struct nbd_conn *conn = q->conn;
	bool sent = q->status == 0 || nbd_io_error_is_sent(&q->io);

	io_count(&conn->counts, q);
	if (conn->state != NBD_CONN_BROKEN && sent) {
		if (q->status < 0)
			add_text(q);
		nbd_out_reply(q);
		return;
	}
	conn->server->unanswered += conn->state != NBD_CONN_BROKEN;
	nbd_req_put(q);
	conn->ops->ended(conn);
}

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
			q->status = -EIO;	/* the backend knows of no extent */
	}
	io_answer(q);
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

int nbd_io_check(struct nbd_request_io *q)
{
	const struct nbd_conn *conn = q->conn;
	int r = nbd_request_check(&q->req, conn->headers, &conn->export,
				  conn->status == NBD_STATUS_CHOSEN, &q->why);

	if (r == 0)
		q->why = NULL;
	return r;
}

void nbd_io_begin(struct nbd_request_io *q)
{
	if (q->req.type == NBD_CMD_BLOCK_STATUS)
		begin_status(q);
	else if (q->req.type == NBD_CMD_CACHE)
		q->io.cmd = NBD_CMD_READ;
	q->conn->server->backend->start(&q->io);
}
