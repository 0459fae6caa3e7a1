/* SPDX-License-Identifier: BSD-3-Clause */
/* The IO path of the server: from an immediate to a request, through the fence to RNBD, and back to
 * an answer (doc/protocol.md 3.3, 3.4).
 *
 * A request belongs to the thread of the connection it came on, from arrival to answer; only a control
 * message visits the control thread in between.  It is answered, or its connection is dead: never
 * dropped. */
#ifndef SRV_IO_H
#define SRV_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "export-io.h"
#include "fabric.h"
#include "frwr.h"
#include "list.h"
#include "loop.h"
#include "rtrs-req.h"
#include "rtrs-wr.h"
#include "srv-fence.h"
#include "srv-key.h"
#include "srv-pool.h"

struct srv_dev;
struct srv_con;
struct srv_path;
struct srv_reply;

/* One per chunk, allocated with the path. */
struct srv_req {
	/* From arrival to answer.  RACE: a client may, against the rules, use one buf_id on two
	 * connections at once; whoever sets this owns the rest. */
	atomic_bool busy;
	uint32_t buf_id;
	struct srv_path *path;		/* constant */
	struct srv_con *con;
	struct srv_fence_node fence;
	bool fenced;			/* it entered the fence: IO; other messages do not */
	struct loop_msg msg;		/* hand-over of turn and fence; to the control thread and back */
	struct list link;		/* arrivals and replies of the connection; waiters of OPEN and CLOSE */
	uint32_t off, byte_len;		/* as it was told */
	struct frwr_entry entry;	/* --invalidate=always: takes the chunk's key away, then gives one */
	bool revoking;			/* the first of these is posted */
	struct srv_turn turn;
	const struct srv_con *keyed_by;	/* carries the chunk's key; constant while busy */
	struct fab_cqe answer_cqe;
	struct srv_pool_waiter wait;	/* for private memory */
	int status;
	struct rtrs_req rtrs;
	struct srv_dev *dev;		/* referenced while the storage works */
	struct srv_buf *buf;		/* private memory while the storage works, or NULL: in the chunk */
	struct export_io io;
	uint64_t deadline_ms;		/* OPEN that waits */
	uint8_t hdr[RTRS_HDR_MAX];	/* copy of the headers; rtrs.usr points here */
};

/* Requests for a new path; NULL: no memory. */
struct srv_req *srv_io_alloc_reqs(struct srv_path *path, unsigned n);

/* Receive completion of any connection, after INFO. */
void srv_io_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);

/* @req is done, status 0 or negative errno.  A READ's data is at the start of its chunk.  Thread of
 * @req->con. */
void srv_io_finish(struct srv_req *req, int status);
/* The same from the control thread, for a request that was handed to it. */
void srv_io_finish_control(struct srv_req *req, int status);

/* The chunk of @req is its client's no more, or cannot be: look at it and begin.  Thread of @req->con. */
void srv_io_execute(struct srv_req *req);

/* Fill @reply with the answer to @req and return its first work request; NULL: it is dropped, because the
 * connection is dead or has just failed.  @req may be used by the client again from here on. */
struct ibv_send_wr *srv_io_response(struct srv_req *req, uint64_t wr_id, struct srv_reply *reply);

#endif
