/* SPDX-License-Identifier: BSD-3-Clause */
/* The backend of the NBD server (nbd-server.h) on the client library: exports are devices of the
 * client, and a request of NBD is one of the client's (dev-req.h).  Each loop has a relay of its
 * own.  The thread of that loop, unless a function says otherwise. */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>

#include "client.h"
#include "clt-conf.h"
#include "dev.h"
#include "loop.h"
#include "nbd-server.h"

struct relay {
	struct loop *loop;
	struct client *clt;
	const struct clt_conf *conf;
	bool readonly;			/* whatever the server allows */
	/* private */
	struct list ready;		/* requests that are to be stepped */
	struct loop_task step;
};

extern const struct nbd_backend relay_backend;

/* @g is the argument of relay_backend on @loop, one of the session's.  @clt and @conf outlive
 * @g. */
void relay_init(struct relay *g, struct loop *loop, struct client *clt,
		const struct clt_conf *conf, bool readonly);

/* A handle on @dev, which stays the caller's: for nbd_server_serve() with another close() than that
 * of relay_backend.  NULL: no memory.  Any thread. */
void *relay_handle_create(struct relay *g, struct dev *dev);
/* nbd_backend.told() of a program whose session outlives its process (clt-kept.h). */
void relay_told(void *handle);
/* The relay of @handle.  Constant. */
struct relay *relay_of(const void *handle);
/* Free @handle, of which no request is in flight. */
void relay_handle_destroy(void *handle);

/* The name of the export that is open as @handle, and how: "rw", "ro" or "migration".  Constant. */
const char *relay_name(const void *handle);
const char *relay_mode(const void *handle);

#endif
