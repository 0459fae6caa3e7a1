/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a session, at its start and while it runs.  Service thread, or before the session is
 * started.
 *
 * A path is never freed before its session, because requests of other threads may still look at it;
 * one that was removed is CLOSED and waits for the next address. */
#ifndef CLT_PATHS_H
#define CLT_PATHS_H

#include "clt-sess.h"

/* Do both lead from the same address to the same one?  Any thread. */
static inline bool clt_paths_same(const struct clt_sess_addr *a, const struct clt_sess_addr *b)
{
	return fab_addr_same(&a->src, &b->src) && fab_addr_same(&a->dst, &b->dst);
}
/* Add a path, IDLE: clt_path_start() connects the path.  @ret may be NULL.  0; -EEXIST: there is
 * one between these addresses; -ENOSPC: there are CLT_PATHS_MAX, some of which may have been
 * removed and had another provider; -EAGAIN: and the one whose place it would have is not closed
 * yet; -ENOMEM; or as clt_path_init(). */
int clt_paths_add(struct clt_sess *sess, const struct clt_sess_addr *addr, struct clt_path **ret);
/* The path between the addresses of @addr, over its provider; or NULL. */
struct clt_path *clt_paths_find(struct clt_sess *sess, const struct clt_sess_addr *addr);
/* Disconnect @path, and forget it.  Requests in flight there go over the other paths.  0, or
 * -EBUSY: it is the last. */
int clt_paths_remove(struct clt_sess *sess, struct clt_path *path);
/* All of them are IDLE or CLOSED. */
void clt_paths_fini(struct clt_sess *sess);

#endif
