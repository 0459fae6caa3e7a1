/* SPDX-License-Identifier: BSD-3-Clause */
/* A request from its header to the end of its reply: checked, carried out by the backend,
 * answered.
 *
 * The happy path: nbd_io_check() lets it pass, nbd_io_begin() hands it to the backend,
 * nbd_io_done() queues its reply, and nbd_out_flush() sends the reply before the loop sleeps.
 * Possible failures: a wrong request, or an error of the backend, is a reply with an error; a
 * broken connection drops replies; while the server stops, an error that the next server may not
 * have is not sent. */
#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "clock.h"
#include "nbd-priv.h"

#define IOV_MAX_SENT 128		/* pieces of one sendmsg() */
#define DROPS 64u			/* recv() in one look: another client's turn comes */

/* ---- output ----
 * Replies, in the order in which requests end.  The replies of one pass of the loop leave in one
 * sendmsg() before the loop sleeps, each from the memory of its data.  The loop watches a full
 * socket; such a connection soon has as much in flight as allowed, and is not read any more. */

struct gather {
	struct iovec iov[IOV_MAX_SENT];
	unsigned n;
	size_t skip;			/* bytes of the first pieces that were sent before */
};

static void gather_add(struct gather *g, const void *bytes, size_t len)
{
	size_t skip = MIN(g->skip, len);

	g->skip -= skip;
	if (len > skip)
		g->iov[g->n++] = (struct iovec){ (uint8_t *)bytes + skip, len - skip };
}

static void gather_all(struct gather *g, struct nbd_conn *conn)
{
	struct nbd_request_io *q;

	g->n = 0;
	g->skip = conn->sent;
	gather_add(g, conn->out_bytes.mem, conn->out_bytes.len);
	list_for_each(q, &conn->out, link) {
		if (g->n + 2 > IOV_MAX_SENT)
			break;
		gather_add(g, q->head, q->head_len);
		gather_add(g, q->data, q->data_len);
	}
}

/* Count @n bytes that were sent; a reply that was sent whole is over. */
static void out_sent(struct nbd_conn *conn, size_t n)
{
	struct nbd_request_io *q;

	conn->sent += n;
	if (conn->out_bytes.len) {
		if (conn->sent < conn->out_bytes.len)
			return;
		conn->sent -= conn->out_bytes.len;
		nbd_buf_fini(&conn->out_bytes);
	}
	while (!list_empty(&conn->out)) {
		q = list_entry(conn->out.next, struct nbd_request_io, link);
		if (conn->sent < q->head_len + q->data_len)
			break;
		conn->sent -= q->head_len + q->data_len;
		if (q->io.error == NBD_IO_LASTS && conn->server->backend->told)
			conn->server->backend->told(q->io.handle);
		nbd_req_put(q);
	}
}

/* Send once.  1: call again; 0: the socket is full; -errno. */
static int send_some(struct nbd_conn *conn)
{
	struct gather g;
	struct msghdr msg = { .msg_iov = g.iov };
	ssize_t n;

	gather_all(&g, conn);
	msg.msg_iovlen = g.n;
	n = conn->stream ? conn->stream->ops->send(conn->stream, g.iov, g.n) :
			   sendmsg(conn->watch.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	conn->moved_ms = clock_now_ms();
	out_sent(conn, (size_t)n);
	return 1;
}

/* Have the socket take what waits in the stream.  As send_some(). */
static int flush_stream(struct nbd_conn *conn)
{
	int left = conn->stream ? conn->stream->ops->flush(conn->stream) : 0;

	if (left < 0)
		return left;
	if (left != conn->unsent)
		conn->moved_ms = clock_now_ms();
	conn->unsent = left;
	return !left;
}

int nbd_out_flush(struct nbd_conn *conn)
{
	int r = 1, last;

	while (r > 0 && (!list_empty(&conn->out) || conn->out_bytes.len))
		r = send_some(conn);
	last = r < 0 ? r : flush_stream(conn);
	r = MIN(r, last);
	conn->out_state = r == 0 ? NBD_OUT_FULL : NBD_OUT_READY;
	return MIN(r, 0);
}

void nbd_out_drop(struct nbd_conn *conn)
{
	struct nbd_request_io *q;

	nbd_buf_fini(&conn->out_bytes);
	conn->unsent = 0;
	while (!list_empty(&conn->out)) {
		q = list_entry(conn->out.next, struct nbd_request_io, link);
		nbd_req_put(q);
	}
}

/* Queue the reply to @q, which has ended, to be sent before the loop sleeps. */
static void out_reply(struct nbd_request_io *q)
{
	struct nbd_conn *conn = q->conn;

	q->head_len = (uint32_t)nbd_reply_encode(q->head, conn->headers, &q->req, q->status,
						 q->data_len);
	list_add_tail(&conn->out, &q->link);
	loop_before_sleep(conn->server->loop, &conn->flush);
}

void nbd_out_bytes(struct nbd_conn *conn)
{
	loop_before_sleep(conn->server->loop, &conn->flush);
}

/* ---- a socket whose output is over ---- A socket with an error is over.  A socket that is
 * closed with unread input tells the client of an error instead of the end of the stream.  Over
 * TCP that error is a reset, which also ends the delivery of bytes that the client's machine has
 * not acknowledged.  The bytes in a unix socket are the client's already. */

/* 1: input was dropped; 0: there was none; -1: none will come. */
static int drop_input(int fd)
{
	static _Thread_local char bytes[16 << 10];
	ssize_t n = 1;
	int dropped = 0;

	for (unsigned i = 0; i < DROPS && n > 0; i++) {
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0)
			dropped = 1;
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)) ? dropped : -1;
}

/* Of a unix socket SIOCOUTQ tells what the client has not read, which a close leaves alone. */
static bool is_output_on_its_way(int fd)
{
	socklen_t len = sizeof(int);
	int domain = AF_UNIX, unacked = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 || domain == AF_UNIX)
		return false;
	return ioctl(fd, SIOCOUTQ, &unacked) == 0 && unacked > 0;
}

enum nbd_linger nbd_linger_look(int fd)
{
	int input = drop_input(fd);

	if (input < 0)
		return NBD_LINGER_OVER;
	if (input)
		return NBD_LINGER_INPUT;
	return is_output_on_its_way(fd) ? NBD_LINGER_OUTPUT : NBD_LINGER_OVER;
}

/* ---- requests ---- */

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
		out_reply(q);
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
