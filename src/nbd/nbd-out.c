/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies, in the order in which requests end.  The replies of one pass of the loop leave in one
 * sendmsg() before the loop sleeps, each from the memory of its data.  The loop watches a full
 * socket; such a connection soon has as much in flight as allowed, and is not read any more. */
#include <errno.h>
#include <sys/socket.h>

#include "clock.h"
#include "nbd-priv.h"

#define IOV_MAX_SENT 128		/* pieces of one sendmsg() */

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

void nbd_out_reply(struct nbd_request_io *q)
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
