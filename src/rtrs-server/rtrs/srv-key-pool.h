/* SPDX-License-Identifier: BSD-3-Clause */
/* The protection of the requests of a path (doc/decisions.md D8), and the windows that some kinds
 * of it need. */
#ifndef SRV_KEY_POOL_H
#define SRV_KEY_POOL_H

struct fab_conn;
struct srv_chunks;

/* Decide what protects the requests of a path on the device of @conn, whose protection domain
 * exists: c->invalidate, which becomes ALWAYS, COPY or NEVER, and c->key_mode; and make what that
 * needs of the device, before the client is told.
 *	auto	ALWAYS on RDMA devices that have windows in hardware, else COPY
 *	always	ALWAYS on devices that have windows or give regions another key, else COPY
 * and COPY where other paths have all of the device's windows.  ALWAYS and COPY protect alike.  The
 * reason is logged when it is news.  A device that offers windows and has failed to use them
 * (frwr.h): auto is COPY; always is -EOPNOTSUPP, with the reason in c->refused.  Control thread.  0
 * or -errno. */
int srv_key_pool_choose(struct srv_chunks *c, struct fab_conn *conn);

/* What people call the protection of @c: "always" (each request has another key), "suspend" (the
 * key is closed while a request is worked on), "copy" or "never". */
const char *srv_key_pool_word(const struct srv_chunks *c);

/* All connections have drained and none is destroyed; and before the regions go.  Control thread;
 * idempotent. */
void srv_key_pool_close(struct srv_chunks *c, const char *name);

#endif
