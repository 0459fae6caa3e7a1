/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the engine, from below: nbd-req.c (requests, their memory, and the lines
 * of connections that wait for some), nbd-io.c (requests on their way through the backend, and
 * replies), nbd-ahead.c (data that is expected), nbd-recv.c (bytes of the socket), nbd-in.c
 * (what the bytes say: options and requests), nbd-conn.c (the life of a connection),
 * nbd-server.c.  A file calls files below it; results and the calls of struct nbd_conn_ops go
 * up.  The loop's thread. */
#ifndef NBD_PRIV_H
#define NBD_PRIV_H

#include "clock.h"
#include "fsm.h"
#include "nbd-mem.h"
#include "nbd-opt.h"
#include "nbd-server.h"
#include "unproven.h"

#define NBD_BLOCK (64u << 10)		/* bytes of a block of input */
#define NBD_SMALL 512u			/* of a small one */
#define NBD_CONN_IOS 256u		/* requests of a connection in flight */
#define NBD_IOS_MAX 16384u		/* of all connections of a loop */
#define NBD_CONN_MEMORY (64u << 20)	/* bytes of their data; the first may have more */
#define NBD_STATUS_ROOM 8192u		/* bytes of the reply to a BLOCK_STATUS */
#define NBD_STATUS_MEMORY (NBD_IO_SCRATCH + NBD_STATUS_ROOM)
#define NBD_TURN 16u			/* requests that a connection starts, then others do */

/* Input of recvmsg().  A WRITE with all of its data in one block uses the data in place.
 *
 * While a connection negotiates its block is a small one, which is no memory for data, unless an
 * option is longer: most are below 100 bytes, and anybody may begin to send one. */
struct nbd_block {
	unsigned refs;			/* of the receiving connection, and of WRITEs */
	uint32_t room;			/* NBD_BLOCK_ROOM, or of a small block NBD_SMALL_ROOM */
	uint8_t bytes[];
};
#define NBD_BLOCK_ROOM (NBD_BLOCK - sizeof(struct nbd_block))
#define NBD_SMALL_ROOM (NBD_SMALL - sizeof(struct nbd_block))

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
	const char *why;		/* of an error, for the client; NULL: what @status says */
	/* the reply */
	uint8_t head[NBD_REPLY_MAX];
	uint32_t head_len, data_len;
	const void *data;
	_Alignas(16) uint8_t own[];
};

enum nbd_conn_state {
	NBD_CONN_NEGOTIATES,		/* options come */
	NBD_CONN_SERVES,		/* requests come */
	NBD_CONN_LEAVES,		/* no input is read; requests in flight are answered */
	NBD_CONN_LINGERS,		/* all is answered, and a close now would take something
					 * from the client (nbd_linger_look()) */
	NBD_CONN_BROKEN,		/* the socket is closed, requests are in flight */
	NBD_CONN_GONE,			/* about to be freed */
	NBD_CONN_NSTATES
};

/* The reason why input is not parsed. */
enum nbd_conn_pause {
	NBD_PAUSE_NONE,
	NBD_PAUSE_TURN,			/* others start requests first */
	NBD_PAUSE_FULL,			/* the connection has as much in flight as allowed */
	NBD_PAUSE_MEMORY,		/* all connections together have, or the connection has its
					 * share */
};

/* On the way to TLS, in NEGOTIATES or BROKEN. */
enum nbd_securing {
	NBD_SECURING_NOT,
	NBD_SECURING_ANSWERS,		/* the answer to the option goes out */
	NBD_SECURING_PARTS,		/* the loop lets go of the socket */
	NBD_SECURING_HANDSHAKES,		/* the handshake has the socket */
};

struct nbd_ask {
	enum { NBD_ASK_NONE, NBD_ASK_WAITS } state;
	uint64_t left_ms;		/* for the client, when the answer has come */
};

/* Behind a large WRITE another WRITE of the same size is expected.  One recvmsg() fills the rest of
 * the first WRITE's data, the header, this memory for the next data, and the header behind.  If
 * another request comes, nbd_recv_move() takes the bytes to their places. */
enum nbd_ahead_state {
	NBD_AHEAD_NONE,			/* no memory, no bytes */
	NBD_AHEAD_EXPECTS,		/* recvmsg() may fill @piece and @head */
	NBD_AHEAD_HOLDS,		/* bytes came to @piece, and perhaps to @head */
	NBD_AHEAD_HEADS,		/* bytes are in @head alone: a request has the piece */
	NBD_AHEAD_NSTATES
};

enum nbd_ahead_event {
	NBD_AHEAD_EV_EXPECT, NBD_AHEAD_EV_CAME, NBD_AHEAD_EV_GIVEN, NBD_AHEAD_EV_GIVEN_DATA,
	NBD_AHEAD_EV_MOVED, NBD_AHEAD_EV_DROP,
};

struct nbd_ahead {
	atomic_uint state;		/* enum nbd_ahead_state */
	uint8_t *piece;			/* EXPECTS, HOLDS: of @len bytes */
	uint8_t head[NBD_REQUEST_MAX];	/* what came behind @len bytes */
	uint32_t len;
	/* HOLDS, HEADS: bytes of @piece and of @head that came and were not moved */
	uint32_t pos, end;
};

/* What the next bytes of the stream are. */
enum nbd_input_state {
	NBD_INPUT_HEADER,		/* an option, or the header of a request */
	NBD_INPUT_FILL,			/* the data of a WRITE, which begins behind the last byte */
	NBD_INPUT_WRONG,		/* the payload of a wrong request, which is answered behind
					 * the last byte: a client may not look for a reply while
					 * the client still sends */
	NBD_INPUT_NSTATES
};

enum nbd_input_event {
	NBD_INPUT_EV_WRITE, NBD_INPUT_EV_WRONG, NBD_INPUT_EV_LAST_BYTE, NBD_INPUT_EV_DROP,
};

struct nbd_input {
	atomic_uint state;		/* enum nbd_input_state */
	struct nbd_request_io *q;	/* FILL, WRONG: whose payload comes; else NULL */
	uint32_t left;			/* bytes of that payload to come */
};

/* Calls of lower files to nbd-conn.c. */
struct nbd_conn_ops {
	/* The turn of @conn, or memory, has come. */
	void (*may_read)(struct nbd_conn *conn);
	/* The client says that it leaves. */
	void (*left)(struct nbd_conn *conn);
	/* The client broke the protocol: @conn ends when what came before is answered.  @why is for
	 * the log. */
	void (*broke)(struct nbd_conn *conn, const char *why);
	/* @conn is to end at once.  @why is for the log; NULL: no fault, no line. */
	void (*failed)(struct nbd_conn *conn, const char *why);
	/* A request of @conn has ended without a reply: @conn is broken, or leaves. */
	void (*ended)(struct nbd_conn *conn);
};

struct nbd_conn {
	struct nbd_server *server;
	const struct nbd_conn_ops *ops;
	struct list link;		/* server->conns */
	char name[96];
	uint64_t net;			/* of the client */
	struct unproven_place unproven;	/* in server->unproven */
	uint64_t since_ms;		/* when the connection began */
	enum nbd_conn_state state;
	struct loop_watch watch;

	enum nbd_securing securing;
	struct nbd_stream *stream;	/* NULL: bytes are in clear */
	enum { NBD_BYE_NOT, NBD_BYE_SAID } bye;	/* of @stream */

	/* handshake; NULL from SERVES on */
	struct nbd_negotiation *negotiation;
	struct nbd_ask ask;
	struct nbd_buf out_bytes;	/* sent in front of replies */
	/* transmission */
	void *handle;			/* of the backend; NULL: none is open */
	struct nbd_export export;
	enum nbd_headers headers;
	enum { NBD_STATUS_NONE, NBD_STATUS_CHOSEN } status;
	enum { NBD_LENIENCE_NOT, NBD_LENIENCE_SAID } lenience;	/* in the log */

	/* input */
	struct nbd_block *block;	/* NULL: no input */
	uint32_t in_pos, in_end;	/* bytes of @block that are not parsed */
	uint32_t large;			/* the last request is a WRITE of so many bytes, which is
					 * not used in place; 0: another one */
	struct nbd_ahead ahead;
	struct nbd_input input;
	enum nbd_conn_pause pause;
	struct list turn;		/* server->turns or server->starved */
	uint64_t moved_ms;		/* when bytes last went to or came from the client */

	struct nbd_counts counts;
	/* in flight */
	unsigned nios;
	unsigned npieces;		/* of requests */
	size_t memory;			/* of requests, and ahead */
	struct nbd_pool pool;		/* its memory: no other connection sees bytes of this one */
	/* output */
	struct list out;		/* struct nbd_request_io.link */
	size_t sent;			/* bytes of the first reply, or of @out_bytes */
	int unsent;			/* bytes that wait in @stream */
	enum { NBD_OUT_READY, NBD_OUT_FULL } out_state;	/* FULL: until the socket takes more */
	struct loop_task flush;
	struct loop_timer deadline;	/* LEAVES, LINGERS: of the client's next step */
	struct loop_task end;		/* frees the connection */
};

struct nbd_server {
	struct loop *loop;
	const struct nbd_backend *backend;
	void *arg;
	const struct nbd_tls *tls;	/* NULL: none */
	struct nbd_mem mem;
	struct nbd_pool input;		/* blocks of input, whose bytes no reply has */
	struct loop_timer trim;		/* of memory that rests; while there are connections */
	struct list ios;		/* free ones: struct nbd_request_io.link */
	unsigned nios, npieces;		/* of all connections */
	unsigned nbusy, nholders;	/* connections with nios, with npieces */
	struct list conns;
	unsigned nconns;
	struct unproven unproven;	/* struct nbd_conn.unproven */
	struct list turns, starved;	/* struct nbd_conn.turn */
	struct loop_task turn_wait, turn_run, feed;
	struct loop_timer hunger;	/* while connections are starved */
	enum { NBD_SERVER_RUNS, NBD_SERVER_STOPS } state;
	unsigned unanswered;		/* requests that failed while the server stopped */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- nbd-req.c ---- */

/* Begin without connections in line. */
void nbd_turn_init(struct nbd_server *server);
/* End.  No connection is left. */
void nbd_turn_fini(struct nbd_server *server);
/* Put @conn in line for its turn, or for memory of the server (conn->pause). */
void nbd_turn_queue(struct nbd_conn *conn);
/* Try the connections that wait: memory or requests came back. */
void nbd_turn_feed(struct nbd_server *server);

/* Take a request for @req; NULL: none now, and conn->pause says why. */
struct nbd_request_io *nbd_req_get(struct nbd_conn *conn, const struct nbd_request *req);
/* Take a piece of @len bytes for a request to come.  NULL: none now; conn->pause stays. */
void *nbd_req_piece(struct nbd_conn *conn, size_t len);
/* Give back a piece that no request has. */
void nbd_req_piece_put(struct nbd_conn *conn, void *piece, size_t len);
/* Make @piece, of @len bytes, the memory of @q. */
void nbd_req_piece_set(struct nbd_request_io *q, void *piece, size_t len);
/* Take memory of @len bytes for @q.  False: none now; conn->pause says why. */
bool nbd_req_memory(struct nbd_request_io *q, size_t len);
/* End a request: its memory goes back, and connections that wait for memory are tried. */
void nbd_req_put(struct nbd_request_io *q);
/* Give back a request that was not begun, with its memory; no other connection is tried. */
void nbd_req_unget(struct nbd_request_io *q);
/* Take a block, with one reference, for @have bytes and more that come; NULL: none now, and
 * conn->pause says why. */
struct nbd_block *nbd_block_get(struct nbd_conn *conn, uint32_t have);
/* Drop one reference; the last one gives the block back. */
void nbd_block_put(struct nbd_server *server, struct nbd_block *block);

/* ---- nbd-io.c ---- */

/* Send the waiting replies, as far as the socket takes them (conn->out_state).  0, or -errno of the
 * socket. */
int nbd_out_flush(struct nbd_conn *conn);
/* Give up all output. */
void nbd_out_drop(struct nbd_conn *conn);
/* Have conn->out_bytes, which have grown, sent before the loop sleeps. */
void nbd_out_bytes(struct nbd_conn *conn);
/* Is all output sent? */
static inline bool nbd_out_empty(const struct nbd_conn *conn)
{
	return list_empty(&conn->out) && !conn->out_bytes.len && !conn->unsent;
}

/* A socket whose output is over: what a close() at once would take from the client. */
enum nbd_linger {
	NBD_LINGER_OVER,		/* nothing, or the client has closed */
	NBD_LINGER_INPUT,		/* input came since the last look: more may come */
	NBD_LINGER_OUTPUT,		/* the client's machine has not all bytes yet */
};

/* Drop the input of @fd, a non-blocking stream socket after SHUT_WR, and look.  Any thread. */
enum nbd_linger nbd_linger_look(int fd);

/* May @q be carried out?  0, or -errno for its reply, with q->why. */
int nbd_io_check(struct nbd_request_io *q);
/* Hand @q to the backend.  @q has been checked, and has its data and memory. */
void nbd_io_begin(struct nbd_request_io *q);

/* ---- nbd-ahead.c ---- */

extern const struct fsm nbd_ahead_fsm;

/* Are there bytes that came ahead and were not moved? */
static inline bool nbd_ahead_pending(const struct nbd_conn *conn)
{
	return conn->ahead.state >= NBD_AHEAD_HOLDS;
}

/* No bytes are pending.  Have memory for the data of the next request, if the last one says its
 * length (EXPECTS).  False: nothing is expected, or no memory now. */
bool nbd_ahead_expect(struct nbd_conn *conn);
/* @n bytes came to the memory and the head of EXPECTS; 0: none did. */
void nbd_ahead_came(struct nbd_conn *conn, size_t n);
/* Make the memory in which data has come ahead the memory of @q, a WRITE of @len bytes whose header
 * is all that the block has.  Returns the bytes of data that came; -1: nothing was expected, or
 * another request. */
int64_t nbd_ahead_give(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t len);
/* Bytes are pending.  Move them to @iov, in order, as many as fit.  Returns how many. */
size_t nbd_ahead_move(struct nbd_conn *conn, const struct iovec *iov, size_t niov);
/* Give the memory back if no bytes came. */
void nbd_ahead_rest(struct nbd_conn *conn);
/* Give up memory and bytes. */
void nbd_ahead_drop(struct nbd_conn *conn);

/* ---- nbd-recv.c ---- */

extern const struct fsm nbd_input_fsm;

/* Bytes that came and are not parsed. */
static inline uint32_t nbd_recv_avail(const struct nbd_conn *conn)
{
	return conn->in_end - conn->in_pos;
}

/* Have the bytes that came in a block of NBD_BLOCK_ROOM, in which requests are parsed.  False: no
 * memory now. */
bool nbd_recv_widen(struct nbd_conn *conn);
/* Move bytes that are pending to where recvmsg() would have put them.  False: no memory now. */
bool nbd_recv_move(struct nbd_conn *conn);
/* Receive once; no bytes are pending.  1: the socket may have more; 0: no more; -errno, -EPIPE for
 * the end. */
int nbd_recv_once(struct nbd_conn *conn);
/* Of @q's data the first @have bytes are there, and the rest comes next: @q is begun then. */
void nbd_recv_fill(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t have);
/* Drop the payload of @q, then answer @q with @status. */
void nbd_recv_wrong(struct nbd_conn *conn, struct nbd_request_io *q, int status);
/* WRONG: drop the bytes of the payload that the block has. */
void nbd_recv_skip(struct nbd_conn *conn);
/* Give the block back if all of its bytes are parsed and no WRITE uses them. */
void nbd_recv_rest(struct nbd_conn *conn);
/* Give up all bytes, and the request whose payload was to come.  Connections that wait for memory
 * are tried. */
void nbd_recv_drop(struct nbd_conn *conn);

/* ---- nbd-in.c ---- */

/* Make @conn, which negotiates, the youngest of the unproven: the client is to move, within @ms. */
void nbd_ask_guest(struct nbd_conn *conn, uint64_t ms);

/* Does @conn take input now?  Options are not taken while their answers do not get away. */
bool nbd_in_reads(const struct nbd_conn *conn);
/* Receive and parse, as far as the connection may.  0; or -errno of the socket, -EPIPE for its
 * end. */
int nbd_in_run(struct nbd_conn *conn);
/* Has a part of a request come, and not all of it? */
bool nbd_in_halfway(const struct nbd_conn *conn);
/* Give up all input. */
void nbd_in_drop(struct nbd_conn *conn);

/* ---- nbd-conn.c ---- */

/* Serve the client at @fd, as nbd_server_add() says; after a failure @fd is the caller's. */
int nbd_conn_create(struct nbd_server *server, int fd, const char *name, uint64_t net);
/* The same as nbd_server_serve() says. */
int nbd_conn_serve(struct nbd_server *server, int fd, const char *name, void *handle);
/* Read no more input; the connection is closed when all is answered. */
void nbd_conn_leave(struct nbd_conn *conn);
/* End the connection at once.  @why is logged; NULL: no fault, no line. */
void nbd_conn_break(struct nbd_conn *conn, const char *why);
/* The end() of server->unproven. */
void nbd_conn_unproven_ends(struct unproven_place *place, enum unproven_why why);
/* Give the client @ms for its next step. */
static inline void nbd_conn_deadline(struct nbd_conn *conn, uint64_t ms)
{
	loop_timer_set(conn->server->loop, &conn->deadline, clock_now_ms() + ms);
}

#endif
