/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the listening socket, libmicrohttpd's daemon and the list of its connections; thread of the
 * loop.  The daemon has no thread: the loop watches the daemon's epoll descriptor.
 *
 * How it ends: metric_http_close(); http_closed() frees all when the loop has let go of both
 * descriptors.  How it fails: only metric_http_open() fails.  A client without memory gets no
 * answer. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "acceptor.h"
#include "clock.h"
#include "list.h"
#include "log.h"
#include "metric-sock.h"
#include "metrics.h"
#include "util.h"

#define CLIENT_MEMORY ((size_t)16 << 10)	/* bytes, of a request and the head of its answer */

struct metric_http {
	struct loop *loop;
	const struct metric_source *source;
	struct metric_sock sock;
	struct MHD_Daemon *daemon;
	struct acceptor acceptor;
	struct loop_watch events;
	struct loop_task task;		/* goes on with work that needs no event */
	struct list clients;		/* struct http_client, the oldest first */
	unsigned nclients;
	unsigned nwatched;		/* of the acceptor and @events */
	bool told;			/* the log has a name that was refused */
	void (*done)(void *arg);
	void *done_arg;
};

/* A connection of libmicrohttpd, which owns the descriptor. */
struct http_client {
	struct list link;		/* in http->clients; empty: cut off */
	struct metric_http *http;
	struct loop_timer deadline;
	int fd;
};

/* ---- clients ---- */

/* Let the daemon find the end of @c, which it then closes. */
static void client_cut(struct http_client *c)
{
	if (list_empty(&c->link))
		return;
	list_del(&c->link);
	c->http->nclients--;
	loop_timer_cancel(&c->deadline);
	shutdown(c->fd, SHUT_RDWR);
}

static void client_late(struct loop_timer *timer)
{
	client_cut(container_of(timer, struct http_client, deadline));
}

static struct http_client *client_begin(struct metric_http *http, int fd)
{
	struct http_client *c = calloc(1, sizeof(*c));

	if (!c) {
		shutdown(fd, SHUT_RDWR);
		return NULL;
	}
	c->http = http;
	c->fd = fd;
	loop_timer_init(&c->deadline, client_late);
	loop_timer_set(http->loop, &c->deadline, clock_now_ms() + METRIC_HTTP_DEADLINE_MS);
	list_add_tail(&http->clients, &c->link);
	http->nclients++;
	if (http->nclients > METRIC_HTTP_CLIENTS)
		client_cut(list_entry(http->clients.next, struct http_client, link));
	return c;
}

static void client_end(struct http_client *c)
{
	client_cut(c);
	free(c);
}

/* The daemon's word of a connection: at the end the descriptor is still open. */
static void client_notify(void *arg, struct MHD_Connection *con, void **own,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
		*own = client_begin(arg, info->connect_fd);
	} else if (*own) {
		client_end(*own);
	}
}

/* ---- requests ---- */

/* The header of an answer beside those of all; name NULL: none. */
struct http_header {
	const char *name, *value;
};

static const struct http_header no_header;

static bool add_headers(struct MHD_Response *r, const char *type, struct http_header more)
{
	return MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
	       MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
	       MHD_add_response_header(r, MHD_HTTP_HEADER_X_CONTENT_TYPE_OPTIONS, "nosniff") &&
	       MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") &&
	       (!more.name || MHD_add_response_header(r, more.name, more.value));
}

/* Answer with @body, whose memory is taken; NULL: no memory, and @con is closed. */
static enum MHD_Result answer(struct MHD_Connection *con, unsigned status, const char *type,
			      char *body, size_t len, struct http_header more)
{
	struct MHD_Response *r = body ? MHD_create_response_from_buffer(len, body,
							MHD_RESPMEM_MUST_FREE) : NULL;
	enum MHD_Result done = MHD_NO;

	if (!r) {
		free(body);
		return MHD_NO;
	}
	if (add_headers(r, type, more))
		done = MHD_queue_response(con, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result refuse(struct MHD_Connection *con, unsigned status, const char *why,
			      struct http_header more)
{
	return answer(con, status, "text/plain; charset=utf-8", strdup(why), strlen(why), more);
}

static enum MHD_Result serve_metrics(struct metric_http *http, struct MHD_Connection *con)
{
	enum metric_format format = metric_accept(MHD_lookup_connection_value(
		con, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
	size_t len;
	char *text = metric_text(http->source->table, http->source->program, format, NULL,
				 &len);

	return answer(con, MHD_HTTP_OK, metric_content_type(format), text, len, no_header);
}

static enum MHD_Result serve_status(struct metric_http *http, struct MHD_Connection *con)
{
	char *text = http->source->status(http->source->program);

	return answer(con, MHD_HTTP_OK, "application/json", text, text ? strlen(text) : 0,
		      no_header);
}

static void put_nonce(char *page, const char *nonce)
{
	for (char *at = strstr(page, METRIC_PAGE_NONCE); at; at = strstr(at, METRIC_PAGE_NONCE))
		memcpy(at, nonce, sizeof(METRIC_PAGE_NONCE) - 1);
}

/* The script and the style of the page run because both have the nonce of this answer.  A name that
 * became HTML all the same would have no nonce. */
static enum MHD_Result serve_page(struct metric_http *http, struct MHD_Connection *con)
{
	char nonce[sizeof(METRIC_PAGE_NONCE)], policy[512], *page = strdup(metric_page);
	uint8_t random[(sizeof(nonce) - 1) / 2];

	random_bytes(random, sizeof(random));
	for (unsigned i = 0; i < sizeof(random); i++)
		snprintf(nonce + (size_t)2 * i, 3, "%02x", random[i]);
	snprintf(policy, sizeof(policy),
		 "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
		 "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		 nonce, nonce);
	if (page)
		put_nonce(page, nonce);
	return answer(con, MHD_HTTP_OK, "text/html; charset=utf-8", page, strlen(metric_page),
		      (struct http_header){ "Content-Security-Policy", policy });
}

/* A unix socket is no address that a browser can be led to. */
static bool is_for_us(struct metric_http *http, const char *host)
{
	char own[256] = "";

	if (http->sock.named.path)
		return true;
	gethostname(own, sizeof(own) - 1);
	return metric_host_is_ours(host, own, http->source->hosts);
}

/* The administrator hears of the first one: a reader may be Prometheus, which does not show why. */
static enum MHD_Result refuse_host(struct metric_http *http, struct MHD_Connection *con,
				   const char *host)
{
	if (!http->told)
		log_warn(NULL, "metrics: a reader asked for the host '%.256s': give the name as "
			 "metrics-host, if the name is one of yours", host);
	http->told = true;
	return refuse(con, MHD_HTTP_MISDIRECTED_REQUEST,
		      "expected as host an address, localhost, the name of this machine, or a name "
		      "given as metrics-host\n", no_header);
}

/* Answers as soon as the head of a request is there; the body, if any, is not read. */
static enum MHD_Result serve(void *arg, struct MHD_Connection *con, const char *path,
			     const char *method, const char *version, const char *body, size_t *len,
			     void **request)
{
	struct metric_http *http = arg;

	const struct http_header allow = { MHD_HTTP_HEADER_ALLOW, "GET, HEAD" };
	const char *host = MHD_lookup_connection_value(con, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	if (!is_for_us(http, host))
		return refuse_host(http, con, host);
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(con, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET or HEAD\n", allow);
	if (!strcmp(path, "/metrics"))
		return serve_metrics(http, con);
	if (!http->source->status)
		return refuse(con, MHD_HTTP_NOT_FOUND, "expected /metrics\n", no_header);
	if (!strcmp(path, "/"))
		return serve_page(http, con);
	if (!strcmp(path, "/status.json"))
		return serve_status(http, con);
	return refuse(con, MHD_HTTP_NOT_FOUND, "expected /, /metrics or /status.json\n", no_header);
}

/* ---- the daemon on the loop ---- */

/* Let the daemon work.  True: more work is ready. */
static bool http_run(struct metric_http *http)
{
	struct pollfd p = { .fd = http->events.fd, .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(http->daemon);
	return (MHD_get_timeout(http->daemon, &ms) == MHD_YES && !ms) || poll(&p, 1, 0) > 0;
}

static bool events_ready(struct loop_watch *w)
{
	return http_run(container_of(w, struct metric_http, events));
}

static void go_on(struct loop_task *task)
{
	struct metric_http *http = container_of(task, struct metric_http, task);

	if (http_run(http))
		loop_defer(http->loop, task);
}

static void http_take(struct acceptor *a, int fd, const struct sockaddr_storage *addr,
		      socklen_t len)
{
	struct metric_http *http = container_of(a, struct metric_http, acceptor);

	/* The daemon closes @fd in any case. */
	MHD_add_connection(http->daemon, fd, (const struct sockaddr *)addr, len);
	loop_defer(http->loop, &http->task);
}

/* ---- life ---- */

static void http_free(struct metric_http *http)
{
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	free(http);
}

/* The loop has let go of a descriptor. */
static void http_closed(struct metric_http *http)
{
	void (*done)(void *arg) = http->done;
	void *arg = http->done_arg;

	if (--http->nwatched)
		return;
	metric_sock_close(&http->sock);
	http_free(http);
	done(arg);
}

static void listener_closed(struct loop_watch *w)
{
	http_closed(container_of(w, struct metric_http, acceptor.watch));
}

static void events_closed(struct loop_watch *w)
{
	http_closed(container_of(w, struct metric_http, events));
}

static int http_start(struct metric_http *http)
{
	const union MHD_DaemonInfo *info;

	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
		serve, http, MHD_OPTION_NOTIFY_CONNECTION, client_notify, http,
		/* clients that were cut off take a moment more */
		MHD_OPTION_CONNECTION_LIMIT, 2u * METRIC_HTTP_CLIENTS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CLIENT_MEMORY, MHD_OPTION_END);
	if (!http->daemon)
		return errno ? -errno : -ENOMEM;
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	http->events.fd = info->epoll_fd;
	return 0;
}

/* The events are watched without their end, until the listener is watched, too. */
static int http_watch(struct metric_http *http)
{
	int r = loop_watch(http->loop, &http->events);

	if (r)
		return r;
	r = acceptor_start(&http->acceptor, http->loop);
	if (r) {
		loop_unwatch(&http->events);
		return r;
	}
	http->events.closed = events_closed;
	http->nwatched = 2;
	return 0;
}

int metric_http_open(struct loop *loop, struct metric_sock *sock,
		     const struct metric_source *source, struct metric_http **out)
{
	struct metric_http *http = calloc(1, sizeof(*http));
	int r;

	if (!http)
		return -ENOMEM;
	http->loop = loop;
	http->source = source;
	list_init(&http->clients);
	loop_task_init(&http->task, go_on);
	http->events.events = POLLIN;
	http->events.ready = events_ready;
	http->acceptor.take = http_take;
	http->acceptor.watch.fd = sock->fd;
	http->acceptor.watch.closed = listener_closed;
	errno = 0;
	r = http_start(http);
	if (!r)
		r = http_watch(http);
	if (r) {
		http_free(http);
		return r;
	}
	http->sock = *sock;
	*out = http;
	return 0;
}

void metric_http_unlink(const struct metric_http *http)
{
	metric_sock_unlink(&http->sock);
}

void metric_http_close(struct metric_http *http, void (*done)(void *arg), void *arg)
{
	http->done = done;
	http->done_arg = arg;
	metric_sock_unname(&http->sock);
	loop_undefer(&http->task);
	loop_unwatch(&http->events);
	acceptor_stop(&http->acceptor);
}
