/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a session, made at the start, and added and removed while the session runs.  Service
 * thread, or before the session is started.
 *
 * A path is never freed before the session, because requests of other threads may still look at the
 * path.  A removed path is CLOSED and waits for the next address. */
#ifndef CLT_PATHS_H
#define CLT_PATHS_H

#include "clt-sess.h"

/* ---- the text of a path: any thread ----
 * As users write: "[SRC@]DST[:PORT]", with a transport in front or without, or "unix:PATH". */

/* A user's choice of the transport: "auto", "rdma", "tcp". */
enum clt_transport { CLT_TRANSPORT_AUTO, CLT_TRANSPORT_RDMA, CLT_TRANSPORT_TCP, CLT_TRANSPORTS };
extern const char *const clt_transport_names[CLT_TRANSPORTS];

#define CLT_ADDR_TEXT_MAX 1023		/* bytes: two hosts, a transport and a port */

/* Does @text name neither a transport nor a socket of this machine? */
bool clt_paths_is_open(const char *text);
/* Read @text into @addr, over @provider unless @text names another transport; a name stays one.  A
 * @text of more than CLT_ADDR_TEXT_MAX bytes is refused, unless "unix:PATH".  0, or -1 with the
 * reason in @err. */
int clt_paths_parse(const char *text, const struct fab_provider *provider,
		    struct clt_sess_addr *addr, char *err, size_t errlen);

/* Write to @buf the text of @addr with its transport, which reads back as @addr.  Returns @buf. */
const char *clt_paths_url(const struct clt_sess_addr *addr, char buf[CLT_ADDR_TEXT_MAX + 1]);

/* ---- the paths ---- */

/* Do @a and @b lead from the same end to the same end?  Of a name the name counts.  Any thread. */
bool clt_paths_same(const struct clt_sess_addr *a, const struct clt_sess_addr *b);
/* Add a path, IDLE: clt_path_start() connects the path.  @ret may be NULL.  Returns 0, or as
 * clt_path_init(), or an error.  -EEXIST: a path between these addresses exists.  -ENOSPC: the
 * session has CLT_PATHS_MAX paths, counting removed paths of another provider.  -EAGAIN: the same,
 * but a removed path is about to close: try again. */
int clt_paths_add(struct clt_sess *sess, const struct clt_sess_addr *addr, struct clt_path **ret);
/* Find the path between the addresses of @addr, over the provider of @addr; or NULL. */
struct clt_path *clt_paths_find(struct clt_sess *sess, const struct clt_sess_addr *addr);
/* Disconnect @path, and forget @path.  Requests in flight on @path go over the other paths.  0, or
 * -EBUSY: @path is the last. */
int clt_paths_remove(struct clt_sess *sess, struct clt_path *path);
/* Free all paths, which are IDLE or CLOSED. */
void clt_paths_fini(struct clt_sess *sess);

#endif
