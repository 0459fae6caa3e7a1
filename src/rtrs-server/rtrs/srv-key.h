/* SPDX-License-Identifier: BSD-3-Clause */
/* --invalidate=always: the keys of a path's chunks, each good for one request (doc/protocol.md 3.3,
 * 4; doc/decisions.md D8).
 *
 * When a request arrives, its chunk's key is taken away on the connection that it came on.  Only
 * then the request is looked at.  Nobody but us reaches the chunk until the answer, which tells the
 * next key.  Each chunk has a window of src/frwr, whose owner is the thread whose connection has
 * the request (srv_req.stage).
 *
 * RACE: a client may have an answer, and send the next request for that chunk on another
 * connection, while the thread that posts the answer has not come to posted() yet.  The key cannot
 * be taken away before that.  So such a request waits its turn (struct srv_turn), and is sent to
 * its own thread when the post is over.  On an RDMA device, whose queues have no order between
 * them, the post is over when the answer, which is behind the key, has completed.  On one
 * connection no request has to wait. */
#ifndef SRV_KEY_H
#define SRV_KEY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "conf.h"
#include "reactor.h"
#include "rtrs-wr.h"

struct fab_conn;
struct fab_cqe;
struct ibv_wc;
struct srv_chunks;
struct srv_reply;
struct srv_con;
struct srv_path;
struct srv_req;

/* Between the thread that posts an answer and that of the next request for the same chunk. */
struct srv_turn {
	atomic_uint state;		/* how many SRV_TURN_POST are not over; SRV_TURN_AWAITED */
};

#define SRV_TURN_AWAITED 1u
#define SRV_TURN_POST 2u

/* An answer is about to be posted.  Before the request is given up to the next (srv_req.stage).
 * Earlier ones of the same thread may not be over yet. */
static inline void srv_turn_post(struct srv_turn *t)
{
	atomic_fetch_add_explicit(&t->state, SRV_TURN_POST, memory_order_relaxed);
}

/* One is over.  True: somebody awaits that, all are over, and he is to be told. */
static inline bool srv_turn_posted(struct srv_turn *t)
{
	/* ORDER: the post happens before whatever the next one does; what he has stored is seen
	 * here. */
	if (atomic_fetch_sub_explicit(&t->state, SRV_TURN_POST, memory_order_acq_rel) !=
	    (SRV_TURN_POST | SRV_TURN_AWAITED))
		return false;
	/* Nobody else looks at it now. */
	atomic_store_explicit(&t->state, 0, memory_order_relaxed);
	return true;
}

/* The next request has come; one at a time.  True: go on.  False: its turn will be told. */
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

/* No post will be over any more.  True: as srv_turn_posted(). */
static inline bool srv_turn_break(struct srv_turn *t)
{
	return atomic_exchange_explicit(&t->state, 0, memory_order_acq_rel) & SRV_TURN_AWAITED;
}

/* The windows of @path, bound to its chunks by requests on connection 0; c->regions tell their
 * keys.  All connections are there, none has a receive yet.  Control thread.  0, or -errno and the
 * path is to be failed. */
int srv_key_open(struct srv_path *path);

/* @req, which has arrived and is counted in @con->inflight.  srv_req_execute() follows, from here
 * or a later pass; or srv_req_finish() when its connection is dead by then.  Thread of @con. */
void srv_key_revoke(struct srv_req *req);
/* srv_key_revoke() of a request whose turn has come. */
void srv_key_revoke_now(struct srv_req *req);
/* Revoke what has arrived: @con's task, at the end of a pass, and when it has drained. */
void srv_key_revoke_task(struct loop_task *task);

/* Give the chunk of @req its next key: fills rsp->new_rkey, rkey_rsp and rearm.  0, and
 * srv_key_posted() is to follow; or -errno: the connection is to be failed.  Thread of
 * @req->con. */
int srv_key_rearm(struct srv_req *req, struct rtrs_rsp *rsp);
/* @reply is its answer, filled with that: have its end told where it takes that. */
void srv_key_answer(struct srv_req *req, struct srv_reply *reply);
/* The chain with rsp->rearm in it was posted, which had this result.  Right after that, on the same
 * thread; nothing but the pointer is known to be @req's any more. */
void srv_key_posted(struct srv_req *req, int rc);
/* The completion of an answer that srv_key_answer() has marked. */
void srv_key_wc_answered(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);
/* All connections of the path of @req have drained: no completion will tell @req of its turn.
 * Control thread. */
void srv_key_end_turn(struct srv_req *req);

#endif
