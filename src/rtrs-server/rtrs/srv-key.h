/* SPDX-License-Identifier: BSD-3-Clause */
/* --invalidate=always: the keys of a path's chunks, each good for one request (doc/protocol.md
 * 3.3, 4; doc/decisions.md D8).
 *
 * When a request arrives, the server takes the chunk's key away on the connection of the request,
 * and looks at the request only afterwards.  Only the server reaches the chunk until the answer,
 * which tells the next key.  Each chunk has a window of src/frwr; the window belongs to the thread
 * whose connection has the request (srv_req.stage).
 *
 * RACE: a client may have an answer, and send the next request for the same chunk on another
 * connection, before the thread that posts the answer has reached posted().  Only after posted()
 * the key can be taken away.  So the next request waits for a turn (struct srv_turn), and is sent
 * to the request's own thread when the post is over.  The queues of an RDMA device have no order
 * between each other.  There the post is over when the answer, which is behind the key, has
 * completed.  On one connection no request has to wait. */
#ifndef SRV_KEY_H
#define SRV_KEY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "conf.h"
#include "reactor.h"
#include "rtrs-req.h"

struct fab_conn;
struct fab_cqe;
struct ibv_wc;
struct srv_chunks;
struct srv_reply;
struct srv_con;
struct srv_path;
struct srv_req;

/* Orders two threads: the thread that posts an answer, and the thread of the next request for the
 * same chunk. */
struct srv_turn {
	atomic_uint state;		/* SRV_TURN_POST times the posts that are not over;
					 * SRV_TURN_AWAITED */
};

#define SRV_TURN_AWAITED 1u
#define SRV_TURN_POST 2u

/* Count an answer that is about to be posted.  Call before the request is given up to the next
 * (srv_req.stage).  Earlier posts of the same thread may not be over yet. */
static inline void srv_turn_post(struct srv_turn *t)
{
	atomic_fetch_add_explicit(&t->state, SRV_TURN_POST, memory_order_relaxed);
}

/* End a post.  True: the next request waits, and all posts are over: the caller sends the request
 * to its thread. */
static inline bool srv_turn_posted(struct srv_turn *t)
{
	/* ORDER: the post happens before everything that the next request's thread does, and this
	 * thread sees the stores of the next request. */
	if (atomic_fetch_sub_explicit(&t->state, SRV_TURN_POST, memory_order_acq_rel) !=
	    (SRV_TURN_POST | SRV_TURN_AWAITED))
		return false;
	/* Only this thread looks at the state now. */
	atomic_store_explicit(&t->state, 0, memory_order_relaxed);
	return true;
}

/* Ask for the turn of the next request, one at a time.  True: go on.  False: the thread that ends
 * the post will send the request on. */
static inline bool srv_turn_next(struct srv_turn *t)
{
	unsigned state = atomic_load_explicit(&t->state, memory_order_acquire);

	while (state) {
		if (atomic_compare_exchange_weak_explicit(&t->state, &state,
							  state | SRV_TURN_AWAITED,
							  memory_order_acq_rel,
							  memory_order_acquire))
			return false;
	}
	return true;
}

/* No post will be over any more.  Returns true as srv_turn_posted() does. */
static inline bool srv_turn_break(struct srv_turn *t)
{
	return atomic_exchange_explicit(&t->state, 0, memory_order_acq_rel) & SRV_TURN_AWAITED;
}

/* Map the windows of @path, and bind the windows to their chunks by requests on connection 0;
 * c->regions get the keys.  All connections are up, and none has a receive yet.  Control thread.
 * 0, or -errno and the caller fails the path. */
int srv_key_open(struct srv_path *path);

/* Take the key of @req away, a request that has arrived and is counted in @con->inflight.
 * srv_req_execute() follows, from here or a later pass; or srv_req_finish(), if the connection is
 * dead by then.  Thread of @con. */
void srv_key_revoke(struct srv_req *req);
/* srv_key_revoke() of a request whose turn has come. */
void srv_key_revoke_now(struct srv_req *req);
/* Take away the keys of the requests that have arrived: @con's task, at the end of a pass, and
 * when @con has drained. */
void srv_key_revoke_task(struct loop_task *task);

/* Give the chunk of @req its next key: fills rsp->new_rkey, rkey_rsp and rearm.  0, and
 * srv_key_posted() is to follow; or -errno, and the caller fails the connection.  Thread of
 * @req->con. */
int srv_key_rearm(struct srv_req *req, struct rtrs_rsp *rsp);
/* Attach to @reply, the answer of @req with the next key, the callback for the completion, if the
 * key needs one. */
void srv_key_answer(struct srv_req *req, struct srv_reply *reply);
/* Report that the chain with rsp->rearm was posted, with the result @rc.  Call right after the
 * post, on the same thread: @req may already serve another request, and only the pointer is
 * safe. */
void srv_key_posted(struct srv_req *req, int rc);
/* Handle the completion of an answer that srv_key_answer() has marked. */
void srv_key_wc_answered(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);
/* End the wait of @req for its turn: all connections of the path have drained, so no completion
 * will end the wait.  Control thread. */
void srv_key_end_turn(struct srv_req *req);

#endif
