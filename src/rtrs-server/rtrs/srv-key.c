/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the windows of a path from set-up to drained, and the requests between arrival and the end
 * of their key.
 *
 * How it ends: srv_key_close(), when no connection of the path can complete anything any more.
 * How it fails: a connection that fails flushes its revocations, and their requests are dropped:
 * their client sends them again on another path.  Windows are never repaired; they go with their
 * path. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frwr.h"
#include "log.h"
#include "srv-key.h"
#include "srv-req.h"
#include "util.h"

/* ---- which way ---- */

/* auto takes windows over devices that have them in hardware.  Where a kernel plays the device,
 * windows have quirks and cost more than a copy. */
static bool in_hardware(const struct srv_chunks *c, const struct frwr_caps *caps)
{
	return c->pinned && !caps->rc[FRWR_MW1] && !caps->quirks;
}

/* Returns FRWR_SUSPEND or FRWR_MW1; -EPERM: nothing of what was asked for; or otherwise negative:
 * copy.  @why either way. */
static int choose(const struct srv_chunks *c, const struct frwr_caps *caps, char *why, size_t len)
{
	int mode;

	if (c->srv->conf->invalidate == SRV_INVALIDATE_ALWAYS && caps->unable[FRWR_MW1]) {
		snprintf(why, len, "--invalidate=always: %s; auto and copy do without",
			 caps->why[FRWR_MW1]);
		return -EPERM;
	}
	/* A word in memory costs less than a copy and less than a window. */
	if (c->srv->conf->invalidate == SRV_INVALIDATE_AUTO && !caps->rc[FRWR_SUSPEND])
		return frwr_pick(caps, &frwr_order_server[1], 1, why, len);
	if (c->srv->conf->invalidate == SRV_INVALIDATE_AUTO && !in_hardware(c, caps)) {
		snprintf(why, len, "%s", caps->rc[FRWR_MW1] ? caps->why[FRWR_MW1] :
			 "memory windows in software cost more");
		return -EOPNOTSUPP;
	}
	mode = frwr_pick(caps, frwr_order_server, ARRAY_SIZE(frwr_order_server), why, len);
	if (mode == FRWR_MW1 && caps->dev.max_mw < c->geom->queue_depth) {
		snprintf(why, len, "a path needs %u memory windows, the device has %u",
			 c->geom->queue_depth, caps->dev.max_mw);
		return -EOPNOTSUPP;
	}
	return mode;
}

const char *srv_key_word(const struct srv_chunks *c)
{
	if (c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_SUSPEND)
		return frwr_mode_name(FRWR_SUSPEND);
	return srv_invalidate_names[c->invalidate];
}

/* Clients come as often as they like, and by turns through devices of different kinds, of which
 * there are a few: each is news once. */
static void tell(const struct srv_chunks *c, struct fab_conn *conn, const char *why)
{
	const char *word = srv_key_word(c);
	/* What frwr_pick() says begins with the name of the mode, which may be that word. */
	bool twice = !strncmp(why, word, strlen(word));
	struct srv *srv = c->srv;
	struct fab_addr local;
	char text[sizeof(srv->told_protection[0])];

	fab_conn_addrs(conn, &local, NULL);
	snprintf(text, sizeof(text), "requests over %s: invalidate is %s%s%s", fab_addr_transport(&local),
		 twice ? "" : word, twice ? "" : ": ", why);
	for (unsigned i = 0; i < ARRAY_SIZE(srv->told_protection); i++) {
		if (!strcmp(srv->told_protection[i], text))
			return;
	}
	memcpy(srv->told_protection[srv->ntold++ % ARRAY_SIZE(srv->told_protection)], text,
	       sizeof(text));
	if (c->invalidate == SRV_INVALIDATE_COPY && srv->conf->invalidate == SRV_INVALIDATE_ALWAYS)
		log_warn(NULL, "%s", text);
	else
		log_info(NULL, "%s", text);
}

int srv_key_choose(struct srv_chunks *c, struct fab_conn *conn)
{
	enum srv_invalidate conf = c->srv->conf->invalidate;
	struct frwr_caps caps;
	char why[192];
	int rc, mode;

	c->invalidate = conf;
	if (conf == SRV_INVALIDATE_COPY || conf == SRV_INVALIDATE_NEVER)
		return 0;
	rc = frwr_query(conn, c->pd, &caps);
	if (rc)
		return rc;
	frwr_lessons_apply(&c->srv->lessons, &caps);
	mode = choose(c, &caps, why, sizeof(why));
	if (mode == -EPERM) {
		snprintf(c->refused, sizeof(c->refused), "%s", why);
		return -EOPNOTSUPP;
	}
	c->invalidate = SRV_INVALIDATE_COPY;
	if (mode >= 0)
		rc = frwr_pool_create(&c->keys, c->pd, (enum frwr_mode)mode, c->geom->queue_depth);
	if (rc) {	/* other paths may have what the device has */
		snprintf(why, sizeof(why), "a path needs %u keys of the device, and it has no more: %s",
			 c->geom->queue_depth, strerror(-rc));
	} else if (mode >= 0) {
		frwr_pool_learn(c->keys, &c->srv->lessons, &caps);
		c->invalidate = SRV_INVALIDATE_ALWAYS;
		c->key_mode = (enum frwr_mode)mode;
		c->mr_each = mode == FRWR_MW1 && (caps.quirks & FRWR_QUIRK_MR_BOUNDS);
	}
	tell(c, conn, why);
	return 0;
}

/* ---- set-up and end ---- */

/* Bind them all with one post.  What tells the keys is posted behind it on the same connection. */
static int bind_all(struct srv_path *path, struct frwr *list)
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
		rc = bind_all(path, frwr_at(c->keys, 0));
	for (unsigned i = 0; !rc && i < n; i++)
		frwr_at(c->keys, i)->next = NULL;
	return rc;
}

void srv_key_close(struct srv_chunks *c, const char *name)
{
	struct frwr_stats s;

	if (!c->keys)
		return;
	frwr_stats(c->keys, &s);
	log_dbg(name, "keys: %llu given, %llu taken away, %llu flushed, %llu wraps, mode %s; %llu bound, %llu "
		"posts failed, %llu of them in part",
		(unsigned long long)s.mapped, (unsigned long long)s.local_inv,
		(unsigned long long)(s.flushed_bind + s.flushed_inv),
		(unsigned long long)s.key_wraps, frwr_mode_name(c->key_mode),
		(unsigned long long)s.bind_posted, (unsigned long long)s.post_fail,
		(unsigned long long)s.partial_post);
	/* Windows that the device does not take back are tried once more without connections, and
	 * then left to the device: nobody reaches memory through them any more. */
	if (!frwr_pool_destroy(c->keys))
		c->keys = NULL;
}

/* ---- a request ---- */

/* frwr's done().  A request whose revocation was never posted has been dropped where that was seen;
 * frwr_pool_kill() says so once more.
 *
 * RACE: a device that is gone completes nothing.  Then it is the control thread that says so, when
 * all connections have drained, and the request goes home. */
static void key_revoked(void *arg, int rc)
{
	struct srv_req *req = arg;

	if (srv_req_stage(req) != SRV_REQ_REVOKING)
		return;
	if (srv_con_ended(req->con)) {
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

	/* ORDER: a request whose turn is told late may find that the windows have gone with the
	 * connections. */
	if (srv_con_dead(con))
		return -ENOTCONN;
	return frwr_fill_unmap(&req->entry, con->fab,
			       frwr_at(req->path->chunks.keys, req->buf_id), key_revoked, req);
}

/* Take away what is in @todo; those that have been filled into a chain go to @filled.  Returns the
 * chain. */
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
			srv_con_fail(con, "request in chunk %u, whose key cannot be taken away: %s",
				     req->buf_id, rc == -ENOTCONN ? "another connection has failed" :
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

/* FRWR_SUSPEND: nothing is posted, so nothing is awaited. */
static void revoke_at_once(struct srv_req *req)
{
	int rc = frwr_map_end(frwr_at(req->path->chunks.keys, req->buf_id));

	if (rc)
		srv_con_fail(req->con, "request in chunk %u, whose key cannot be closed: %s", req->buf_id,
			     strerror(-rc));
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
	struct rtrs_msg_rkey_rsp *msg = &c->rkey_rsps[req->buf_id];
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

/* Only the last request of an answer is signaled, and completes for certain. */
void srv_key_answer(struct srv_req *req, struct srv_reply *reply)
{
	struct ibv_send_wr *last = &reply->wr.wr[reply->wr.n - 1];

	reply->keyed = req;
	if (!srv_chunk_late_keys(&req->path->chunks))
		return;
	last->wr_id = (uintptr_t)&req->answer_cqe;
	last->send_flags |= IBV_SEND_SIGNALED;
}

/* The request that waits is @req's now. */
static void turn_over(struct srv_req *req)
{
	if (srv_turn_posted(&req->turn))
		srv_req_send(req);
}

void srv_key_posted(struct srv_req *req, int rc)
{
	bool late = srv_chunk_late_keys(&req->path->chunks);

	req->entry.posted(&req->entry, rc);
	if (!late)
		turn_over(req);
}

void srv_key_wc_answered(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_req *req = container_of(cqe, struct srv_req, answer_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		srv_con_wc_failed(fab_conn_context(fab), wc, "sending");
	turn_over(req);
}

/* An answer that was not posted, or went with its device, does not complete. */
void srv_key_end_turn(struct srv_req *req)
{
	if (srv_chunk_late_keys(&req->path->chunks) && srv_turn_break(&req->turn))
		srv_req_send(req);
}
