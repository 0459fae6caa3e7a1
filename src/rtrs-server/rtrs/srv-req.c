/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a path, each on the thread of its connection.
 *
 * The happy path: srv_req_wc_recv() gets an immediate and finds the request of the chunk; with
 * --invalidate=always the client loses its key of the chunk (srv-key.h); srv_req_execute() copies
 * the headers out of the chunk, decodes the copy and checks the digest; srv_req_order() waits for
 * the turn at the fence; RNBD and the storage work; srv_req_finish(), once per request, lets the
 * next holder of the buf_id pass the fence and queues the answer.  Answers are collected during a
 * pass and leave with one post per connection (doc/decisions.md D3).  Answers leave from the
 * chunks, which live as long as the connection, so a post needs no completion and no second look
 * at the connection.
 *
 * Possible failures: a message that breaks the protocol fails the connection with one cause; an
 * error of RNBD or of the storage is an answer.
 *
 * Headers are copied because unless --invalidate=always the client can still write to the chunk
 * (doc/decisions.md D8). */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "rtrs-imm.h"
#include "srv-req.h"
#include "util.h"

/* ---- arrival ---- */

/* Copy the headers of @req, @len bytes and the digest behind them, and decode the copy.  0, or
 * -EINVAL with @why. */
static int req_copy(struct srv_req *req, uint32_t *len, const char **why)
{
	const struct srv_chunks *c = &req->path->chunks;
	const uint8_t *chunk = srv_chunk(c, req->buf_id);
	uint32_t tail = req->digest == RTRS_DIGEST_NONE ? 0 : RTRS_DIGEST_LEN, start;
	/* Less than nothing fits no request. */
	uint32_t wrote = req->byte_len - tail;
	int rc = rtrs_req_extent(c->geom, chunk, req->off, wrote, &start, len, why);

	if (rc)
		return rc;
	if (tail > c->geom->chunk_size - start - *len) {
		*why = "digest runs past its chunk";
		return -EINVAL;
	}
	memcpy(req->hdr, chunk + start, *len + tail);
	return rtrs_req_decode(c->geom, req->hdr, start, *len, req->off, wrote, &req->rtrs, why);
}

/* Decode @req.  A wrong request fails the connection. */
static void req_decode(struct srv_req *req)
{
	const char *why;
	uint32_t len;
	int rc = req_copy(req, &len, &why);

	if (rc && req->digest != RTRS_DIGEST_NONE)
		srv_digest_broken(req, why);
	else if (rc)
		srv_con_fail(req->con, "request in chunk %u: %s", req->buf_id, why);
	else if (req->digest != RTRS_DIGEST_NONE)
		srv_digest_check(req, len);
}

static const struct srv_ops *req_ops(const struct srv_req *req)
{
	return req->path->srv->ops;
}

/* Run @req, whose turn at the fence has come. */
static void req_run(struct srv_req *req)
{
	if (srv_con_dead(req->con)) {	/* held until the path died: the client has sent again */
		srv_req_finish(req, -ECONNABORTED);
	} else if (srv_fence_turn(&req->path->sess->fence, req->buf_id, &req->fence)) {
		req_ops(req)->resume(req);
	} else {
		srv_con_fail(req->con, "request in chunk %u is older than one of another path: "
			     "the client has given up this path", req->buf_id);
		srv_req_finish(req, -ECONNABORTED);
	}
}

void srv_req_pass_on(struct srv_req *req, struct srv_req *next)
{
	/* ORDER: before the turn is passed on.  The client must not take @req for done and use the
	 * chunk for another purpose, while perhaps an older copy runs. */
	if (srv_fence_newer(&next->fence.order, &req->fence.order))
		srv_con_fail(req->con, "request in chunk %u was retried over another path: the "
			     "client has given up this one", req->buf_id);
	srv_req_send(next);
}

void srv_req_order(struct srv_req *req, uint32_t tag)
{
	struct srv_sess *sess = req->path->sess;
	struct srv_fence_node *front;

	req->fence.order.tag = tag;
	/* ORDER: stage before the fence, because once in the fence another thread may send @req
	 * here. */
	srv_req_enter(req, SRV_REQ_FENCED);
	front = srv_fence_enter(&sess->fence, req->buf_id, &req->fence);
	if (!front) {
		req_run(req);
		return;
	}
	/* At once, so that this thread reads no more from a path given up by the client.  ORDER:
	 * posted before the request in front can leave, so before the last connection of the front
	 * path reports quiet; both messages go through one inbox. */
	if (srv_fence_newer(&req->fence.order, &front->order)) {
		struct srv_path *path = container_of(front, struct srv_req, fence)->path;

		srv_post_control(path->srv, &path->given_up_msg);
	}
	srv_fence_follow(front, &req->fence);
}

void srv_req_execute(struct srv_req *req)
{
	struct srv_con *con = req->con;

	if (!srv_con_dead(con))
		req_decode(req);
	if (srv_con_dead(con)) {
		srv_req_finish(req, -ECONNABORTED);
		return;
	}
	req_ops(req)->request(req);
}

void srv_req_to_control(struct srv_req *req)
{
	srv_req_enter(req, SRV_REQ_CONTROL);
	srv_post_control(req->path->srv, &req->msg);
}

/* Finish @req, which the control thread has finished. */
static void req_finished(struct srv_req *req)
{
	srv_req_finish(req, req->status);
}

/* Continue the request of @msg on this thread: the request's own, or the control thread. */
static void req_message(struct loop_msg *msg)
{
	static void (*const runs[SRV_REQ_NSTAGES])(struct srv_req *req) = {
		[SRV_REQ_ARRIVED] = srv_key_revoke_now,	/* the turn has come */
		[SRV_REQ_REVOKING] = srv_req_execute,	/* the key has gone with its device */
		[SRV_REQ_FENCED] = req_run,		/* the node in front has left */
		[SRV_REQ_REPLY] = req_finished,
	};
	struct srv_req *req = container_of(msg, struct srv_req, msg);
	void (*run)(struct srv_req *req) = runs[srv_req_stage(req)];

	if (run)
		run(req);
	else
		req_ops(req)->resume(req);
}

/* Make @req for chunk @buf_id of @path, before the first request. */
static void req_make(struct srv_req *req, struct srv_path *path, uint32_t buf_id)
{
	req->path = path;
	req->buf_id = buf_id;
	loop_msg_init(&req->msg, req_message);
	req->answer_cqe.done = srv_key_wc_answered;
}

static void req_arrived(struct srv_con *con, uint32_t payload, uint32_t byte_len)
{
	struct srv_path *path = con->path;
	enum srv_req_stage idle = SRV_REQ_IDLE;
	struct srv_req *req;
	uint32_t buf_id, off;

	rtrs_imm_io_req_split(path->chunks.geom, payload, &buf_id, &off);
	if (buf_id >= path->chunks.geom->queue_depth) {
		srv_con_fail(con, "request for chunk %u of %u", buf_id,
			     path->chunks.geom->queue_depth);
		return;
	}
	req = srv_req_at(path, buf_id);
	/* ORDER: acquire pairs with the release in req_response() on another thread. */
	if (!atomic_compare_exchange_strong_explicit(&req->stage, &idle, SRV_REQ_ARRIVED,
						     memory_order_acquire, memory_order_relaxed)) {
		srv_con_fail(con, "chunk %u used twice at once", buf_id);
		return;
	}
	PROBE3(request__stage, req, buf_id, SRV_REQ_ARRIVED);
	if (!req->path)
		req_make(req, path, buf_id);
	req->con = con;
	req->off = off;
	req->byte_len = byte_len;
	req->digest = atomic_load_explicit(&path->digest, memory_order_acquire);
	req->fence.order = (struct srv_fence_order){
		.arrival = srv_fence_arrive(&path->sess->fence, buf_id),
	};
	req->op = IO_STAT_NOPS;
	req->op_stat = NULL;
	if (!con->now_ns)
		con->now_ns = clock_now_ns();
	atomic_store_explicit(&req->arrived_ns, con->now_ns, memory_order_release);
	counter_add(&con->inflight, 1);
	if (path->chunks.invalidate == SRV_INVALIDATE_ALWAYS)
		srv_key_revoke(req);
	else
		srv_req_execute(req);
}

static void req_heartbeat(struct srv_con *con, const struct ibv_wc *wc)
{
	struct ibv_send_wr wr;

	if (con->cid) {
		srv_con_fail(con, "heartbeat on connection %u", con->cid);
		return;
	}
	/* A request whose immediate has changed on its way: nobody would answer it. */
	if (wc->byte_len) {
		srv_con_fail(con, "heartbeat with %u bytes", wc->byte_len);
		return;
	}
	if (rtrs_imm_type(wc->imm_data) == RTRS_HB_ACK_IMM) {
		rtrs_hb_ack(&con->path->hb, clock_now_ns());
		return;
	}
	rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_ACK_IMM);
	srv_con_post(con, &wr);
}

void srv_req_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_con *con = container_of(cqe, struct srv_con, recv_cqe);
	unsigned type;

	if (wc->status != IBV_WC_SUCCESS) {
		srv_con_wc_failed(con, wc, "receiving");
		return;
	}
	if (srv_con_dead(con))
		return;
	rtrs_hb_rx(&con->path->hb);
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
		srv_con_fail(con, "a SEND where only requests are expected");
		return;
	}
	con->consumed++;
	type = rtrs_imm_type(wc->imm_data);
	switch (type) {
	case RTRS_IO_REQ_IMM:
		if (srv_con_state(con) == SRV_CON_SERVING) /* else the path closes soon */
			req_arrived(con, rtrs_imm_payload(wc->imm_data), wc->byte_len);
		break;
	case RTRS_HB_MSG_IMM:
	case RTRS_HB_ACK_IMM:
		req_heartbeat(con, wc);
		break;
	default:
		srv_con_fail(con, "immediate of unknown type %u", type);
	}
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

static struct ibv_send_wr *req_answer(struct srv_req *req, struct srv_reply *reply)
{
	struct rtrs_rsp rsp = {
		.msg_id = req->buf_id,
		.status = req->status,
		.req = &req->rtrs,
	};
	struct ibv_send_wr *first;
	int rc;

	reply->keyed = NULL;
	if (req->rtrs.has_desc && !req->status)
		rsp.data = response_data(req);
	if (req->path->chunks.invalidate == SRV_INVALIDATE_ALWAYS) {
		rc = srv_key_rearm(req, &rsp);
		if (rc) {
			srv_con_fail(req->con, "cannot give chunk %u a key: %s", req->buf_id,
				     rc == -ENOTCONN ? "another connection has failed" :
						       strerror(-rc));
			return NULL;
		}
	}
	if (req->digest != RTRS_DIGEST_NONE)
		srv_digest_answer(req, &rsp);
	first = rtrs_wr_response(&reply->wr, (uintptr_t)&req->con->send_cqe, &rsp);
	if (rsp.new_rkey)
		srv_key_answer(req, reply);
	return first;
}

/* Fill @reply with the answer to @req and return its first work request.  NULL: the answer is
 * dropped, because the connection is dead or has just failed.  From here on the client may use
 * @req again. */
static struct ibv_send_wr *req_response(struct srv_req *req, struct srv_reply *reply)
{
	struct ibv_send_wr *first = srv_con_dead(req->con) ? NULL : req_answer(req, reply);

	PROBE3(request__stage, req, req->buf_id, SRV_REQ_IDLE);
	atomic_store_explicit(&req->arrived_ns, 0, memory_order_release);
	/* ORDER: all of @req has been read; the answer is not posted yet, so the client cannot have
	 * begun to use the chunk again. */
	atomic_store_explicit(&req->stage, SRV_REQ_IDLE, memory_order_release);
	return first;
}

/* Count @req, which is answered at @now_ns, unless @req was never known to be IO. */
static void req_count(const struct srv_req *req, uint64_t now_ns)
{
	uint64_t ns = now_ns - atomic_load_explicit(&req->arrived_ns, memory_order_relaxed);

	if (req->op == IO_STAT_NOPS)
		return;
	io_stat_count(&req->con->stat.op[req->op], req->status, req->op_len, ns);
	if (req->op_stat)
		io_stat_count(&req->op_stat->op[req->op], req->status, req->op_len, ns);
}

/* Take the next finished requests off the list and chain @count answers.  Returns the head, or
 * NULL when no request has an answer to send. */
static struct ibv_send_wr *req_chain_replies(struct srv_con *con, uint64_t now_ns, unsigned *count)
{
	struct ibv_send_wr *head = NULL, **tail = &head, *first;
	unsigned n = 0;

	while (n < SRV_REPLY_BATCH && !list_empty(&con->replies)) {
		struct srv_req *req = list_entry(list_pop(&con->replies), struct srv_req, link);
		struct srv_reply *reply = &con->thread->scratch[n];

		req_count(req, now_ns);
		atomic_store_explicit(&req->used_ns, now_ns, memory_order_relaxed);
		counter_add(&con->inflight, -1);
		first = req_response(req, reply);
		if (!first)
			continue;
		*tail = first;
		tail = &reply->wr.wr[reply->wr.n - 1].next;
		n++;
	}
	*count = n;
	return head;
}

void srv_req_reply_task(struct loop_task *task)
{
	struct srv_con *con = container_of(task, struct srv_con, reply_task);
	uint64_t now_ns = clock_now_ns();

	while (!list_empty(&con->replies)) {
		unsigned n;
		struct ibv_send_wr *head = req_chain_replies(con, now_ns, &n);
		int rc = head ? srv_con_post(con, head) : 0;

		for (unsigned i = 0; i < n; i++) {
			struct srv_req *keyed = con->thread->scratch[i].keyed;

			if (keyed)
				srv_key_posted(keyed, rc);
		}
	}
	srv_con_trim_later(con, now_ns);
	srv_con_check_idle(con);
}

static size_t reqs_len(const struct srv_path *path)
{
	return (size_t)path->srv->geom.queue_depth * path->req_size;
}

/* Not calloc(), which touches the memory if the heap has it. */
int srv_req_alloc(struct srv_path *path)
{
	void *reqs;

	path->req_size = path->srv->ops->req_size;
	reqs = mmap(NULL, reqs_len(path), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (reqs == MAP_FAILED)
		return -ENOMEM;
	path->reqs = reqs;
	return 0;
}

void srv_req_free(struct srv_path *path)
{
	if (path->reqs)
		munmap(path->reqs, reqs_len(path));
	path->reqs = NULL;
}

void srv_req_path_drained(struct srv_path *path)
{
	for (unsigned i = 0; i < path->chunks.geom->queue_depth; i++) {
		struct srv_req *req = srv_req_at(path, i);

		if (req->path)
			srv_key_end_turn(req);
	}
}
