/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the engine, from below: nbd-io.c (requests and their memory), nbd-out.c
 * (replies), nbd-in.c (what comes from the socket), nbd-conn.c (the life of a connection),
 * nbd-server.c.  The loop's thread. */
#ifndef NBD_PRIV_H
#define NBD_PRIV_H

#include "nbd-mem.h"
#include "nbd-opt.h"
#include "nbd-server.h"

#define NBD_BLOCK (64u << 10)		/* bytes of a block of input */
#define NBD_CONN_IOS 256u		/* requests of a connection in flight */
#define NBD_CONN_MEMORY (64u << 20)	/* bytes of their data; one request may have more */
#define NBD_STATUS_ROOM 8192u		/* bytes of the reply to a BLOCK_STATUS */
#define NBD_STATUS_MEMORY (NBD_IO_SCRATCH + NBD_STATUS_ROOM)
#define NBD_TURN 16u			/* requests that a connection starts, then others do */

/* Input as recv() brought it.  A WRITE whose data is whole in here uses it in place. */
struct nbd_block {
	unsigned refs;			/* of the connection that fills it, and of WRITEs */
	uint8_t bytes[];
};
#define NBD_BLOCK_ROOM (NBD_BLOCK - sizeof(struct nbd_block))

struct nbd_request_io {			/* a request from its header to its reply */
	struct nbd_io io;
	struct nbd_conn *conn;
	struct list link;		/* conn->out, server->ios */
	struct nbd_request req;
	void *piece;			/* of @piece_len bytes; NULL: none */
	size_t piece_len;
	struct nbd_block *block;	/* NULL, or where the data is */
	struct nbd_status_writer extents;
	int status;
	/* the reply */
	uint8_t head[NBD_REPLY_MAX];
	uint32_t head_len, data_len;
	const void *data;
	_Alignas(16) uint8_t own[];
};

enum nbd_conn_state {
	NBD_CONN_HAGGLES,		/* options come */
	NBD_CONN_SERVES,		/* requests come */
	NBD_CONN_LEAVES,		/* nothing is read; what is in flight is answered */
	NBD_CONN_LINGERS,		/* all is answered; what comes is dropped until the client
					 * closes */
	NBD_CONN_BROKEN,		/* the socket is closed, requests are in flight */
	NBD_CONN_GONE,			/* about to be freed */
	NBD_CONN_NSTATES
};

/* Why input is not parsed although there may be some. */
enum nbd_conn_pause {
	NBD_PAUSE_NONE,
	NBD_PAUSE_TURN,			/* others start requests first */
	NBD_PAUSE_FULL,			/* it has as much in flight as one may have */
	NBD_PAUSE_MEMORY,		/* all together have */
};

struct nbd_ask {
	enum { NBD_ASK_NONE, NBD_ASK_WAITS } state;
	uint64_t left_ms;		/* for the client, when the answer has come */
};

struct nbd_conn {
	struct nbd_server *server;
	struct list link;		/* server->conns */
	char name[96];
	enum nbd_conn_state state;
	struct loop_watch watch;

	/* handshake; NULL from SERVES on */
	struct nbd_haggle *haggle;
	struct nbd_ask ask;
	struct nbd_buf out_bytes;	/* sent in front of replies */
	/* transmission */
	void *handle;			/* of the backend; NULL: none is open */
	struct nbd_export export;
	enum nbd_headers headers;
	enum { NBD_STATUS_NONE, NBD_STATUS_CHOSEN } status;

	/* input */
	struct nbd_block *block;	/* NULL: there is no input */
	uint32_t in_pos, in_end;	/* bytes of @block that are not parsed */
	uint32_t in_want;		/* bytes that recv() asks for */
	struct nbd_request_io *fill;	/* its payload is being received; NULL: none is */
	uint32_t filled;
	/* The payload of @wrong, which is answered behind it: a client may not look for a reply to
	 * what it still sends. */
	struct nbd_request_io *wrong;	/* NULL: none */
	uint32_t drop;			/* bytes of that payload to come */
	enum nbd_conn_pause pause;
	struct list turn;		/* server->turns or server->starved */
	uint64_t moved_ms;		/* when bytes last went to or came from the client */

	/* in flight */
	unsigned nios;
	size_t memory;
	/* output */
	struct list out;		/* struct nbd_request_io.link */
	size_t sent;			/* bytes of the first one, or of @out_bytes */
	enum { NBD_OUT_READY, NBD_OUT_FULL } out_state;	/* FULL: until the socket takes more */
	struct loop_task flush;
	struct loop_timer deadline;	/* HAGGLES, LEAVES, LINGERS: of the client's next step */
	struct loop_task end;		/* frees the connection */
};

struct nbd_server {
	struct loop *loop;
	const struct nbd_backend *backend;
	void *arg;
	struct nbd_mem mem;
	struct list ios;		/* free ones: struct nbd_request_io.link */
	unsigned nios;			/* of all connections */
	struct list conns;
	unsigned nconns;
	struct list turns, starved;	/* struct nbd_conn.turn */
	struct loop_task turn_wait, turn_run, feed;
	struct loop_timer hunger;	/* while connections are starved */
	enum { NBD_SERVER_RUNS, NBD_SERVER_STOPS } state;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- nbd-io.c ---- */

/* A request, or NULL: the connection or the server has too many. */
struct nbd_request_io *nbd_io_get(struct nbd_conn *conn, const struct nbd_request *req);
/* Memory of @len bytes for @q.  False: now there is none; conn->pause says why. */
bool nbd_io_memory(struct nbd_request_io *q, size_t len);
/* The request is over: its memory goes back, and whoever waits for that is told. */
void nbd_io_put(struct nbd_request_io *q);
/* The request is not begun: the same, and nobody is told. */
void nbd_io_unget(struct nbd_request_io *q);
/* May @q be carried out?  0, or -errno for its reply. */
int nbd_io_check(const struct nbd_request_io *q);
/* Hand @q, which has been checked and whose data and memory are there, to the backend. */
void nbd_io_begin(struct nbd_request_io *q);
/* A block, with one reference; NULL: none now, and conn->pause says why. */
struct nbd_block *nbd_block_get(struct nbd_conn *conn);
void nbd_block_put(struct nbd_server *server, struct nbd_block *block);

/* ---- nbd-out.c ---- */

/* Send all that waits, as far as the socket takes it. */
void nbd_out_flush(struct nbd_conn *conn);
/* @q has ended: its reply is to be sent before the loop sleeps. */
void nbd_out_reply(struct nbd_request_io *q);
/* Bytes were added to conn->out_bytes. */
void nbd_out_bytes(struct nbd_conn *conn);
static inline bool nbd_out_empty(const struct nbd_conn *conn)
{
	return list_empty(&conn->out) && !conn->out_bytes.len;
}

/* ---- nbd-in.c ---- */

/* Receive and parse, as far as the connection may. */
void nbd_in_run(struct nbd_conn *conn);
/* Give up all input. */
void nbd_in_drop(struct nbd_conn *conn);
/* The block goes back if nothing needs it. */
void nbd_in_rest(struct nbd_conn *conn);

/* ---- nbd-conn.c ---- */

int nbd_conn_create(struct nbd_server *server, int fd, const char *name);
/* Nothing more is read; the connection is closed when all is answered. */
void nbd_conn_leave(struct nbd_conn *conn);
/* The connection ends at once: @why is logged; NULL: nothing is wrong. */
void nbd_conn_break(struct nbd_conn *conn, const char *why);
/* The socket failed with @r. */
void nbd_conn_fail(struct nbd_conn *conn, int r);
/* Something that the end waits for has happened. */
void nbd_conn_check(struct nbd_conn *conn);
/* The haggling needs the backend, or is over: see its state. */
void nbd_conn_haggled(struct nbd_conn *conn);
/* Watch what the connection waits for. */
void nbd_conn_watch(struct nbd_conn *conn);

/* ---- nbd-server.c ---- */

/* @conn waits for its turn, or for memory of the server (conn->pause). */
void nbd_server_queue(struct nbd_conn *conn);
/* Memory or requests came back. */
void nbd_server_feed(struct nbd_server *server);
/* A connection is gone. */
void nbd_server_gone(struct nbd_conn *conn);

#endif
