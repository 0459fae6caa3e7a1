/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because the simulation has it without the rest of the gateway.
 *
 * The backend of the NBD server: exports are devices of the client, and a request of NBD is one of
 * the client's (dev-req.h).  Each loop has a backend of its own.  The thread of that loop. */
#ifndef GATE_EXPORT_H
#define GATE_EXPORT_H

#include "client.h"
#include "clt-conf.h"
#include "nbd-server.h"

struct gate_exports {
	struct loop *loop;
	struct client *clt;
	const struct clt_conf *conf;
	bool readonly;			/* whatever the server allows */
	/* private */
	struct list ready;		/* requests that are to be stepped */
	struct loop_task step;
};

extern const struct nbd_backend gate_backend;

/* @g is the argument of gate_backend on @loop, one of the session's.  @clt and @conf outlive
 * @g. */
void gate_exports_init(struct gate_exports *g, struct loop *loop, struct client *clt,
		       const struct clt_conf *conf, bool readonly);

/* The name of the export that is open as @handle, and how: "rw", "ro" or "migration".  Constant. */
const char *gate_export_name(const void *handle);
const char *gate_export_mode(const void *handle);

#endif
