/* SPDX-License-Identifier: BSD-3-Clause */
/* A request on the server: from an immediate through the fence to the storage or to the control
 * thread, and back to an answer (doc/protocol.md 3.3, 3.4).
 *
 * A request belongs to the thread of its connection from arrival to answer.  Only a control
 * message, and IO behind the end of its export, visit the control thread in between.  A request is
 * answered, or its connection is dead: a request is never dropped.
 *
 *	IO: idle > arrived [> revoking] > fenced [> size > sized] [> limit] [> round]
 *	[> buffer] > storage > reply > idle
 *	SESS_INFO, OPEN, CLOSE: idle > arrived [> revoking] > control > reply > idle
 *
 * If a request waits for another thread, this thread sends the request home by req->msg, and the
 * stage says what runs there (srv-req.c). */
#ifndef SRV_REQ_H
#define SRV_REQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "fabric.h"
#include "frwr.h"
#include "list.h"
#include "loop.h"
#include "rtrs-req.h"
#include "srv-con.h"
#include "srv-fence.h"
#include "srv-key.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

enum srv_req_stage {
	SRV_REQ_IDLE,		/* the client has the chunk */
	SRV_REQ_ARRIVED,	/* --invalidate=always: waits for its turn, or on srv_con.revokes */
	SRV_REQ_REVOKING,	/* --invalidate=always: the end of the chunk's key is posted */
	/* in the fence; from here to CONTROL: the stages of srv_ops.resume() */
	SRV_REQ_FENCED,		/* an earlier request under this buf_id may be in the storage */
	SRV_REQ_SIZE,		/* behind the end of the export: the control thread asks the
				 * storage for the size */
	SRV_REQ_SIZED,		/* the storage has told the size */
	SRV_REQ_LIMIT,		/* waits for the limits of the export */
	SRV_REQ_ROUND,		/* waits for a round (srv-drr.h) */
	SRV_REQ_BUFFER,		/* waits for private memory */
	SRV_REQ_STORAGE,
	/* out of the fence, or never in the fence */
	SRV_REQ_CONTROL,	/* with the control thread */
	SRV_REQ_REPLY,		/* finished: on the way to srv_con.replies, or there */
	SRV_REQ_TRIMMED,	/* no request: its chunk is given back to the system (srv-trim.c) */
	SRV_REQ_NSTAGES
};

/* A request.  Each chunk has one, allocated with the path, zeroed, and made by the chunk's first
 * request, so that a path costs little before: the first member of the struct of srv_ops. */
struct srv_req {
	/* RACE: a client may, against the rules, use a buf_id on two connections at once.  The
	 * thread that moves the stage from IDLE owns the request until the stage is IDLE again. */
	_Atomic(enum srv_req_stage) stage;
	uint32_t buf_id;
	struct srv_path *path;		/* NULL: not made yet; then constant */
	struct srv_con *con;		/* of the last request, while IDLE */
	struct srv_fence_node fence;
	struct loop_msg msg;		/* to the request's thread, and to the control thread and
					 * back */
	struct list link;		/* revokes, replies; belongs to srv_ops while srv_ops has
					 * the request */
	uint32_t off, byte_len;		/* from the immediate: offset in the chunk, length */
	enum rtrs_digest digest;	/* of the request, and of its answer (srv-digest.c) */
	struct frwr_entry entry;	/* --invalidate=always: to take a key away, to give a key */
	struct srv_turn turn;
	const struct srv_con *keyed_by;	/* the connection that carries the chunk's key; constant
					 * unless IDLE */
	struct fab_cqe answer_cqe;
	int status;
	/* counted with the answer; set by srv_ops */
	enum io_stat_op op;		/* IO_STAT_NOPS: nothing */
	uint32_t op_len;
	struct io_stat *op_stat;	/* of the request's thread; counts the request, too; NULL:
					 * none */
	/* Written by the owner, and read by srv_req_look() at any time. */
	_Atomic(uint64_t) arrived_ns;	/* 0: answered */
	/* Written by the owner, and a hint for others: when the chunk was last used; 0: never, or
	 * not since its memory was given back. */
	_Atomic(uint64_t) used_ns;
	_Atomic(const void *) of;	/* of srv_ops: what the request works on, which does not end
					 * before; NULL: nothing, or nothing any more */
	struct rtrs_req rtrs;
	uint8_t hdr[RTRS_HDR_MAX];	/* copy of the headers; rtrs.usr points here */
};

/* Allocate the requests of @path, a new path, into path->reqs.  0 or -ENOMEM. */
int srv_req_alloc(struct srv_path *path);
/* Free the requests, if @path has any. */
void srv_req_free(struct srv_path *path);

/* Continue the requests whose completion will not come: all connections of @path have drained.
 * Control thread. */
void srv_req_path_drained(struct srv_path *path);

/* The request of @path for chunk @buf_id. */
static inline struct srv_req *srv_req_at(const struct srv_path *path, uint32_t buf_id)
{
	return (void *)((char *)path->reqs + buf_id * path->req_size);
}

/* For struct srv_con_ops: handle a receive of any connection, after INFO. */
void srv_req_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);
/* For struct srv_con_ops: post the answers on srv_con.replies. */
void srv_req_reply_task(struct loop_task *task);

/* Look at the headers of @req and begin, once the client has lost the chunk, or if the client
 * keeps the chunk anyway.  Thread of @req->con. */
void srv_req_execute(struct srv_req *req);

/* Order @req among the requests under its buf_id: srv_ops.resume() follows in FENCED when all
 * earlier requests have left, maybe from inside this call.  @tag: of the client, 0: none.  Thread
 * of @req->con. */
void srv_req_order(struct srv_req *req, uint32_t tag);
/* Pass @req to the control thread: srv_ops.resume() follows there in CONTROL.  Thread of
 * @req->con. */
void srv_req_to_control(struct srv_req *req);

/* The stage of @req. */
static inline enum srv_req_stage srv_req_stage(const struct srv_req *req)
{
	return atomic_load_explicit(&req->stage, memory_order_relaxed);
}

/* Move @req to @stage. */
static inline void srv_req_enter(struct srv_req *req, enum srv_req_stage stage)
{
	PROBE3(request__stage, req, req->buf_id, stage);
	atomic_store_explicit(&req->stage, stage, memory_order_relaxed);
}

/* When @req has arrived, and in @of what the request works on; 0: the client has the chunk.
 * Control thread. */
static inline uint64_t srv_req_look(const struct srv_req *req, const void **of)
{
	uint64_t at_ns = atomic_load_explicit(&req->arrived_ns, memory_order_acquire);

	*of = atomic_load_explicit(&req->of, memory_order_acquire);
	/* RACE: another request may have come in between. */
	return atomic_load_explicit(&req->arrived_ns, memory_order_relaxed) == at_ns ? at_ns : 0;
}

/* Send @req home, to the thread of the connection; the stage says which function runs.  Any
 * thread. */
static inline void srv_req_send(struct srv_req *req)
{
	loop_post(req->con->thread->loop, &req->msg);
}

/* Pass the turn from @req, which has left the fence, to @next.  Thread of @req->con. */
void srv_req_pass_on(struct srv_req *req, struct srv_req *next);

/* Finish @req with @status, 0 or negative errno.  A READ's data is at the start of its chunk.  The
 * answer leaves at the end of the pass.  Thread of @req->con. */
static inline void srv_req_finish(struct srv_req *req, int status)
{
	enum srv_req_stage stage = srv_req_stage(req);

	if (stage >= SRV_REQ_FENCED && stage <= SRV_REQ_STORAGE) {
		struct srv_fence_node *next = srv_fence_leave(&req->path->sess->fence, req->buf_id,
							      &req->fence);

		if (next)
			srv_req_pass_on(req, container_of(next, struct srv_req, fence));
	}
	srv_req_enter(req, SRV_REQ_REPLY);
	req->status = status;
	list_add_tail(&req->con->replies, &req->link);
	loop_defer(req->con->thread->loop, &req->con->reply_task);
}

/* Finish @req, which was handed to the control thread, with @status.  Control thread. */
static inline void srv_req_finish_control(struct srv_req *req, int status)
{
	req->status = status;
	srv_req_enter(req, SRV_REQ_REPLY);
	srv_req_send(req);
}

/* ---- srv-digest.c: digests, on a path whose client wants them (rtrs-req.h; doc/decisions.md
 * D26); thread of the connection ---- */

/* Compare the digest of @req, which is decoded, with what arrived; the digest is behind the @len
 * bytes of the headers in req->hdr.  A wrong one is counted and logged, and fails the connection,
 * before anybody acts on @req. */
void srv_digest_check(struct srv_req *req, uint32_t len);
/* The same for the headers of @req, which came with a digest and break the rule @why. */
void srv_digest_broken(struct srv_req *req, const char *why);
/* Add the digest to the answer @rsp of @req, which is complete otherwise. */
void srv_digest_answer(const struct srv_req *req, struct rtrs_rsp *rsp);

/* ---- srv-trim.c: memory of chunks that no request uses ---- */

/* For struct srv_con_ops: give back what is due, and look again while chunks of the path take
 * memory.  srv_con_trim_later() begins.  Thread of the connection. */
void srv_trim_timer(struct loop_timer *timer);

#endif
