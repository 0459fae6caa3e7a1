/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the requests of a path, each while its connection's thread works on it.
 *
 * How it ends: srv_io_finish(), once per request, which lets the next holder of its buf_id pass the
 * fence and queues the answer; srv-con.c posts it at the end of the pass.
 * How it fails: a message that breaks the protocol fails the connection with one cause; an error of
 * RNBD or of the storage is an answer.
 *
 * Headers are copied out of the chunk before they are looked at: unless --invalidate=always the
 * client can still write there (doc/decisions.md D8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "srv-open.h"
#include "rtrs-imm.h"
#include "srv-con.h"
#include "srv-io.h"
#include "srv-key.h"
#include "srv-path.h"
#include "srv-priv.h"
#include "srv-sess.h"
#include "util.h"

static void io_run(struct srv_req *req)
{
	if (req->con->dead)	/* held until its path died: its client has sent it again */
		srv_io_finish(req, -ECONNABORTED);
	else
		srv_open_request(req);
}

static void io_released(struct loop_msg *msg)
{
	io_run(container_of(msg, struct srv_req, msg));
}

/* ---- arrival ---- */

/* Copy the headers of @req and decode them.  -EINVAL with @why. */
static int io_decode(struct srv_req *req, const char **why)
{
	const struct srv_chunks *c = &req->path->chunks;
	const uint8_t *chunk = srv_chunk(c, req->buf_id);
	uint32_t start, len;
	int rc = rtrs_req_extent(c->geom, chunk, req->off, req->byte_len, &start, &len, why);

	if (rc)
		return rc;
	memcpy(req->hdr, chunk + start, len);
	return rtrs_req_decode(c->geom, req->hdr, start, len, req->off, req->byte_len, &req->rtrs,
			       why);
}

void srv_io_execute(struct srv_req *req)
{
	struct srv_con *con = req->con;
	const char *why;

	if (!con->dead && io_decode(req, &why))
		srv_con_fail(con, "request in chunk %u: %s", req->buf_id, why);
	if (con->dead) {
		srv_io_finish(req, -ECONNABORTED);
		return;
	}
	loop_msg_init(&req->msg, io_released);
	/* Only IO enters the storage.  A client that is back must be greeted while the storage is
	 * still busy with what the client has under this buf_id from before. */
	req->fenced = rnbd_msg_type(req->rtrs.usr, req->rtrs.usr_len) == RNBD_MSG_IO;
	if (!req->fenced || srv_fence_enter(&con->path->sess->fence, req->buf_id, &req->fence))
		io_run(req);
}

static void io_request(struct srv_con *con, uint32_t payload, uint32_t byte_len)
{
	struct srv_path *path = con->path;
	struct srv_req *req;
	uint32_t buf_id, off;

	rtrs_imm_io_req_split(path->chunks.geom, payload, &buf_id, &off);
	if (buf_id >= path->chunks.geom->queue_depth) {
		srv_con_fail(con, "request for chunk %u of %u", buf_id,
			     path->chunks.geom->queue_depth);
		return;
	}
	req = &path->reqs[buf_id];
	/* ORDER: acquire pairs with the release in srv_io_response() on another thread. */
	if (atomic_exchange_explicit(&req->busy, true, memory_order_acquire)) {
		srv_con_fail(con, "chunk %u used twice at once", buf_id);
		return;
	}
	req->con = con;
	req->dev = NULL;
	req->buf = NULL;
	req->fenced = false;
	req->off = off;
	req->byte_len = byte_len;
	con->inflight++;
	if (path->chunks.invalidate == SRV_INVALIDATE_ALWAYS)
		srv_key_revoke(req);
	else
		srv_io_execute(req);
}

static void io_heartbeat(struct srv_con *con, enum rtrs_imm_type type)
{
	struct ibv_send_wr wr;

	if (con->cid) {
		srv_con_fail(con, "heartbeat on connection %u", con->cid);
		return;
	}
	if (type == RTRS_HB_ACK_IMM) {
		rtrs_hb_ack(&con->path->hb, clock_now_ms());
		return;
	}
	rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_ACK_IMM);
	srv_con_post(con, &wr);
}

void srv_io_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_con *con = container_of(cqe, struct srv_con, recv_cqe);
	unsigned type;

	if (wc->status != IBV_WC_SUCCESS) {
		srv_con_wc_failed(con, wc, "receiving");
		return;
	}
	if (con->dead)
		return;
	rtrs_hb_rx(&con->path->hb);
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
		srv_con_fail(con, "a SEND where only requests are expected");
		return;
	}
	if (srv_con_post_empty(con, 1)) {
		srv_con_fail(con, "cannot post a receive");
		return;
	}
	type = rtrs_imm_type(wc->imm_data);
	switch (type) {
	case RTRS_IO_REQ_IMM:
		if (!con->finishing)	/* else the path is about to be closed */
			io_request(con, rtrs_imm_payload(wc->imm_data), wc->byte_len);
		break;
	case RTRS_HB_MSG_IMM:
	case RTRS_HB_ACK_IMM:
		io_heartbeat(con, type);
		break;
	default:
		srv_con_fail(con, "immediate of unknown type %u", type);
	}
}

/* ---- finish ---- */

void srv_io_finish(struct srv_req *req, int status)
{
	struct srv_fence_node *next = NULL;

	if (req->fenced)
		next = srv_fence_leave(&req->path->sess->fence, req->buf_id, &req->fence);
	if (next) {
		struct srv_req *held = container_of(next, struct srv_req, fence);

		loop_post(reactor_loop(held->con->thread->reactor), &held->msg);
	}
	req->status = status;
	srv_con_reply(req->con, req);
}

static void io_back_from_control(struct loop_msg *msg)
{
	struct srv_req *req = container_of(msg, struct srv_req, msg);

	srv_io_finish(req, req->status);
}

void srv_io_finish_control(struct srv_req *req, int status)
{
	req->status = status;
	loop_msg_init(&req->msg, io_back_from_control);
	loop_post(reactor_loop(req->con->thread->reactor), &req->msg);
}

/* ---- answer ---- */

static struct ibv_sge response_data(const struct srv_req *req)
{
	const struct srv_chunks *c = &req->path->chunks;

	return (struct ibv_sge){
		.addr = srv_chunk_iova(c, req->buf_id),
		.length = req->rtrs.data_len,
		.lkey = srv_chunk_mr(c, req->buf_id)->lkey,
	};
}

static struct ibv_send_wr *io_answer(struct srv_req *req, uint64_t wr_id, struct srv_reply *reply)
{
	struct rtrs_rsp rsp = {
		.msg_id = req->buf_id,
		.status = req->status,
		.req = &req->rtrs,
	};
	struct ibv_send_wr *first;
	bool keys = req->path->chunks.invalidate == SRV_INVALIDATE_ALWAYS;
	int rc;

	reply->keyed = NULL;
	if (req->rtrs.has_desc && !req->status)
		rsp.data = response_data(req);
	if (keys) {
		rc = srv_key_rearm(req, &rsp);
		if (rc) {
			srv_con_fail(req->con, "cannot give chunk %u a key: %s", req->buf_id,
				     rc == -ENOTCONN ? "another connection has failed" :
						       strerror(-rc));
			return NULL;
		}
	}
	first = rtrs_wr_response(&reply->wr, wr_id, &rsp);
	if (keys)
		srv_key_answer(req, reply);
	return first;
}

struct ibv_send_wr *srv_io_response(struct srv_req *req, uint64_t wr_id, struct srv_reply *reply)
{
	struct ibv_send_wr *first = req->con->dead ? NULL : io_answer(req, wr_id, reply);

	/* ORDER: all of @req has been read; the answer is not posted yet, so the client cannot have
	 * begun to use the chunk again. */
	atomic_store_explicit(&req->busy, false, memory_order_release);
	return first;
}

struct srv_req *srv_io_alloc_reqs(struct srv_path *path, unsigned n)
{
	struct srv_req *reqs = calloc(n, sizeof(*reqs));

	for (unsigned i = 0; reqs && i < n; i++) {
		reqs[i].path = path;
		reqs[i].buf_id = i;
		reqs[i].answer_cqe.done = srv_key_wc_answered;
	}
	return reqs;
}
