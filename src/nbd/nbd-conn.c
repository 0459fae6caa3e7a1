/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a connection: negotiates, serves, leaves or breaks, is gone.
 *
 * The happy path: nbd_conn_create() sends the greeting; conn_run() takes options, then requests
 * (nbd-in.c); if the client asks for TLS, conn_part() leaves the socket to the handshake, and
 * nbd_tls_done() comes back with a stream; nbd_conn_leave() ends the input, all that is in flight
 * is answered, and conn_linger() waits until the client has the replies; conn_close() closes the
 * backend's handle when no request is in flight.
 *
 * Possible failures: the socket fails, the client breaks the protocol, takes too long to negotiate,
 * or reads no reply while it leaves: nbd_conn_break(), with one line in the log; a client that only
 * closes the connection has none. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "nbd-priv.h"

#define HANDSHAKE_MS 30000		/* of the client's own time; again when TLS begins */
#define STARTTLS_MS 10000		/* where TLS is required: to ask, and take the answer */
#define LEAVE_MS 10000			/* without a byte that the client takes */
#define LINGER_MS 2000			/* for the client's machine to take the replies */
#define LINGER_LOOK_MS 10		/* until the next look whether it has */

/* Of their own, so that a flood of one kind does not hide the other. */
static struct log_limit end_limit = LOG_LIMIT_INIT(10, 10000);
static struct log_limit room_limit = LOG_LIMIT_INIT(4, 10000);

/* Watch the socket for the events that the connection waits for. */
static void conn_watch(struct nbd_conn *conn)
{
	bool full = conn->out_state == NBD_OUT_FULL && conn->state < NBD_CONN_LINGERS;

	loop_watch_events(&conn->watch,
			  (short)((nbd_in_reads(conn) ? POLLIN : 0) | (full ? POLLOUT : 0)));
}

/* ---- end ---- */

static void conn_free(struct loop_task *task)
{
	struct nbd_conn *conn = container_of(task, struct nbd_conn, end);
	struct nbd_server *server = conn->server;

	list_del(&conn->link);
	free(conn);
	if (--server->nconns == 0 && server->state == NBD_SERVER_STOPS && server->stopped)
		server->stopped(server->stopped_arg);
}

/* Only callers that still run refer to @conn. */
static void conn_close(struct nbd_conn *conn)
{
	conn->state = NBD_CONN_GONE;
	loop_undefer(&conn->flush);
	loop_timer_cancel(&conn->deadline);
	if (conn->handle)
		conn->server->backend->close(conn->handle);
	if (conn->stream)
		conn->stream->ops->destroy(conn->stream);
	free(conn->negotiation);
	nbd_mem_pool_fini(&conn->pool);
	loop_defer(conn->server->loop, &conn->end);
}

static bool in_flight(const struct nbd_conn *conn)
{
	return conn->nios || conn->ask.state == NBD_ASK_WAITS ||
	       conn->securing == NBD_SECURING_HANDSHAKES;
}

/* Close the socket, unless that would take something from the client now. */
static void conn_linger_on(struct nbd_conn *conn)
{
	if (nbd_linger_look(conn->watch.fd) == NBD_LINGER_OVER ||
	    clock_now_ms() - conn->moved_ms >= LINGER_MS)
		nbd_conn_break(conn, NULL);
	else
		nbd_conn_deadline(conn, LINGER_LOOK_MS);
}

/* All is answered: the client sees the end of the stream behind the last reply. */
static void conn_linger(struct nbd_conn *conn)
{
	conn->state = NBD_CONN_LINGERS;
	conn->moved_ms = clock_now_ms();
	shutdown(conn->watch.fd, SHUT_WR);
	conn_linger_on(conn);
}

/* All is answered.  Under TLS the client hears so from the end that it trusts: an end of the socket
 * alone may be anybody's.  False: the socket is full. */
static bool said_bye(struct nbd_conn *conn)
{
	if (!conn->stream || conn->bye == NBD_BYE_SAID)
		return true;
	conn->bye = NBD_BYE_SAID;
	conn->stream->ops->bye(conn->stream);
	if (nbd_out_flush(conn) < 0)
		return true;
	conn_watch(conn);
	return nbd_out_empty(conn);
}

/* The answer to NBD_OPT_STARTTLS has been sent: only the handshake is to have the socket. */
static void conn_part(struct nbd_conn *conn)
{
	conn->securing = NBD_SECURING_PARTS;
	loop_unwatch(&conn->watch);
}

/* Advance a connection that leaves, is broken, or goes over to TLS, as far as possible. */
static void conn_check(struct nbd_conn *conn)
{
	if (in_flight(conn))
		return;
	if (conn->state == NBD_CONN_BROKEN && conn->watch.fd < 0)
		conn_close(conn);
	else if (conn->state == NBD_CONN_LEAVES && nbd_out_empty(conn) && said_bye(conn))
		conn_linger(conn);
	else if (conn->securing == NBD_SECURING_ANSWERS && conn->state == NBD_CONN_NEGOTIATES &&
		 nbd_out_empty(conn))
		conn_part(conn);
}

static void conn_close_socket(struct nbd_conn *conn)
{
	close(conn->watch.fd);
	conn->watch.fd = -1;
	conn_check(conn);
}

/* The loop has let go of the socket. */
static void conn_closed(struct loop_watch *watch)
{
	struct nbd_conn *conn = container_of(watch, struct nbd_conn, watch);
	const struct nbd_tls *tls = conn->server->tls;

	if (conn->securing == NBD_SECURING_PARTS && conn->state == NBD_CONN_NEGOTIATES) {
		conn->securing = NBD_SECURING_HANDSHAKES;
		unproven_give_time(&conn->unproven, HANDSHAKE_MS);
		tls->start(tls, conn, watch->fd, conn->name);
	} else {
		conn_close_socket(conn);
	}
}

void nbd_conn_leave(struct nbd_conn *conn)
{
	if (conn->state != NBD_CONN_NEGOTIATES && conn->state != NBD_CONN_SERVES)
		return;
	conn->state = NBD_CONN_LEAVES;
	unproven_leave(&conn->unproven);
	nbd_in_drop(conn);
	nbd_conn_deadline(conn, LEAVE_MS);
	loop_before_sleep(conn->server->loop, &conn->flush);
}

static void conn_break(struct nbd_conn *conn, struct log_limit *limit,
		       const struct log_fields *fields, const char *why)
{
	if (conn->state >= NBD_CONN_BROKEN)
		return;
	if (why)
		log_event_limited(limit, LOG_LEVEL_WARN, fields, conn->name,
				  "connection ends: %s", why);
	conn->state = NBD_CONN_BROKEN;
	unproven_leave(&conn->unproven);
	nbd_in_drop(conn);
	nbd_out_drop(conn);
	shutdown(conn->watch.fd, SHUT_RDWR);
	loop_unwatch(&conn->watch);
}

void nbd_conn_break(struct nbd_conn *conn, const char *why)
{
	conn_break(conn, &end_limit, LOG_FIELDS(CLIENT_DROPPED, .peer = conn->name), why);
}

/* Take no more input: the connection ends when all that came in whole is answered. */
static void conn_stop_input(struct nbd_conn *conn)
{
	if (in_flight(conn) || !nbd_out_empty(conn))
		nbd_conn_leave(conn);
	else
		nbd_conn_break(conn, NULL);
}

static void conn_broke(struct nbd_conn *conn, const char *why)
{
	log_event_limited(&end_limit, LOG_LEVEL_WARN,
			  LOG_FIELDS(PEER_GARBAGE, .peer = conn->name), conn->name,
			  "connection ends: %s", why);
	conn_stop_input(conn);
}

/* The client sends no more.  Its end of the socket may still take replies. */
static void conn_half_closed(struct nbd_conn *conn)
{
	if (nbd_in_halfway(conn))
		log_event_limited(&end_limit, LOG_LEVEL_WARN,
				  LOG_FIELDS(CLIENT_DROPPED, .peer = conn->name), conn->name,
				  "connection ends: the client has closed it in the middle of a "
				  "request");
	conn_stop_input(conn);
}

/* End the connection, whose socket failed with @r. */
static void conn_fail(struct nbd_conn *conn, int r)
{
	const char *why = conn->stream ? conn->stream->ops->why(conn->stream) : "";

	if (*why) {
		nbd_conn_break(conn, why);
		return;
	}
	/* A client that does not wait for its replies is no fault. */
	nbd_conn_break(conn, r == -EPIPE || r == -ECONNRESET ? NULL : strerror(-r));
}

/* The server may take any time for an answer, the client may not take any time to read one. */
static void leave_goes_on(struct nbd_conn *conn)
{
	uint64_t still_ms = 0;

	if (conn->out_state == NBD_OUT_FULL)
		still_ms = clock_now_ms() - conn->moved_ms;
	if (still_ms >= LEAVE_MS)
		nbd_conn_break(conn, "its replies are not read: no byte for 10 s");
	else
		nbd_conn_deadline(conn, LEAVE_MS - still_ms);
}

/* Has the client to ask for TLS before anything else? */
static bool needs_tls(const struct nbd_conn *conn)
{
	return conn->negotiation->tls == NBD_NEGOTIATE_MUST_TLS &&
	       conn->securing < NBD_SECURING_HANDSHAKES;
}

void nbd_conn_unproven_ends(struct unproven_place *place, enum unproven_why why)
{
	struct nbd_conn *conn = container_of(place, struct nbd_conn, unproven);

	if (why == UNPROVEN_ONE_TOO_MANY)
		conn_break(conn, &room_limit, LOG_FIELDS(CLIENT_DROPPED, .peer = conn->name),
			   "too many clients have opened no export, and a newcomer took the place "
			   "of this one");
	else if (needs_tls(conn))
		nbd_conn_break(conn, "TLS is required, and the client has not begun it for 10 s");
	else
		nbd_conn_break(conn, "the client's part of the handshake has taken 30 s");
}

static void deadline_over(struct loop_timer *timer)
{
	struct nbd_conn *conn = container_of(timer, struct nbd_conn, deadline);

	if (conn->state == NBD_CONN_LEAVES)
		leave_goes_on(conn);
	else if (conn->state == NBD_CONN_LINGERS)
		conn_linger_on(conn);
	else
		nbd_conn_break(conn, NULL);
}

/* ---- readiness ---- */

static void conn_send(struct nbd_conn *conn)
{
	int r;

	/* The stream may keep bytes, and the number of the socket may be somebody else's by now. */
	if (conn->state >= NBD_CONN_BROKEN) {
		conn_check(conn);
		return;
	}
	if (conn->out_bytes.error) {
		nbd_conn_break(conn, "no memory for the handshake");
		return;
	}
	r = nbd_out_flush(conn);
	if (r < 0)
		conn_fail(conn, r);
	else
		conn_watch(conn);
	conn_check(conn);
}

static void conn_run(struct nbd_conn *conn)
{
	int r = nbd_in_run(conn);

	if (r == -EPIPE)
		conn_half_closed(conn);
	else if (r < 0)
		conn_fail(conn, r);
	conn_watch(conn);
	conn_check(conn);
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
		conn_send(conn);
	if (conn->state == NBD_CONN_LINGERS)
		conn_linger_on(conn);
	else if (conn->watch.events & POLLIN)
		conn_run(conn);
	else
		look_for_end(conn);
	return false;
}

static void conn_flush(struct loop_task *task)
{
	conn_send(container_of(task, struct nbd_conn, flush));
}

/* ---- TLS ---- */

/* Go on negotiating under TLS.  The stream may have bytes that the socket does not show. */
static int conn_secured(struct nbd_conn *conn, struct nbd_stream *stream)
{
	int r;

	conn->stream = stream;
	nbd_negotiate_secured(conn->negotiation);
	conn_watch(conn);
	r = loop_watch(conn->server->loop, &conn->watch);
	if (r < 0)
		return r;
	conn->pause = NBD_PAUSE_TURN;
	nbd_turn_queue(conn);
	return 0;
}

void nbd_tls_done(struct nbd_conn *conn, struct nbd_stream *stream, const char *why)
{
	int r = 0;

	conn->securing = NBD_SECURING_NOT;
	conn->moved_ms = clock_now_ms();
	if (stream && conn->state == NBD_CONN_NEGOTIATES) {
		r = conn_secured(conn, stream);
		if (r == 0)
			return;
		why = strerror(-r);
	} else if (stream) {
		stream->ops->destroy(stream);
	}
	nbd_conn_break(conn, why);
	conn_close_socket(conn);
}

/* ---- begin ---- */

static const struct nbd_conn_ops conn_ops = {
	.may_read = conn_run,
	.left = nbd_conn_leave,
	.broke = conn_broke,
	.failed = nbd_conn_break,
	.ended = conn_check,
};

/* Begin to watch the client at @fd, which is the connection's from then on.  0 or -errno. */
static int conn_new(struct nbd_server *server, int fd, const char *name, struct nbd_conn **out)
{
	struct nbd_conn *conn = calloc(1, sizeof(*conn));
	int r;

	if (!conn)
		return -ENOMEM;
	conn->server = server;
	conn->ops = &conn_ops;
	snprintf(conn->name, sizeof(conn->name), "%s", name);
	list_init(&conn->link);
	list_init(&conn->turn);
	list_init(&conn->out);
	nbd_mem_pool_init(&conn->pool, &server->mem);
	loop_task_init(&conn->flush, conn_flush);
	loop_task_init(&conn->end, conn_free);
	loop_timer_init(&conn->deadline, deadline_over);
	conn->since_ms = conn->moved_ms = clock_now_ms();
	conn->watch = (struct loop_watch){ .fd = fd, .events = POLLIN, .ready = conn_ready,
					   .closed = conn_closed };
	r = loop_watch(server->loop, &conn->watch);
	if (r < 0) {
		free(conn);
		return r;
	}
	list_add_tail(&server->conns, &conn->link);
	server->nconns++;
	*out = conn;
	return 0;
}

int nbd_conn_create(struct nbd_server *server, int fd, const char *name, uint64_t net)
{
	struct nbd_negotiation *negotiation = malloc(sizeof(*negotiation));
	struct nbd_conn *conn;
	int r = negotiation ? conn_new(server, fd, name, &conn) : -ENOMEM;

	if (r < 0) {
		free(negotiation);
		return r;
	}
	conn->net = net;
	conn->negotiation = negotiation;
	nbd_negotiate_begin(negotiation, server->tls ? server->tls->mode : NBD_TLS_OFF,
			    &conn->out_bytes);
	nbd_ask_guest(conn, needs_tls(conn) ? STARTTLS_MS : HANDSHAKE_MS);
	nbd_out_bytes(conn);
	return 0;
}

int nbd_conn_serve(struct nbd_server *server, int fd, const char *name, void *handle)
{
	struct nbd_conn *conn;
	int r = conn_new(server, fd, name, &conn);

	if (r < 0) {
		server->backend->close(handle);
		return r;
	}
	conn->net = NBD_NET_LOCAL;
	conn->state = NBD_CONN_SERVES;
	conn->headers = NBD_HEADERS_SIMPLE;
	conn->handle = handle;
	server->backend->info(handle, &conn->export);
	return 0;
}
