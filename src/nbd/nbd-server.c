/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of one loop, from the first one to the stop.  Owns the memory of all requests. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "nbd-priv.h"

#define TRIM_MS 10000			/* memory that no request has used for so long is freed */

static void server_trim(struct loop_timer *timer)
{
	struct nbd_server *server = container_of(timer, struct nbd_server, trim);

	nbd_mem_trim(&server->mem);
	if (server->nconns)
		loop_timer_set(server->loop, timer, clock_now_ms() + TRIM_MS);
}

int nbd_server_create(struct nbd_server **out, struct loop *loop,
		      const struct nbd_server_conf *conf)
{
	struct nbd_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->loop = loop;
	server->backend = conf->backend;
	server->arg = conf->arg;
	server->tls = conf->tls;
	nbd_mem_init(&server->mem, conf->memory);
	nbd_mem_pool_init(&server->input, &server->mem);
	loop_timer_init(&server->trim, server_trim);
	list_init(&server->ios);
	list_init(&server->conns);
	unproven_init(&server->unproven, loop, conf->guests, conf->net_guests,
		      nbd_conn_unproven_ends);
	nbd_turn_init(server);
	*out = server;
	return 0;
}

void nbd_server_set_memory(struct nbd_server *server, size_t memory)
{
	nbd_mem_set_limit(&server->mem, memory);
	nbd_turn_feed(server);
}

void nbd_server_destroy(struct nbd_server *server)
{
	struct nbd_request_io *q;

	nbd_turn_fini(server);
	while ((q = list_pop_entry(&server->ios, struct nbd_request_io, link)))
		free(q);
	loop_timer_cancel(&server->trim);
	nbd_mem_pool_fini(&server->input);
	nbd_mem_fini(&server->mem);
	free(server);
}

/* The first connection begins the trimming; a failure closes @fd.  Returns @r. */
static int added(struct nbd_server *server, int fd, int r)
{
	if (r < 0)
		close(fd);
	else if (list_empty(&server->trim.link))
		loop_timer_set(server->loop, &server->trim, clock_now_ms() + TRIM_MS);
	return r;
}

int nbd_server_add(struct nbd_server *server, int fd, const char *name, uint64_t net)
{
	return added(server, fd, nbd_conn_create(server, fd, name, net));
}

int nbd_server_serve(struct nbd_server *server, int fd, const char *name, void *handle)
{
	return added(server, fd, nbd_conn_serve(server, fd, name, handle));
}

void nbd_server_look(struct nbd_server *server)
{
	struct nbd_conn *conn;

	list_for_each(conn, &server->conns, link) {
		if (conn->state == NBD_CONN_SERVES)
			server->backend->info(conn->handle, &conn->export);
	}
}

void nbd_server_stop(struct nbd_server *server, void (*stopped)(void *arg), void *arg)
{
	struct nbd_conn *conn, *next;

	server->state = NBD_SERVER_STOPS;
	server->stopped = stopped;
	server->stopped_arg = arg;
	list_for_each_safe(conn, next, &server->conns, link) {
		if (conn->state == NBD_CONN_NEGOTIATES)
			nbd_conn_break(conn, NULL);
		else
			nbd_conn_leave(conn);
	}
	if (!server->nconns && stopped)
		stopped(arg);
}

static enum nbd_client_state client_state(const struct nbd_conn *conn)
{
	switch (conn->state) {
	case NBD_CONN_NEGOTIATES:
		return NBD_CLIENT_NEGOTIATES;
	case NBD_CONN_SERVES:
		return NBD_CLIENT_OPEN;
	default:
		return NBD_CLIENT_LEAVES;
	}
}

void nbd_server_visit(struct nbd_server *server,
		      enum nbd_visit (*visit)(void *arg, const struct nbd_client *client),
		      void *arg)
{
	struct nbd_conn *conn, *next;

	list_for_each_safe(conn, next, &server->conns, link) {
		const struct nbd_client client = {
			.name = conn->name, .fd = conn->watch.fd, .state = client_state(conn),
			.since_ms = conn->since_ms, .stream = conn->stream,
			.handle = conn->handle, .counts = conn->counts, .inflight = conn->nios,
		};

		if (conn->state < NBD_CONN_BROKEN && visit(arg, &client) == NBD_VISIT_END)
			nbd_conn_break(conn, NULL);
	}
}

unsigned nbd_server_count(const struct nbd_server *server)
{
	return server->nconns;
}

unsigned nbd_server_unanswered(const struct nbd_server *server)
{
	return server->unanswered;
}
