/* SPDX-License-Identifier: BSD-3-Clause */
/* The protection of the requests of a path (doc/decisions.md D8), and the windows for the kinds of
 * protection that use windows. */
#ifndef SRV_KEY_POOL_H
#define SRV_KEY_POOL_H

struct fab_conn;
struct srv_chunks;

/* Decide how the requests of a path on the device of @conn are protected, and make the objects of
 * the device for this, before the client is told.  The protection domain exists.  Sets
 * c->invalidate, which becomes ALWAYS, COPY or NEVER, and c->key_mode.
 *	auto	ALWAYS on RDMA devices that have windows in hardware, else COPY
 *	always	ALWAYS on devices that have windows or give regions another key, else COPY
 * COPY also if other paths have all windows of the device.  ALWAYS and COPY protect alike.  The
 * reason is logged when it is news.  On a device that offers windows and has failed to use windows
 * (frwr.h), auto is COPY; always is -EOPNOTSUPP, with the reason in c->refused.  Control thread.
 * 0 or -errno. */
int srv_key_pool_choose(struct srv_chunks *c, struct fab_conn *conn);

/* The name of the protection of @c for people: "always" (each request has another key), "suspend"
 * (the key is closed while the server works on a request), "copy" or "never". */
const char *srv_key_pool_word(const struct srv_chunks *c);

/* Give the windows back, after all connections have drained, and before any is destroyed and the
 * regions go.  Control thread; idempotent. */
void srv_key_pool_close(struct srv_chunks *c, const char *name);

#endif
