/* SPDX-License-Identifier: BSD-3-Clause */
/* A request on the server: from an immediate through the fence to the storage or to the control
 * thread, and back to an answer (doc/protocol.md 3.3, 3.4).
 *
 * A request belongs to the thread of the connection it came on, from arrival to answer; only a
 * control message, and IO behind the end of its export, visit the control thread in between.  It is
 * answered, or its connection is dead: never dropped.
 *
 *	IO: idle > arrived [> revoking] > fenced [> size > sized] [> buffer] > storage > reply >
 *	idle
 *	SESS_INFO, OPEN, CLOSE: idle > arrived [> revoking] > control > reply > idle
 *
 * Where a request waits for another thread, that one sends it home by req->msg, and its stage says
 * what runs there (srv-req.c). */
#ifndef SRV_REQ_H
#define SRV_REQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "frwr.h"
#include "io-stat.h"
#include "loop.h"
#include "list.h"
#include "probe.h"
#include "rtrs-req.h"
#include "srv-con.h"
#include "srv-fence.h"
#include "srv-key.h"
#include "srv-path.h"
#include "srv-state.h"
#include "srv-sess.h"

enum srv_req_stage {
	SRV_REQ_IDLE,		/* the chunk is its client's */
	SRV_REQ_ARRIVED,	/* --invalidate=always: waits for its turn, or on srv_con.revokes */
	SRV_REQ_REVOKING,	/* likewise: the end of its chunk's key is posted */
	/* in the fence; once there its stages up to CONTROL are those of srv_ops.resume() */
	SRV_REQ_FENCED,		/* an earlier request under this buf_id may be in the storage */
	SRV_REQ_SIZE,		/* behind the end: with the control thread, which asks whether that
				 * has moved */
	SRV_REQ_SIZED,		/* it is known */
	SRV_REQ_BUFFER,		/* waits for private memory */
	SRV_REQ_STORAGE,
	/* out of it, or never in */
	SRV_REQ_CONTROL,	/* with the control thread */
	SRV_REQ_REPLY,		/* finished: on its way to srv_con.replies, or there */
	SRV_REQ_NSTAGES
};

/* One per chunk, allocated with the path; the begin of what srv_ops has of it. */
struct srv_req {
	/* RACE: a client may, against the rules, use one buf_id on two connections at once; whoever
	 * moves this from IDLE owns the rest until it is IDLE again. */
	_Atomic(enum srv_req_stage) stage;
	uint32_t buf_id;
	struct srv_path *path;		/* constant */
	struct srv_con *con;
	struct srv_fence_node fence;
	struct loop_msg msg;		/* to its thread, and to the control thread and back */
	struct list link;		/* revokes, replies; of srv_ops, while it has the request */
	uint32_t off, byte_len;		/* as it was told */
	struct frwr_entry entry;	/* --invalidate=always: to take a key, to give one */
	struct srv_turn turn;
	const struct srv_con *keyed_by;	/* carries the chunk's key; constant unless IDLE */
	struct fab_cqe answer_cqe;
	int status;
	/* what is counted with the answer; set by srv_ops */
	enum io_stat_op op;		/* IO_STAT_NOPS: nothing */
	uint32_t op_len;
	struct io_stat *op_stat;	/* of its thread; counts the request, too; NULL: none */
	uint64_t arrived_ns;
	struct rtrs_req rtrs;
	uint8_t hdr[RTRS_HDR_MAX];	/* copy of the headers; rtrs.usr points here */
};

/* @n requests for a new path into path->reqs.  0 or -ENOMEM. */
int srv_req_alloc(struct srv_path *path, unsigned n);

/* All connections of @path have drained: requests that wait for a completion go on.  Control
 * thread. */
void srv_req_path_drained(struct srv_path *path);

static inline struct srv_req *srv_req_at(const struct srv_path *path, uint32_t buf_id)
{
	return (void *)((char *)path->reqs + buf_id * path->req_size);
}

/* For struct srv_con_ops: a receive of any connection, after INFO, and what follows from it. */
void srv_req_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);
void srv_req_reply_task(struct loop_task *task);

/* The chunk of @req is its client's no more, or cannot be: look at it and begin.  Thread of
 * @req->con. */
void srv_req_execute(struct srv_req *req);

/* @req has an order among the requests under its buf_id: srv_ops.resume() follows in FENCED, maybe
 * from inside this call, when all earlier ones have left.  @tag: of its client, 0: none.  Thread of
 * @req->con. */
void srv_req_order(struct srv_req *req, uint32_t tag);
/* @req is the control thread's: srv_ops.resume() follows there in CONTROL.  Thread of @req->con. */
void srv_req_to_control(struct srv_req *req);

static inline enum srv_req_stage srv_req_stage(const struct srv_req *req)
{
	return atomic_load_explicit(&req->stage, memory_order_relaxed);
}

static inline void srv_req_enter(struct srv_req *req, enum srv_req_stage stage)
{
	PROBE3(request__stage, req, req->buf_id, stage);
	atomic_store_explicit(&req->stage, stage, memory_order_relaxed);
}

/* Home.  Its stage says what runs there.  Any thread. */
static inline void srv_req_send(struct srv_req *req)
{
	loop_post(req->con->thread->loop, &req->msg);
}

/* @req has left the fence, and it is the turn of @next.  Thread of @req->con. */
void srv_req_pass_on(struct srv_req *req, struct srv_req *next);

/* @req is done, status 0 or negative errno.  A READ's data is at the start of its chunk.  The
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

/* The same from the control thread, for a request that was handed to it. */
static inline void srv_req_finish_control(struct srv_req *req, int status)
{
	req->status = status;
	srv_req_enter(req, SRV_REQ_REPLY);
	srv_req_send(req);
}

#endif
