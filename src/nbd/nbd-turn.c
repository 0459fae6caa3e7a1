/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of connections that may not read now.
 *
 * TURNS.  A connection that has started NBD_TURN requests stands in line.  The line moves when the
 * loop has no other work left: the started requests have been sent by then, and the loop has looked
 * at the other sockets.
 *
 * HUNGER.  Connections that wait for memory are tried again, in order, when some comes back.  While
 * connections wait that have no request in flight, a connection that holds memory and has moved no
 * byte for HUNGER_MS ends.  A connection that has some waits for its own to come back. */
#include "nbd-priv.h"

#define HUNGER_MS 5000

static void turn_run_line(struct list *line)
{
	struct nbd_conn *conn;
	struct list now;

	list_take(&now, line);
	while ((conn = list_pop_entry(&now, struct nbd_conn, turn))) {
		conn->pause = NBD_PAUSE_NONE;
		conn->ops->may_read(conn);
	}
}

static void turn_run(struct loop_task *task)
{
	turn_run_line(&container_of(task, struct nbd_server, turn_run)->turns);
}

static void turn_wait(struct loop_task *task)
{
	struct nbd_server *server = container_of(task, struct nbd_server, turn_wait);

	loop_defer(server->loop, &server->turn_run);
}

static void turn_feed(struct loop_task *task)
{
	turn_run_line(&container_of(task, struct nbd_server, feed)->starved);
}

void nbd_turn_queue(struct nbd_conn *conn)
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

void nbd_turn_feed(struct nbd_server *server)
{
	loop_defer(server->loop, &server->feed);
}

/* Does @conn hold memory until its client sends or takes bytes? */
static bool is_stuck(const struct nbd_conn *conn)
{
	bool input = conn->block && conn->block->room == NBD_BLOCK_ROOM &&
		     conn->in_pos != conn->in_end && conn->pause == NBD_PAUSE_NONE;

	return conn->input.state == NBD_INPUT_FILL || conn->out_state == NBD_OUT_FULL || input;
}

/* Does a connection wait for memory that has no request in flight? */
static bool some_hunger(const struct nbd_server *server)
{
	const struct nbd_conn *conn;

	list_for_each(conn, &server->starved, turn) {
		if (!conn->nios)
			return true;
	}
	return false;
}

static void turn_hungry(struct loop_timer *timer)
{
	struct nbd_server *server = container_of(timer, struct nbd_server, hunger);
	uint64_t now_ms = clock_now_ms();
	bool hungry = some_hunger(server);
	struct nbd_conn *conn, *next;

	if (list_empty(&server->starved))
		return;
	list_for_each_safe(conn, next, &server->conns, link) {
		if (hungry && is_stuck(conn) && now_ms - conn->moved_ms >= HUNGER_MS)
			conn->ops->failed(conn, "other connections wait for the memory that this "
					  "one holds, and its client has moved no byte for 5 s");
	}
	nbd_turn_feed(server);
	loop_timer_set(server->loop, &server->hunger, now_ms + HUNGER_MS);
}

void nbd_turn_init(struct nbd_server *server)
{
	list_init(&server->turns);
	list_init(&server->starved);
	loop_task_init(&server->turn_wait, turn_wait);
	loop_task_init(&server->turn_run, turn_run);
	loop_task_init(&server->feed, turn_feed);
	loop_timer_init(&server->hunger, turn_hungry);
}

void nbd_turn_fini(struct nbd_server *server)
{
	loop_undefer(&server->turn_wait);
	loop_undefer(&server->turn_run);
	loop_undefer(&server->feed);
	loop_timer_cancel(&server->hunger);
}
