/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing that outlives a request; thread of the request's connection.  Every request ends in
 * srv_req_finish(), an error as an errno known to RNBD.
 *
 * Private buffers (--invalidate=copy).  The storage never depends on memory that a peer can write:
 *   - WRITE data is copied to a private buffer first.  A copy to the page cache would not do: a
 *     file system may stop in front of the page cache, while other connections of the client go
 *     on.
 *   - A READ from the page cache goes into the request's own chunk.  A client that writes there
 *     spoils only the client's own answer.
 *   - A READ of a direct export goes into a private buffer, because devices and file systems may
 *     check the data afterwards, and is then copied to the chunk.
 *   - The answer to EXTENTS is made in the chunk, which is written and never read.
 * Answers leave from chunks only.  So the storage holds private buffers, and never a client that
 * leaves answers unread; no device has to know the buffers, and posts need no completion. */
#include <assert.h>
#include <errno.h>
#include <linux/ioprio.h>
#include <string.h>

#include "export.h"
#include "srv-export.h"
#include "srv-limit.h"
#include "srv-rnbd-state.h"
#include "store-lead.h"

static void srv_io_answer_to_chunk(struct srv_rnbd_req *req, const struct srv_buf *buf)
{
	memcpy(srv_chunk(&req->base.path->chunks, req->base.buf_id), buf->addr, req->io.len);
}

static void srv_io_end(struct srv_rnbd_req *req, int status)
{
	struct srv_dev *dev = req->dev;

	/* ORDER: before the device, and so the export, can go. */
	atomic_store_explicit(&req->base.of, NULL, memory_order_relaxed);
	if (dev && srv_dev_put(dev))
		srv_post_control(req->base.path->srv, &dev->quiet_msg);
	req->dev = NULL;
	if (req->buf) {
		struct srv_buf *buf = req->buf;

		if (req->io.op == RNBD_OP_READ && !status)
			srv_io_answer_to_chunk(req, buf);
		req->buf = NULL;
		srv_pool_put(buf);
	}
	srv_req_finish(&req->base, status ? rnbd_errno_to_wire(status) : 0);
}

static void srv_io_done(struct export_io *io, int status)
{
	if (export_io_is_fenced(io, status)) {
		struct srv_rnbd_req *req = container_of(io, struct srv_rnbd_req, io);

		store_lead_lost(io->ex->store);
		srv_con_fail(req->base.con, "%s: another server has taken the store over",
			     io->ex->name);
		status = -ECONNABORTED;
	}
	srv_io_end(container_of(io, struct srv_rnbd_req, io), status);
}

static void srv_io_submit(struct srv_rnbd_req *req)
{
	const struct srv_chunks *c = &req->base.path->chunks;
	struct srv_thread *thread = req->base.con->thread;

	if (req->buf) {
		req->io.buf = req->buf->addr;
		req->io.mem = req->buf->mem;
	} else {
		req->io.buf = srv_chunk(c, req->base.buf_id);
		req->io.mem = c->rings[thread->index].mem;
	}
	req->io.done = srv_io_done;
	srv_req_enter(&req->base, SRV_REQ_STORAGE);
	export_io_start(thread->reactor, &req->io);
}

static void srv_io_submit_private(struct srv_rnbd_req *req, struct srv_buf *buf)
{
	if (req->io.op == RNBD_OP_WRITE)
		memcpy(buf->addr, srv_chunk(&req->base.path->chunks, req->base.buf_id),
		       req->io.len);
	req->buf = buf;
	srv_io_submit(req);
}

static void srv_io_got_buffer(struct srv_pool_waiter *waiter, struct srv_buf *buf)
{
	struct srv_rnbd_req *req = container_of(waiter, struct srv_rnbd_req, wait);

	/* The IO has not started; the client sends the request again on another path. */
	if (srv_con_dead(req->base.con)) {
		srv_pool_put(buf);
		srv_io_end(req, -ECONNABORTED);
		return;
	}
	srv_io_submit_private(req, buf);
}

static bool srv_io_needs_private(const struct srv_rnbd_req *req)
{
	if (req->base.path->chunks.invalidate != SRV_INVALIDATE_COPY)
		return false;
	return req->io.op == RNBD_OP_WRITE ||
	       (req->io.op == RNBD_OP_READ && req->io.ex->direct);
}

/* The priority of @io for the storage.  Clients of the first version leave garbage in the field. */
static uint16_t srv_io_prio(const struct srv_rnbd_req *req, const struct rnbd_io *io)
{
	const struct srv_path *path = req->base.path;
	uint16_t prio = 0;

	if (io->prio && srv_rnbd_ver(path->sess) >= RNBD_VER_PRIO)
		prio = srv_export_wire_prio(io->prio, srv_rnbd(path->srv)->may_realtime);
	return srv_export_limit_prio(prio, srv_export_prio(req->io.ex));
}

static void srv_io_prepare(struct srv_rnbd_req *req, const struct rnbd_io *io)
{
	req->io.op = io->op;
	req->io.flags = io->flags;
	req->io.prio = srv_io_prio(req, io);
	req->io.offset = io->op == RNBD_OP_FLUSH ? 0 : io->sector << RNBD_SECTOR_SHIFT;
	req->io.len = io->op == RNBD_OP_FLUSH ? 0 : io->bi_size;
	req->base.op_len = req->io.len;
	req->io.room = req->base.rtrs.data_len;
}

/* Give @req, which is prepared, to the storage. */
static void srv_io_enter(struct srv_rnbd_req *req)
{
	struct srv_buf *buf;

	if (!srv_io_needs_private(req)) {
		srv_io_submit(req);
		return;
	}
	req->wait.fn = srv_io_got_buffer;
	buf = srv_pool_get(&req->base.con->thread->pool, req->io.ex->store->index, &req->wait);
	if (buf)
		srv_io_submit_private(req, buf);
	else
		srv_req_enter(&req->base, SRV_REQ_BUFFER);
}

/* ---- turns ---- */

/* True if @op waits for others: for the limits of its export, and for its turn. */
static bool srv_io_may_wait(enum rnbd_io_op op)
{
	return op != RNBD_OP_FLUSH && op != RNBD_OP_EXTENTS;
}

static bool srv_io_moves_data(enum rnbd_io_op op)
{
	return op == RNBD_OP_READ || op == RNBD_OP_WRITE;
}

/* No priority is the kernel's best-effort:4. */
static enum srv_drr_class srv_io_class(uint16_t prio)
{
	switch (prio >> IOPRIO_CLASS_SHIFT) {
	case IOPRIO_CLASS_RT:
		return SRV_DRR_REALTIME;
	case IOPRIO_CLASS_IDLE:
		return SRV_DRR_IDLE;
	default:
		return SRV_DRR_BEST_EFFORT;
	}
}

static void srv_io_turn_came(struct srv_drr_item *item)
{
	struct srv_rnbd_req *req = container_of(item, struct srv_rnbd_req, round);

	if (srv_con_dead(req->base.con))
		srv_io_end(req, -ECONNABORTED);
	else
		srv_io_enter(req);
}

/* Have @req, which is prepared, enter the storage in its turn.  FLUSH and EXTENTS wait for no
 * data. */
static void srv_io_run(struct srv_rnbd_req *req)
{
	struct srv_thread *thread = req->base.con->thread;
	enum srv_drr_class class = srv_io_class(req->io.prio);
	struct srv_drr_flow *flow = &req->dev->flows[thread->index * SRV_DRR_CLASSES + class];
	uint32_t bytes = srv_io_moves_data(req->io.op) ? req->io.len : 0;

	if (!srv_io_may_wait(req->io.op) || srv_drr_at_once(&thread->drr, flow, bytes)) {
		srv_io_enter(req);
		return;
	}
	srv_req_enter(&req->base, SRV_REQ_ROUND);
	req->round.fn = srv_io_turn_came;
	srv_drr_add(&thread->drr, flow, class, &req->round, bytes);
}

/* ---- limits ---- */

static void srv_io_limit(struct srv_rnbd_req *req)
{
	int rc = srv_limit_enter(req);

	if (!rc)
		srv_io_run(req);
	else if (rc != -EINPROGRESS)
		srv_io_end(req, rc);
}

void srv_dev_io_let_go(struct srv_req *base)
{
	struct srv_rnbd_req *req = srv_rnbd_req(base);
	int rc = srv_limit_result(req);

	if (rc)
		srv_io_end(req, rc);
	else
		srv_io_run(req);
}

void srv_dev_io_con_cut(struct srv_con *con)
{
	srv_limit_con_cut(con, srv_io_end);
}

/* ---- the way of an IO ---- */

/* Carry out @io on req->io.ex, or end @req with @rc, the result of srv_dev_io_check(). */
static void srv_io_go(struct srv_rnbd_req *req, const struct rnbd_io *io, int rc)
{
	if (rc || (io->op != RNBD_OP_FLUSH && !io->bi_size)) {
		srv_io_end(req, rc);
		return;
	}
	srv_io_prepare(req, io);
	if (srv_export_is_limited(req->io.ex) && srv_io_may_wait(io->op))
		srv_io_limit(req);
	else
		srv_io_run(req);
}

int srv_dev_io_decode(const struct srv_req *req, struct rnbd_io *io)
{
	return rnbd_io_decode(req->rtrs.usr, req->rtrs.usr_len, req->rtrs.data_len,
			      req->rtrs.dir == RTRS_DIR_READ, io);
}

void srv_dev_io_start(struct srv_req *base)
{
	struct srv_rnbd_req *req = srv_rnbd_req(base);
	const struct srv_thread *thread = base->con->thread;
	struct rnbd_io io;
	int rc = srv_dev_io_decode(base, &io);

	req->dev = NULL;
	req->buf = NULL;
	if (!rc && io.op == RNBD_OP_EXTENTS && !srv_rnbd_has(base->path->sess, RNBD_EXT_EXTENTS))
		rc = -EOPNOTSUPP;
	if (rc) {
		srv_io_end(req, rc);
		return;
	}
	base->op = srv_export_stat_op(io.op);
	base->op_len = 0;
	req->dev = srv_dev_get(&srv_rnbd_sess(base->path->sess)->devs, io.device_id);
	if (!req->dev) {
		srv_io_end(req, -ENOTCONN);
		return;
	}
	req->io.ex = req->dev->ex;
	base->op_stat = srv_export_stat_here(thread, req->io.ex);
	atomic_store_explicit(&base->of, req->io.ex, memory_order_release);
	rc = srv_dev_io_check(req->dev->ex, req->dev->mode, &io);
	if (rc != -EIO) {
		srv_io_go(req, &io, rc);
		return;
	}
	/* Ask for the size before failing: the export may have grown, and the client may know
	 * without a new OPEN (rnbd's sysfs has "resize"). */
	srv_req_enter(base, SRV_REQ_SIZE);
	srv_post_control(base->path->srv, &base->msg);
}

static void srv_io_send_home(struct srv_req *req)
{
	srv_req_enter(req, SRV_REQ_SIZED);
	srv_req_send(req);
}

static void srv_io_size_known(struct srv_size_waiter *w)
{
	srv_io_send_home(srv_sized_req(w));
}

void srv_dev_io_ask(struct srv_req *req)
{
	/* ORDER: the waiters of a path that failed before have ended; do not add another. */
	if (req->path->state != SRV_PATH_CONNECTED ||
	    srv_size_ask_for(req, srv_rnbd_req(req)->io.ex, EXPORT_ASK_SIZE, srv_io_size_known))
		srv_io_send_home(req);
}

void srv_dev_io_sized(struct srv_req *base)
{
	struct srv_rnbd_req *req = srv_rnbd_req(base);
	struct rnbd_io io;
	int rc = srv_dev_io_decode(base, &io);

	assert(!rc);
	if (srv_con_dead(base->con))	/* not started; the client sends again on another path */
		srv_io_end(req, -ECONNABORTED);
	else
		srv_io_go(req, &io, srv_dev_io_check(req->dev->ex, req->dev->mode, &io));
}
