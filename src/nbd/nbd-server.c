/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of one loop, their turns, and the end of idle connections when memory is short.
 *
 * TURNS.  A connection that has started NBD_TURN requests stands in line.  The line moves when the
 * loop has no other work left: the started requests have been sent by then, and the loop has looked
 * at the other sockets.
 *
 * HUNGER.  Connections that wait for memory are tried again, in order, when some comes back.  While
 * others wait, a connection that holds memory and has moved no byte for HUNGER_MS ends. */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "nbd-priv.h"

#define HUNGER_MS 5000

static void server_run_turns(struct list *line)
{
	struct nbd_conn *conn;
	struct list now;

	list_take(&now, line);
	while ((conn = list_pop_entry(&now, struct nbd_conn, turn))) {
		conn->pause = NBD_PAUSE_NONE;
		nbd_in_run(conn);
	}
}

static void turn_run(struct loop_task *task)
{
	server_run_turns(&container_of(task, struct nbd_server, turn_run)->turns);
}

static void turn_wait(struct loop_task *task)
{
	struct nbd_server *server = container_of(task, struct nbd_server, turn_wait);

	loop_defer(server->loop, &server->turn_run);
}

static void feed(struct loop_task *task)
{
	server_run_turns(&container_of(task, struct nbd_server, feed)->starved);
}

void nbd_server_queue(struct nbd_conn *conn)
{
	struct nbd_server *server = conn->server;

	if (!list_empty(&conn->turn))
		return;
	if (conn->pause == NBD_PAUSE_MEMORY) {
		list_add_tail(&server->starved, &conn->turn);
		if (list_empty(&server->hunger.link))
			loop_timer_set(server->loop, &server->hunger, clock_now_ms() + HUNGER_MS);
		return;
	}
	list_add_tail(&server->turns, &conn->turn);
	loop_before_sleep(server->loop, &server->turn_wait);
}

void nbd_server_feed(struct nbd_server *server)
{
	loop_defer(server->loop, &server->feed);
}

/* Does @conn hold memory until its client sends or takes bytes? */
static bool is_stuck(const struct nbd_conn *conn)
{
	bool input = conn->block && conn->in_pos != conn->in_end && conn->pause == NBD_PAUSE_NONE;

	return conn->fill || conn->out_state == NBD_OUT_FULL || input;
}

static void server_hungry(struct loop_timer *timer)
{
	struct nbd_server *server = container_of(timer, struct nbd_server, hunger);
	uint64_t now_ms = clock_now_ms();
	struct nbd_conn *conn, *next;

	if (list_empty(&server->starved))
		return;
	list_for_each_safe(conn, next, &server->conns, link) {
		if (is_stuck(conn) && now_ms - conn->moved_ms >= HUNGER_MS)
			nbd_conn_break(conn, "other connections wait for the memory that this one "
				       "holds, and its client has moved no byte for 5 s");
	}
	nbd_server_feed(server);
	loop_timer_set(server->loop, &server->hunger, now_ms + HUNGER_MS);
}

/* ---- life ---- */

int nbd_server_create(struct nbd_server **out, struct loop *loop,
		      const struct nbd_server_conf *conf)
{
	struct nbd_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->loop = loop;
	server->backend = conf->backend;
	server->arg = conf->arg;
	nbd_mem_init(&server->mem, conf->memory);
	list_init(&server->ios);
	list_init(&server->conns);
	list_init(&server->turns);
	list_init(&server->starved);
	loop_task_init(&server->turn_wait, turn_wait);
	loop_task_init(&server->turn_run, turn_run);
	loop_task_init(&server->feed, feed);
	loop_timer_init(&server->hunger, server_hungry);
	*out = server;
	return 0;
}

void nbd_server_destroy(struct nbd_server *server)
{
	struct nbd_request_io *q;

	loop_undefer(&server->turn_wait);
	loop_undefer(&server->turn_run);
	loop_undefer(&server->feed);
	loop_timer_cancel(&server->hunger);
	while ((q = list_pop_entry(&server->ios, struct nbd_request_io, link)))
		free(q);
	nbd_mem_fini(&server->mem);
	free(server);
}

int nbd_server_add(struct nbd_server *server, int fd, const char *name)
{
	return nbd_conn_create(server, fd, name);
}

void nbd_server_stop(struct nbd_server *server, void (*stopped)(void *arg), void *arg)
{
	struct nbd_conn *conn, *next;

	server->state = NBD_SERVER_STOPS;
	server->stopped = stopped;
	server->stopped_arg = arg;
	list_for_each_safe(conn, next, &server->conns, link) {
		if (conn->state == NBD_CONN_HAGGLES)
			nbd_conn_break(conn, NULL);
		else
			nbd_conn_leave(conn);
	}
	if (!server->nconns && stopped)
		stopped(arg);
}

void nbd_server_gone(struct nbd_conn *conn)
{
	struct nbd_server *server = conn->server;

	list_del(&conn->link);
	if (--server->nconns == 0 && server->state == NBD_SERVER_STOPS && server->stopped)
		server->stopped(server->stopped_arg);
}

unsigned nbd_server_count(const struct nbd_server *server)
{
	return server->nconns;
}
