/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and their memory.  A request is taken for its header and given back after its reply
 * was sent.  A request owns a piece of memory, or a reference of the block of input with its
 * data, or no memory.  A connection that gets none is told the reason, conn->pause.
 *
 * Connections share the requests of their server, and the memory for data (share.h): replies may
 * wait for seconds at the other end, so turns alone do not keep a greedy connection from having
 * all. */
#include <stdlib.h>

#include "nbd-priv.h"
#include "share.h"
#include "util.h"

#define HUNGER_MS 5000

/* ---- lines of connections that may not read now ----
 *
 * TURNS.  A connection that has started NBD_TURN requests stands in line.  The line moves when the
 * loop has no other work left: the started requests have been sent by then, and the loop has looked
 * at the other sockets.
 *
 * HUNGER.  Connections that wait for memory are tried again, in order, when some comes back.  While
 * connections wait that have no request in flight, a connection that holds memory and has moved no
 * byte for HUNGER_MS ends.  A connection that has some waits for its own to come back. */

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

/* ---- requests ---- */

/* Bytes of the reserve for a connection: a block of input, without which it cannot ask, and a
 * request. */
#define FIRST_PIECE (2 * NBD_BLOCK)

/* ---- shares ---- */

static bool may_have_request(const struct nbd_conn *conn)
{
	const struct nbd_server *server = conn->server;

	return share_may_take(conn->nios, 1, NBD_IOS_MAX - server->nios,
			      share_reserve(NBD_IOS_MAX, server->nbusy, 1));
}

/* May @conn have @size bytes more, if it holds @held? */
static bool may_have_memory(const struct nbd_conn *conn, size_t held, size_t size)
{
	const struct nbd_server *server = conn->server;
	const struct nbd_mem *mem = &server->mem;
	size_t nfree = mem->used < mem->limit ? mem->limit - mem->used : 0;
	uint64_t reserve = share_reserve(mem->limit, server->nholders, FIRST_PIECE);

	return server->nconns == 1 ? share_may_take_alone(held, size, nfree, reserve) :
				     share_may_take(held, size, nfree, reserve);
}

/* ---- requests ---- */

struct nbd_request_io *nbd_req_get(struct nbd_conn *conn, const struct nbd_request *req)
{
	struct nbd_server *server = conn->server;
	struct nbd_request_io *q = NULL;

	if (conn->nios == NBD_CONN_IOS) {
		conn->pause = NBD_PAUSE_FULL;
		return NULL;
	}
	if (may_have_request(conn)) {
		q = list_pop_entry(&server->ios, struct nbd_request_io, link);
		if (!q)
			q = malloc(align_up(sizeof(*q) + server->backend->io_size, 16));
	}
	if (!q) {
		conn->pause = NBD_PAUSE_MEMORY;
		return NULL;
	}
	/* Field by field: the reply and the list of extents are written when there is one. */
	q->io = (struct nbd_io){
		.cmd = req->type, .flags = req->flags, .handle = conn->handle,
		.off = req->off, .len = req->len, .own = q->own,
	};
	q->conn = conn;
	q->req = *req;
	q->piece = NULL;
	q->piece_len = 0;
	q->block = NULL;
	q->status = 0;
	q->why = NULL;
	q->data = NULL;
	q->data_len = q->head_len = 0;
	list_init(&q->link);
	server->nbusy += !conn->nios;
	conn->nios++;
	server->nios++;
	return q;
}

/* Memory ahead belongs to no request, and none comes back from it: it does not count as the
 * first. */
static bool is_full(const struct nbd_conn *conn, size_t size)
{
	return conn->npieces && conn->memory + size > NBD_CONN_MEMORY;
}

/* A piece for @conn, which holds @held bytes as far as its share is concerned. */
static void *piece_within(struct nbd_conn *conn, size_t held, size_t len)
{
	size_t size = nbd_mem_size(len);
	void *piece = NULL;

	if (!is_full(conn, size) && may_have_memory(conn, held, size))
		piece = nbd_mem_get(&conn->pool, len);
	if (piece)
		conn->memory += size;
	return piece;
}

/* The reserve is for requests. */
void *nbd_req_piece(struct nbd_conn *conn, size_t len)
{
	return piece_within(conn, MAX(conn->memory, (size_t)1), len);
}

/* A piece for a request.  While no request has one, none comes back: what is used then is input
 * and memory ahead, which waits for this request.  So the limit does not hold this one up. */
static void *piece_of_request(struct nbd_conn *conn, size_t len)
{
	void *piece = piece_within(conn, conn->npieces ? conn->memory : 0, len);

	if (piece || conn->server->npieces)
		return piece;
	piece = nbd_mem_get_beyond(&conn->pool, len);
	if (piece)
		conn->memory += nbd_mem_size(len);
	return piece;
}

void nbd_req_piece_put(struct nbd_conn *conn, void *piece, size_t len)
{
	conn->memory -= nbd_mem_size(len);
	nbd_mem_put(&conn->pool, piece, len);
}

void nbd_req_piece_set(struct nbd_request_io *q, void *piece, size_t len)
{
	q->piece = q->io.buf = piece;
	q->piece_len = len;
	q->conn->server->nholders += !q->conn->npieces;
	q->conn->npieces++;
	q->conn->server->npieces++;
}

bool nbd_req_memory(struct nbd_request_io *q, size_t len)
{
	struct nbd_conn *conn = q->conn;
	void *piece = piece_of_request(conn, len);

	if (piece)
		nbd_req_piece_set(q, piece, len);
	else
		conn->pause = is_full(conn, nbd_mem_size(len)) ? NBD_PAUSE_FULL : NBD_PAUSE_MEMORY;
	return piece;
}

struct nbd_block *nbd_block_get(struct nbd_conn *conn, uint32_t have)
{
	bool small = conn->state == NBD_CONN_NEGOTIATES && have < NBD_SMALL_ROOM;
	struct nbd_block *block = small ? malloc(NBD_SMALL) :
					  nbd_mem_get(&conn->server->input, NBD_BLOCK);

	if (!block) {
		conn->pause = NBD_PAUSE_MEMORY;
		return NULL;
	}
	block->refs = 1;
	block->room = small ? NBD_SMALL_ROOM : NBD_BLOCK_ROOM;
	return block;
}

void nbd_block_put(struct nbd_server *server, struct nbd_block *block)
{
	if (--block->refs)
		return;
	if (block->room == NBD_BLOCK_ROOM)
		nbd_mem_put(&server->input, block, NBD_BLOCK);
	else
		free(block);
}

void nbd_req_unget(struct nbd_request_io *q)
{
	struct nbd_conn *conn = q->conn;
	struct nbd_server *server = conn->server;

	if (q->piece) {
		nbd_req_piece_put(conn, q->piece, q->piece_len);
		conn->npieces--;
		server->npieces--;
		server->nholders -= !conn->npieces;
	}
	if (q->block)
		nbd_block_put(server, q->block);
	conn->nios--;
	server->nios--;
	server->nbusy -= !conn->nios;
	list_del(&q->link);
	list_add_head(&server->ios, &q->link);
}

void nbd_req_put(struct nbd_request_io *q)
{
	struct nbd_conn *conn = q->conn;
	struct nbd_server *server = conn->server;

	nbd_req_unget(q);
	if (conn->pause == NBD_PAUSE_FULL) {
		conn->pause = NBD_PAUSE_TURN;
		nbd_turn_queue(conn);
	}
	if (!list_empty(&server->starved))
		nbd_turn_feed(server);
}
