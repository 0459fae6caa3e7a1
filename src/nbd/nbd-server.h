/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's side of NBD on a loop, over any stream socket: TCP, a unix socket, one end of a
 * socket pair.  What the exports are is the backend's business (struct nbd_backend).
 *
 * All of it runs on the loop's thread; no function blocks.  Memory for data is bounded for one
 * connection and for the whole server.  A connection that is out of it is not read until some
 * comes back.  No request allocates in the steady state.  Connections take turns: each starts a few
 * requests, then the next one does. */
#ifndef NBD_SERVER_H
#define NBD_SERVER_H

#include "loop.h"
#include "nbd-msg.h"

struct nbd_server;
struct nbd_conn;

/* A request for the backend.  The engine's until start(), the backend's until nbd_io_done(). */
struct nbd_io {
	enum nbd_cmd cmd;		/* never DISC; CACHE comes as a READ */
	uint16_t flags;			/* NBD_CMD_FLAG_* */
	void *handle;
	uint64_t off, len;		/* checked: inside the export */
	/* READ: its target, WRITE: its source, @len bytes.  BLOCK_STATUS: NBD_IO_SCRATCH bytes for
	 * the backend.  Else NULL. */
	void *buf;
	void *own;			/* nbd_backend.io_size bytes, aligned as malloc() does */
};
#define NBD_IO_SCRATCH 4096u

/* A question for the backend, which answers it once. */
struct nbd_ask;

/* Functions of the backend, for @arg as it was given to nbd_server_create(). */
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
};

void nbd_ask_name(struct nbd_ask *ask, const char *name);
/* @status: 0, or -errno with @why, a line for the client, which is copied. */
void nbd_ask_listed(struct nbd_ask *ask, int status, const char *why);
void nbd_ask_opened(struct nbd_ask *ask, int status, const char *why, void *handle);

/* BLOCK_STATUS: the next @len bytes, from io->off on, are @flags, NBD_STATE_*.  False: no more is
 * wanted. */
bool nbd_io_extent(struct nbd_io *io, uint64_t len, uint32_t flags);
/* @io has ended with @status, 0 or -errno. */
void nbd_io_done(struct nbd_io *io, int status);

#define NBD_SERVER_MEMORY_MIN (64u << 20)	/* bytes: one READ */

struct nbd_server_conf {
	size_t memory;			/* bytes for data, NBD_SERVER_MEMORY_MIN at least */
	const struct nbd_backend *backend;
	void *arg;
};

/* Make a server on @loop.  Its thread, or before that runs.  0 or -ENOMEM. */
int nbd_server_create(struct nbd_server **server, struct loop *loop,
		      const struct nbd_server_conf *conf);
/* No connection is left. */
void nbd_server_destroy(struct nbd_server *server);
/* Serve the client at @fd, a non-blocking stream socket, which the server closes in any case.
 * @name is for the log, and copied.  0 or -errno. */
int nbd_server_add(struct nbd_server *server, int fd, const char *name);
/* Read no more requests, answer those that are in flight, and close all connections.  An answer
 * that would be an error is not given: the client finds its connection closed, and asks the next
 * server.  @stopped is called when no connection is left, perhaps at once; @fn may be NULL. */
void nbd_server_stop(struct nbd_server *server, void (*stopped)(void *arg), void *arg);
/* Connections there are. */
unsigned nbd_server_count(const struct nbd_server *server);

#endif
