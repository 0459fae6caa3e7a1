/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's side of NBD on a loop, over any stream socket: TCP, a unix socket, one end of a
 * socket pair.  The backend has the exports (struct nbd_backend).
 *
 * All functions run on the loop's thread, and none blocks.  Memory for data is bounded for each
 * connection and for the whole server.  A connection without memory is not read until some comes
 * back.  No request allocates in the steady state.  Connections take turns: each starts a few
 * requests, then the next connection does. */
#ifndef NBD_SERVER_H
#define NBD_SERVER_H

#include "unproven.h"
#include "loop.h"
#include "nbd-msg.h"
#include "nbd-tls.h"

struct nbd_server;
struct nbd_conn;

/* A request for the backend.  The engine owns the request until start(), the backend until
 * nbd_io_done(). */
struct nbd_io {
	enum nbd_cmd cmd;		/* never DISC; CACHE comes as a READ */
	uint16_t flags;			/* NBD_CMD_FLAG_* */
	void *handle;
	uint64_t off, len;		/* checked: inside the export */
	/* READ: its target, WRITE: its source, @len bytes.  BLOCK_STATUS: NBD_IO_SCRATCH bytes for
	 * the backend.  Else NULL. */
	void *buf;
	void *own;			/* nbd_backend.io_size bytes, aligned as malloc() does */
	/* The backend's, before nbd_io_done() with an error.  LASTS: no other request and no other
	 * server will tell of this error, so the client hears of it while the server stops, too. */
	enum { NBD_IO_MAY_PASS, NBD_IO_LASTS } error;
};
#define NBD_IO_SCRATCH 4096u

/* A question for the backend, to be answered once. */
struct nbd_ask;

/* Functions of the backend.  @arg is the argument of nbd_server_create(). */
struct nbd_backend {
	size_t io_size;
	/* Answer by nbd_ask_name() for each export, then nbd_ask_listed(). */
	void (*list)(void *arg, struct nbd_ask *ask);
	/* Answer by nbd_ask_opened().  @name lives until then; "" is the default export. */
	void (*open)(void *arg, struct nbd_ask *ask, const char *name);
	/* Describe the export that is open as @handle. */
	void (*info)(void *handle, struct nbd_export *export);
	/* No IO of @handle is in flight. */
	void (*close)(void *handle);
	/* Begin @io, and call nbd_io_done(), perhaps at once. */
	void (*start)(struct nbd_io *io);
	/* The socket has the reply to a request of @handle whose error LASTS: on this machine the
	 * client gets it, whatever happens to the server.  NULL: nothing to do. */
	void (*told)(void *handle);
};

/* Answer list(): an export has this name, which is copied. */
void nbd_ask_name(struct nbd_ask *ask, const char *name);
/* End the answer to list().  @status: 0, or -errno with @why, a line for the client, which is
 * copied. */
void nbd_ask_listed(struct nbd_ask *ask, int status, const char *why);
/* Answer open().  @status as above; with 0 the engine owns @handle until close(). */
void nbd_ask_opened(struct nbd_ask *ask, int status, const char *why, void *handle);

/* BLOCK_STATUS: the next @len bytes, from io->off on, have @flags, NBD_STATE_*.  False: no more
 * extents are wanted. */
bool nbd_io_extent(struct nbd_io *io, uint64_t len, uint32_t flags);
/* Would the client of @io be sent an error that @io ends with now? While the server stops, only one
 * that lasts (nbd_io.error). */
bool nbd_io_error_is_sent(const struct nbd_io *io);
/* May a long answer to @io be continued?  False when the connection is broken, or the server stops:
 * end @io with what is known. */
bool nbd_io_may_go_on(const struct nbd_io *io);
/* End @io with @status, 0 or -errno.  The engine owns @io again. */
void nbd_io_done(struct nbd_io *io, int status);

/* Guests are connections that have opened no export: anybody may be one.  Of two of them the engine
 * knows whether their nets, numbers of the program, are the same. */
#define NBD_GUESTS 256u			/* for all servers of a program together */
#define NBD_NET_GUESTS 64u		/* of them, of one net */
#define NBD_NET_LOCAL UNPROVEN_NET_UNBOUND	/* the net that has no such limit: this machine */

#define NBD_SERVER_MEMORY_MIN (64u << 20)	/* bytes: one READ */

struct nbd_server_conf {
	/* Bytes for data, NBD_SERVER_MEMORY_MIN at least.  Input may come on top while one request
	 * alone has memory. */
	size_t memory;
	const struct nbd_backend *backend;
	void *arg;
	unsigned guests, net_guests;	/* at most: the server's share, 1 at least.  One more drives
					 * out an older one */
	const struct nbd_tls *tls;	/* outlives the server; NULL: none */
};

/* Make a server on @loop.  The thread of the loop, or before the loop runs.  0 or -ENOMEM. */
int nbd_server_create(struct nbd_server **out, struct loop *loop,
		      const struct nbd_server_conf *conf);
/* Have the server @memory bytes from now on, as of nbd_server_conf: requests that wait for memory
 * go on, or bytes in use beyond it go as they come back.  The thread of the loop. */
void nbd_server_set_memory(struct nbd_server *server, size_t memory);
/* Free the server.  No connection is left. */
void nbd_server_destroy(struct nbd_server *server);
/* Serve the client at @fd, a non-blocking stream socket, which the server closes, after a failure,
 * too.  @name is for the log, and copied; @net is the net of the client.  0 or -errno. */
int nbd_server_add(struct nbd_server *server, int fd, const char *name, uint64_t net);
/* The same without a negotiation, for a client that has been told by other means what the backend's
 * info() says of @handle, which the server closes, after a failure, too.  Requests come at once,
 * with compact headers, and get simple replies. */
int nbd_server_serve(struct nbd_server *server, int fd, const char *name, void *handle);
/* Ask the backend's info() again: exports may have grown, and requests may go to their new end.
 * Clients do not learn of it here. */
void nbd_server_look(struct nbd_server *server);
/* Read no more requests, answer the requests in flight, and close all connections.  In the place of
 * an error that may pass (nbd_io.error) a client finds its connection closed, and asks the next
 * server.  @stopped is called when no connection is left, perhaps at once; @fn may be NULL. */
void nbd_server_stop(struct nbd_server *server, void (*stopped)(void *arg), void *arg);
/* The number of connections. */
unsigned nbd_server_count(const struct nbd_server *server);
/* The number of requests that failed while the server stopped, and so got no reply. */
unsigned nbd_server_unanswered(const struct nbd_server *server);

/* ---- who is connected ---- */

enum nbd_client_state {
	NBD_CLIENT_NEGOTIATES,		/* no export is open yet */
	NBD_CLIENT_OPEN,
	NBD_CLIENT_LEAVES,		/* no request is read any more; replies go out */
};

/* Requests that have ended, with an error, too; bytes are those of successes. */
struct nbd_counts {
	uint64_t reads, read_bytes;
	uint64_t writes, write_bytes;
	uint64_t others;
};

/* A connection at the moment of a visit. */
struct nbd_client {
	const char *name;		/* that of nbd_server_add() */
	int fd;				/* only to be looked at */
	enum nbd_client_state state;
	uint64_t since_ms;		/* clock_now_ms() of nbd_server_add() */
	struct nbd_stream *stream;	/* NULL: bytes are in clear */
	void *handle;			/* of the backend; NULL: none is open */
	struct nbd_counts counts;
	unsigned inflight;		/* requests */
};

enum nbd_visit {
	NBD_VISIT_KEEP,
	NBD_VISIT_END,			/* end the connection at once; the visitor has told why */
};

/* Call @visit for each connection whose socket is open, in the order of nbd_server_add().  @visit
 * calls no function of the engine, and @client ends with the call. */
void nbd_server_visit(struct nbd_server *server,
		      enum nbd_visit (*visit)(void *arg, const struct nbd_client *client),
		      void *arg);

#endif
