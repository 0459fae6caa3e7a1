/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a connection: haggles, serves, leaves or breaks, is gone.  Owns the socket, the
 * handshake, and the backend's handle, which is closed when no request is in flight.  A failure of
 * the socket or a mistake of the client ends the connection, with one line in the log. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "nbd-priv.h"

#define HANDSHAKE_MS 30000		/* of the client's own time */
#define LEAVE_MS 10000			/* without a byte that the client takes */
#define LINGER_MS 2000			/* for the client to take the replies, and to close */

static struct log_limit end_limit = LOG_LIMIT_INIT(10, 10000);

/* ---- end ---- */

static void conn_free(struct loop_task *task)
{
	struct nbd_conn *conn = container_of(task, struct nbd_conn, end);

	nbd_server_gone(conn);
	free(conn);
}

/* Only callers that still run refer to @conn. */
static void conn_close(struct nbd_conn *conn)
{
	conn->state = NBD_CONN_GONE;
	loop_undefer(&conn->flush);
	loop_timer_cancel(&conn->deadline);
	if (conn->handle)
		conn->server->backend->close(conn->handle);
	free(conn->haggle);
	loop_defer(conn->server->loop, &conn->end);
}

static bool in_flight(const struct nbd_conn *conn)
{
	return conn->nios || conn->ask.state == NBD_ASK_WAITS;
}

/* The loop has let go of the socket. */
static void conn_closed(struct loop_watch *watch)
{
	close(watch->fd);
	watch->fd = -1;
	nbd_conn_check(container_of(watch, struct nbd_conn, watch));
}

static void deadline_set(struct nbd_conn *conn, uint64_t ms)
{
	loop_timer_set(conn->server->loop, &conn->deadline, clock_now_ms() + ms);
}

/* All is answered: the client sees the end of the stream behind the last reply.  Closed at once, a
 * socket with unread input would tell the client of an error instead. */
static void conn_linger(struct nbd_conn *conn)
{
	conn->state = NBD_CONN_LINGERS;
	shutdown(conn->watch.fd, SHUT_WR);
	deadline_set(conn, LINGER_MS);
	nbd_conn_watch(conn);
}

void nbd_conn_check(struct nbd_conn *conn)
{
	if (in_flight(conn))
		return;
	if (conn->state == NBD_CONN_BROKEN && conn->watch.fd < 0)
		conn_close(conn);
	else if (conn->state == NBD_CONN_LEAVES && nbd_out_empty(conn))
		conn_linger(conn);
}

void nbd_conn_leave(struct nbd_conn *conn)
{
	if (conn->state != NBD_CONN_HAGGLES && conn->state != NBD_CONN_SERVES)
		return;
	conn->state = NBD_CONN_LEAVES;
	nbd_in_drop(conn);
	deadline_set(conn, LEAVE_MS);
	loop_before_sleep(conn->server->loop, &conn->flush);
}

void nbd_conn_fail(struct nbd_conn *conn, int r)
{
	/* A client that does not wait for its replies is no fault. */
	nbd_conn_break(conn, r == -EPIPE || r == -ECONNRESET ? NULL : strerror(-r));
}

void nbd_conn_break(struct nbd_conn *conn, const char *why)
{
	struct nbd_request_io *q;

	if (conn->state >= NBD_CONN_BROKEN)
		return;
	if (why)
		log_limited(&end_limit, LOG_LEVEL_WARN, conn->name, "connection ends: %s", why);
	conn->state = NBD_CONN_BROKEN;
	nbd_in_drop(conn);
	nbd_buf_fini(&conn->out_bytes);
	while (!list_empty(&conn->out)) {
		q = list_entry(conn->out.next, struct nbd_request_io, link);
		nbd_io_put(q);
	}
	shutdown(conn->watch.fd, SHUT_RDWR);
	loop_unwatch(&conn->watch);
}

/* The server may take any time for an answer, the client may not take any time to read one. */
static void leave_goes_on(struct nbd_conn *conn)
{
	if (conn->out_state == NBD_OUT_FULL && clock_now_ms() - conn->moved_ms >= LEAVE_MS)
		nbd_conn_break(conn, "its replies are not read: no byte for 10 s");
	else
		deadline_set(conn, LEAVE_MS);
}

static void deadline_over(struct loop_timer *timer)
{
	struct nbd_conn *conn = container_of(timer, struct nbd_conn, deadline);

	if (conn->state == NBD_CONN_HAGGLES)
		nbd_conn_break(conn, "the client's part of the handshake has taken 30 s");
	else if (conn->state == NBD_CONN_LEAVES)
		leave_goes_on(conn);
	else
		nbd_conn_break(conn, NULL);
}

/* Drop input until the client closes. */
static void linger_ready(struct nbd_conn *conn)
{
	char bytes[2048];
	ssize_t n = recv(conn->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		nbd_conn_break(conn, NULL);
}

/* ---- readiness ---- */

void nbd_conn_watch(struct nbd_conn *conn)
{
	bool reads = conn->state == NBD_CONN_LINGERS ||
		     ((conn->state == NBD_CONN_HAGGLES || conn->state == NBD_CONN_SERVES) &&
		      conn->pause == NBD_PAUSE_NONE && conn->ask.state == NBD_ASK_NONE);
	bool full = conn->out_state == NBD_OUT_FULL && conn->state < NBD_CONN_LINGERS;

	loop_watch_events(&conn->watch, (short)((reads ? POLLIN : 0) | (full ? POLLOUT : 0)));
}

/* The loop tells of a socket's end without being asked, again and again.  Replies are lost then. */
static void look_for_end(struct nbd_conn *conn)
{
	struct pollfd pfd = { .fd = conn->watch.fd };

	if (poll(&pfd, 1, 0) > 0)
		nbd_conn_break(conn, NULL);
}

static bool conn_ready(struct loop_watch *watch)
{
	struct nbd_conn *conn = container_of(watch, struct nbd_conn, watch);

	if (conn->out_state == NBD_OUT_FULL)
		nbd_out_flush(conn);
	if (conn->state == NBD_CONN_LINGERS)
		linger_ready(conn);
	else if (conn->watch.events & POLLIN)
		nbd_in_run(conn);
	else
		look_for_end(conn);
	return false;
}

static void conn_flush(struct loop_task *task)
{
	nbd_out_flush(container_of(task, struct nbd_conn, flush));
}

/* ---- handshake ---- */

static struct nbd_conn *to_conn(struct nbd_ask *ask)
{
	return container_of(ask, struct nbd_conn, ask);
}

static void conn_serve(struct nbd_conn *conn)
{
	conn->headers = conn->haggle->headers;
	conn->status = nbd_haggle_status(conn->haggle) ? NBD_STATUS_CHOSEN : NBD_STATUS_NONE;
	free(conn->haggle);
	conn->haggle = NULL;
	conn->state = NBD_CONN_SERVES;
}

/* The backend is to answer: until then the time is not the client's. */
static void ask_begin(struct nbd_conn *conn)
{
	uint64_t now_ms = clock_now_ms();

	conn->ask.state = NBD_ASK_WAITS;
	conn->ask.left_ms = conn->deadline.at_ms > now_ms ? conn->deadline.at_ms - now_ms : 0;
	loop_timer_cancel(&conn->deadline);
}

void nbd_conn_haggled(struct nbd_conn *conn)
{
	const struct nbd_server *server = conn->server;

	switch (conn->haggle->state) {
	case NBD_HAGGLE_LISTS:
		ask_begin(conn);
		server->backend->list(server->arg, &conn->ask);
		break;
	case NBD_HAGGLE_LOOKS:
	case NBD_HAGGLE_OPENS:
		ask_begin(conn);
		server->backend->open(server->arg, &conn->ask, conn->haggle->name);
		break;
	case NBD_HAGGLE_LEFT:
		nbd_conn_leave(conn);
		break;
	default:
		nbd_out_bytes(conn);
		break;
	}
}

/* The backend has answered: the haggling goes on. */
static void ask_over(struct nbd_conn *conn)
{
	conn->ask.state = NBD_ASK_NONE;
	if (conn->state == NBD_CONN_HAGGLES)
		deadline_set(conn, conn->ask.left_ms);
	nbd_out_bytes(conn);
	if (conn->state < NBD_CONN_LEAVES && conn->pause == NBD_PAUSE_NONE) {
		conn->pause = NBD_PAUSE_TURN;
		nbd_server_queue(conn);
	}
}

void nbd_ask_name(struct nbd_ask *ask, const char *name)
{
	struct nbd_conn *conn = to_conn(ask);

	if (conn->state == NBD_CONN_HAGGLES)
		nbd_haggle_name(conn->haggle, name, &conn->out_bytes);
}

void nbd_ask_listed(struct nbd_ask *ask, int status, const char *why)
{
	struct nbd_conn *conn = to_conn(ask);

	if (conn->state == NBD_CONN_HAGGLES)
		nbd_haggle_listed(conn->haggle, status, why, &conn->out_bytes);
	ask_over(conn);
}

void nbd_ask_opened(struct nbd_ask *ask, int status, const char *why, void *handle)
{
	struct nbd_conn *conn = to_conn(ask);
	const struct nbd_backend *backend = conn->server->backend;
	bool wanted = conn->state == NBD_CONN_HAGGLES;

	if (status == 0 && wanted)
		backend->info(handle, &conn->export);
	if (wanted && nbd_haggle_opened(conn->haggle, status, why, &conn->export,
					&conn->out_bytes) < 0) {
		nbd_conn_break(conn, conn->haggle->why);
		wanted = false;
	}
	if (wanted && conn->haggle->state == NBD_HAGGLE_SERVES) {
		conn->handle = handle;
		conn_serve(conn);
	} else if (status == 0) {
		backend->close(handle);
	}
	ask_over(conn);
}

/* ---- begin ---- */

int nbd_conn_create(struct nbd_server *server, int fd, const char *name)
{
	struct nbd_conn *conn = calloc(1, sizeof(*conn));
	int r = -ENOMEM;

	if (!conn)
		goto err_close;
	conn->haggle = malloc(sizeof(*conn->haggle));
	if (!conn->haggle)
		goto err_free;
	conn->server = server;
	snprintf(conn->name, sizeof(conn->name), "%s", name);
	list_init(&conn->link);
	list_init(&conn->turn);
	list_init(&conn->out);
	loop_task_init(&conn->flush, conn_flush);
	loop_task_init(&conn->end, conn_free);
	loop_timer_init(&conn->deadline, deadline_over);
	conn->in_want = NBD_BLOCK_ROOM;
	conn->moved_ms = clock_now_ms();
	conn->watch = (struct loop_watch){ .fd = fd, .events = POLLIN, .ready = conn_ready,
					   .closed = conn_closed };
	r = loop_watch(server->loop, &conn->watch);
	if (r < 0)
		goto err_haggle;
	deadline_set(conn, HANDSHAKE_MS);
	nbd_haggle_begin(conn->haggle, &conn->out_bytes);
	list_add_tail(&server->conns, &conn->link);
	server->nconns++;
	nbd_out_bytes(conn);
	return 0;

err_haggle:
	free(conn->haggle);
err_free:
	free(conn);
err_close:
	close(fd);
	return r;
}
