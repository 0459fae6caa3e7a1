/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  A request whose bytes changed on the way never reaches the storage: the path ends,
 * and the client sends the request again.  That is the client's affair, as after any loss of a
 * path. */
#include <stdio.h>

#include "clock.h"
#include "srv-ops.h"
#include "srv-req.h"

#define WHAT_LEN 192			/* text about a request */

/* A path is lost with each line. */
static struct log_limit wrong_limit = LOG_LIMIT_INIT(20, 10000);

static void digest_wrong(struct srv_req *req, const char *what)
{
	struct srv_path *path = req->path;

	counter_add_shared(&path->srv->digest_errors, 1);
	atomic_store(&path->srv->digest_error_ms, clock_now_ms());
	log_event_limited(&wrong_limit, LOG_LEVEL_WARN,
			  LOG_FIELDS(DIGEST_WRONG, .session = path->sess->name,
				     .peer = path->name, .identity = path->identity),
			  path->name, "a request did not arrive as it was sent: %s", what);
	srv_con_fail(req->con, "request in chunk %u did not arrive as it was sent", req->buf_id);
}

void srv_digest_check(struct srv_req *req, uint32_t len)
{
	const struct srv_chunks *c = &req->path->chunks;
	bool is_write = req->rtrs.dir == RTRS_DIR_WRITE;
	__be32 imm = rtrs_imm_io_req(c->geom, req->buf_id, req->off);
	char asks[WHAT_LEN - 64], what[WHAT_LEN];
	struct rtrs_digest_pair pair;

	if (rtrs_digest_fits(req->hdr, len, imm, srv_chunk(c, req->buf_id),
			     is_write ? req->rtrs.data_len : 0, &pair))
		return;
	req->path->srv->ops->tell(req, asks, sizeof(asks));
	snprintf(what, sizeof(what), "%s: its digest is %08x, expected %08x", asks, pair.found,
		 pair.expected);
	digest_wrong(req, what);
}

void srv_digest_broken(struct srv_req *req, const char *why)
{
	digest_wrong(req, why);
}

void srv_digest_answer(const struct srv_req *req, struct rtrs_rsp *rsp)
{
	const struct srv_chunks *c = &req->path->chunks;
	struct rtrs_msg_rsp *msg = &c->rsps[req->buf_id];
	size_t len;

	if (!rsp->new_rkey)
		rtrs_rkey_rsp_encode(&msg->key, (uint16_t)req->buf_id, 0);
	len = rtrs_digest_seal(msg, sizeof(msg->key), rtrs_rsp_imm(rsp),
			       srv_chunk(c, req->buf_id), rsp->data.length);
	rsp->digest = true;
	rsp->rkey_rsp = (struct ibv_sge){
		.addr = (uintptr_t)msg, .length = (uint32_t)len, .lkey = c->service_mr->lkey,
	};
}
