/* SPDX-License-Identifier: BSD-3-Clause */
/* The key of a request's chunk, from the arrival of the request to its answer (srv-key.h).
 *
 * The happy path: srv_key_open() gives each chunk a key, before INFO_RSP reports the keys;
 * srv_key_revoke() takes the key away when a request arrives, at once where keys can be suspended,
 * else by invalidates, one post for all requests of a pass, and key_revoked() executes the request;
 * srv_key_rearm() puts the next key, or the old one again, into the post of the answer.
 *
 * Possible failures: a key that cannot be revoked fails the connection; a connection that fails
 * flushes its revocations, and their requests are dropped: the client sends these requests again on
 * another path. */
#include <errno.h>
#include <string.h>

#include "frwr.h"
#include "srv-key.h"
#include "srv-req.h"
#include "util.h"

/* ---- set-up ---- */

/* Bind all windows with one post.  INFO_RSP, which tells the keys, is posted behind on the same
 * connection. */
static int key_bind_all(struct srv_path *path, struct frwr *list)
{
	struct srv_con *con = path->cons[0];
	struct frwr_entry entry;
	int rc = frwr_fill_send(&entry, con->fab, list, NULL, NULL);

	if (rc)
		return rc;
	rc = entry.first ? srv_con_post(con, entry.first) : 0;
	entry.posted(&entry, rc);
	return rc;
}

int srv_key_open(struct srv_path *path)
{
	struct srv_chunks *c = &path->chunks;
	unsigned n = c->geom->queue_depth;
	int rc = 0;

	if (c->invalidate != SRV_INVALIDATE_ALWAYS)
		return 0;
	for (unsigned i = 0; !rc && i < n; i++) {
		struct frwr *w = frwr_at(c->keys, i);
		struct frwr_handle h;

		rc = frwr_map(w, srv_chunk_mr(c, i), srv_chunk_iova(c, i), c->geom->chunk_size,
			      FRWR_PEER_WRITES, &h);
		w->next = i + 1 < n ? frwr_at(c->keys, i + 1) : NULL;
		if (!rc)
			c->regions[i] = (struct rtrs_region){ h.addr, h.rkey, h.len };
	}
	if (!rc && srv_chunk_new_keys(c))
		rc = key_bind_all(path, frwr_at(c->keys, 0));
	for (unsigned i = 0; !rc && i < n; i++)
		frwr_at(c->keys, i)->next = NULL;
	return rc;
}

/* ---- a request ---- */

/* frwr's done().  A request whose revocation was never posted is dropped already; frwr_pool_kill()
 * reports such a request another time.
 *
 * RACE: a device that is gone completes nothing.  Then the control thread calls this, when all
 * connections have drained, and the request goes home. */
static void key_revoked(void *arg, int rc)
{
	struct srv_req *req = arg;

	if (srv_req_stage(req) != SRV_REQ_REVOKING)
		return;
	if (srv_con_drained(req->con)) {
		srv_req_send(req);
		return;
	}
	if (rc)
		srv_con_flushed(req->con);
	srv_req_execute(req);
}

static int revoke_fill(struct srv_req *req)
{
	struct srv_con *con = req->con;

	/* ORDER: the windows may have gone with the connections before the turn of a request
	 * comes. */
	if (srv_con_dead(con))
		return -ENOTCONN;
	return frwr_fill_unmap(&req->entry, con->fab,
			       frwr_at(req->path->chunks.keys, req->buf_id), key_revoked, req);
}

/* Take away the keys of the requests in @todo; requests whose revocation is in the chain go to
 * @filled.  Returns the chain. */
static struct ibv_send_wr *revoke_chain(struct srv_con *con, struct list *todo, struct list *filled)
{
	struct ibv_send_wr *head = NULL, **tail = &head;
	struct srv_req *req;

	while ((req = list_pop_entry(todo, struct srv_req, link))) {
		int rc = revoke_fill(req);

		switch (rc) {
		case 0:
			srv_req_enter(req, SRV_REQ_REVOKING);
			list_add_tail(filled, &req->link);
			*tail = req->entry.first;
			tail = &req->entry.last->next;
			break;
		case 1:
			srv_req_execute(req);
			break;
		default:
			srv_con_fail(con, "request in chunk %u, whose key cannot be revoked: %s",
				     req->buf_id,
				     rc == -ENOTCONN ? "another connection has failed" :
						       strerror(-rc));
			srv_req_execute(req);
		}
	}
	return head;
}

void srv_key_revoke_task(struct loop_task *task)
{
	struct srv_con *con = container_of(task, struct srv_con, revoke_task);
	struct list todo, filled = LIST_INIT(filled);
	struct ibv_send_wr *head;
	struct srv_req *req;
	int rc;

	list_take(&todo, &con->revokes);
	head = revoke_chain(con, &todo, &filled);
	rc = head ? srv_con_post(con, head) : 0;
	while ((req = list_pop_entry(&filled, struct srv_req, link))) {
		req->entry.posted(&req->entry, rc);
		if (rc)
			srv_req_execute(req);
	}
}

void srv_key_revoke_now(struct srv_req *req)
{
	struct srv_con *con = req->con;

	list_add_tail(&con->revokes, &req->link);
	loop_defer(con->thread->loop, &con->revoke_task);
}

/* FRWR_SUSPEND: close the key without a post, so without a wait. */
static void revoke_at_once(struct srv_req *req)
{
	int rc = frwr_map_end(frwr_at(req->path->chunks.keys, req->buf_id));

	if (rc)
		srv_con_fail(req->con, "request in chunk %u, whose key cannot be closed: %s",
			     req->buf_id, strerror(-rc));
	srv_req_execute(req);
}

void srv_key_revoke(struct srv_req *req)
{
	if (!srv_chunk_new_keys(&req->path->chunks))
		revoke_at_once(req);
	else if (req->keyed_by == req->con || srv_turn_next(&req->turn))
		srv_key_revoke_now(req);
}

int srv_key_rearm(struct srv_req *req, struct rtrs_rsp *rsp)
{
	struct srv_chunks *c = &req->path->chunks;
	struct frwr *w = frwr_at(c->keys, req->buf_id);
	struct rtrs_msg_rkey_rsp *msg = &c->rsps[req->buf_id].key;
	struct frwr_handle h;
	int rc = frwr_map(w, srv_chunk_mr(c, req->buf_id), srv_chunk_iova(c, req->buf_id),
			  c->geom->chunk_size, FRWR_PEER_WRITES, &h);

	if (rc || !srv_chunk_new_keys(c))
		return rc;
	rc = frwr_fill_send(&req->entry, req->con->fab, w, NULL, NULL);
	if (rc)
		return rc;
	rtrs_rkey_rsp_encode(msg, (uint16_t)req->buf_id, h.rkey);
	rsp->new_rkey = true;
	rsp->rearm = req->entry.first;
	rsp->rkey_rsp = (struct ibv_sge){
		.addr = (uintptr_t)msg, .length = sizeof(*msg), .lkey = c->service_mr->lkey,
	};
	req->keyed_by = req->con;
	srv_turn_post(&req->turn);
	return 0;
}

/* The last work request of an answer is the signaled one, and completes for certain. */
void srv_key_answer(struct srv_req *req, struct srv_reply *reply)
{
	struct ibv_send_wr *last = &reply->wr.wr[reply->wr.n - 1];

	reply->keyed = req;
	if (!srv_chunk_late_keys(&req->path->chunks))
		return;
	last->wr_id = (uintptr_t)&req->answer_cqe;
	last->send_flags |= IBV_SEND_SIGNALED;
}

/* End a post of an answer; a waiting request, which lies in @req now, goes to its thread. */
static void key_turn_over(struct srv_req *req)
{
	if (srv_turn_posted(&req->turn))
		srv_req_send(req);
}

void srv_key_posted(struct srv_req *req, int rc)
{
	bool late = srv_chunk_late_keys(&req->path->chunks);

	req->entry.posted(&req->entry, rc);
	if (!late)
		key_turn_over(req);
}

void srv_key_wc_answered(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_req *req = container_of(cqe, struct srv_req, answer_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		srv_con_wc_failed(fab_conn_context(fab), wc, "sending");
	key_turn_over(req);
}

/* An answer completes neither if never posted, nor if the device has gone. */
void srv_key_end_turn(struct srv_req *req)
{
	if (srv_chunk_late_keys(&req->path->chunks) && srv_turn_break(&req->turn))
		srv_req_send(req);
}
