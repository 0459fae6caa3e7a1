/* SPDX-License-Identifier: BSD-3-Clause */
/* --invalidate=always: the keys of a path's chunks, each good for one request (protocol.md 3.3, 4).
 *
 * A request arrives; its chunk's key is taken away on the connection that it came on; only when that is
 * done the request is looked at, and nobody but us reaches the chunk until the answer, which tells the
 * next key.  So the storage works in the chunk itself, and no copy is made.
 *
 * Each chunk has a window of src/frwr, good on all connections of the path, because clients use any
 * chunk on any of them.  Its owner is the thread whose connection has the request (srv_req.busy).
 *
 * RACE: a client may have an answer, and send the next request for that chunk on another connection,
 * while the thread that posts the answer, and those of a whole pass with it, has not come to posted()
 * yet.  The key cannot be taken away before that, so such a request waits its turn (struct srv_turn): it
 * is sent to its own thread when the post is over. */
#ifndef SRV_KEY_H
#define SRV_KEY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "conf.h"
#include "reactor.h"
#include "rtrs-wr.h"

struct fab_conn;
struct srv_chunks;
struct srv_con;
struct srv_path;
struct srv_req;

/* Between the thread that posts an answer and that of the next request for the same chunk. */
struct srv_turn {
	atomic_uint state;
};

enum { SRV_TURN_FREE, SRV_TURN_POSTING, SRV_TURN_AWAITED };

/* An answer is about to be posted.  Before the request is given up to the next (srv_req.busy). */
static inline void srv_turn_post(struct srv_turn *t)
{
	atomic_store_explicit(&t->state, SRV_TURN_POSTING, memory_order_relaxed);
}

/* It is.  True: somebody awaits that, and is to be told. */
static inline bool srv_turn_posted(struct srv_turn *t)
{
	/* ORDER: the post happens before whatever the next one does; what he has stored is seen here. */
	return atomic_exchange_explicit(&t->state, SRV_TURN_FREE, memory_order_acq_rel) ==
	       SRV_TURN_AWAITED;
}

/* The next request has come; one at a time.  True: go on.  False: its turn will be told. */
static inline bool srv_turn_next(struct srv_turn *t)
{
	unsigned state = SRV_TURN_POSTING;

	return !atomic_compare_exchange_strong_explicit(&t->state, &state, SRV_TURN_AWAITED,
							memory_order_acq_rel, memory_order_acquire);
}

/* Decide what protects the requests of a path on the device of @conn, whose protection domain exists:
 * c->invalidate, which becomes ALWAYS, COPY or NEVER, and c->key_mode.
 *	auto	ALWAYS on RDMA devices that have windows in hardware, else COPY
 *	always	ALWAYS on devices that have windows or give regions another key, else COPY
 * These two protect alike.  The reason is logged when it is news.  Control thread.  0 or -errno. */
int srv_keys_choose(struct srv_chunks *c, struct fab_conn *conn);

/* The windows of @path, bound to its chunks by requests on connection 0; c->regions tell their
 * keys.  All connections are there, none has a receive yet.  Control thread.  0, or -errno and the
 * path is to be failed. */
int srv_keys_open(struct srv_path *path);
/* All connections have drained and none is destroyed; and before the regions go.  Control thread;
 * idempotent. */
void srv_keys_close(struct srv_chunks *c, const char *name);

/* @req, which is busy and counted in @con->inflight, has arrived.  srv_io_execute() follows, from here
 * or a later pass; or srv_io_finish() when its connection is dead by then.  Thread of @con. */
void srv_key_revoke(struct srv_req *req);
/* Revoke what has arrived: @con's task, at the end of a pass, and when it has drained. */
void srv_key_revoke_task(struct reactor_task *task);

/* Give the chunk of @req its next key: fills rsp->new_rkey, rkey_rsp and rearm.  0, and
 * srv_key_posted() is to follow; or -errno: the connection is to be failed.  Thread of @req->con. */
int srv_key_rearm(struct srv_req *req, struct rtrs_rsp *rsp);
/* The chain with rsp->rearm in it was posted, which had this result.  Right after that, on the same
 * thread; nothing but the pointer is known to be @req's any more. */
void srv_key_posted(struct srv_req *req, int rc);

#endif
