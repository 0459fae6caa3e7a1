/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one fabric connection.  Thread: see the header.
 *
 * How it ends: fab_poll() says -ENOTCONN, whoever began it.  Then the descriptor is unwatched, "drained"
 * goes to the control thread; and when the last request has come
 * back from the storage, "quiet".
 * How it fails: srv_con_fail() notes the first cause and disconnects; nothing else is special about
 * a failure.
 *
 * Replies are collected during a pass and leave with one post per connection (doc/decisions.md D3).  They leave
 * from the chunks, which live as long as the connection, so a post needs no completion and no second look
 * at the connection. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "srv-con.h"
#include "srv-io.h"
#include "srv-key.h"
#include "srv-path.h"
#include "srv-priv.h"
#include "util.h"

#define DRAIN_AGAIN_MS 1000
#define POLL_BUDGET 128
#define POST_RECV_BATCH 64

static struct loop *con_loop(const struct srv_con *con)
{
	return reactor_loop(con->thread->reactor);
}

/* ---- end ---- */

/* Nothing is in flight.  Behind the last answer a write of nothing, which no peer notices, tells when
 * all answers have left. */
static void con_finish_step(struct srv_con *con)
{
	struct ibv_send_wr marker = {
		.wr_id = (uintptr_t)&con->send_cqe,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (con->dead || con->finished_sent)
		return;
	if (!con->marked) {
		con->marked = true;
		srv_con_post(con, &marker);
	} else if (con->marker_left) {
		con->finished_sent = true;
		srv_post_control(con->thread->srv, &con->finished_msg);
	}
}

void srv_con_check_idle(struct srv_con *con)
{
	if (con->inflight)
		return;
	if (con->drained) {
		/* ORDER: not before the cut has come, or it would find @con freed; and @con may be
		 * freed from the post on. */
		if (con->cut && !con->quiet_sent) {
			con->quiet_sent = true;
			srv_post_control(con->thread->srv, &con->quiet_msg);
		}
		return;
	}
	if (con->finishing)
		con_finish_step(con);
}

static void con_unwatched(struct loop_watch *watch)
{
	struct srv_con *con = container_of(watch, struct srv_con, watch);

	/* ORDER: drained before quiet; both go through the same inbox. */
	con->drained = true;
	srv_post_control(con->thread->srv, &con->drained_msg);
	srv_con_check_idle(con);
}

static void con_poll_again(struct srv_con *con);

/* A device that is gone, or broken, wakes nobody. */
static void con_drain_timer(struct loop_timer *timer)
{
	struct srv_con *con = container_of(timer, struct srv_con, drain_timer);

	loop_timer_set(con_loop(con), timer, clock_now_ms() + DRAIN_AGAIN_MS);
	con_poll_again(con);
}

static void con_drained(struct srv_con *con)
{
	loop_timer_cancel(&con->drain_timer);
	con->dead = true;
	con->ended = true;
	if (!con->cause[0])
		snprintf(con->cause, sizeof(con->cause), "%s", fab_conn_cause(con->fab));
	loop_undefer(&con->again_task);
	loop_undefer(&con->arm_task);
	/* ORDER: the windows of the path are gone when this has been heard of. */
	loop_undefer(&con->revoke_task);
	srv_key_revoke_task(&con->revoke_task);
	if (con->started)
		loop_unwatch(&con->watch);
	else
		con_unwatched(&con->watch);
}

void srv_con_fail(struct srv_con *con, const char *fmt, ...)
{
	va_list ap;

	if (con->dead)
		return;
	con->dead = true;
	va_start(ap, fmt);
	vsnprintf(con->cause, sizeof(con->cause), fmt, ap);
	va_end(ap);
	fab_disconnect(con->fab);
}

void srv_con_wc_failed(struct srv_con *con, const struct ibv_wc *wc, const char *what)
{
	const char *cause = fab_conn_cause(con->fab);

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		con->dead = true;	/* the cause comes with drained */
	else
		srv_con_fail(con, "%s failed: %s", what, cause[0] ? cause : "work request error");
}

/* ---- polling ---- */

/* Get ready to sleep, or have that done in time.  Returns true when there is more to do at once. */
static bool con_arm(struct srv_con *con)
{
	short events;

	if (fab_arm_is_dear(con->fab)) {
		loop_before_sleep(con_loop(con), &con->arm_task);
		return false;
	}
	if (fab_arm(con->fab, &events))
		return true;
	if (con->started)
		loop_watch_events(&con->watch, events);
	return false;
}

/* Poll and get ready to sleep.  Returns true when there is more to do at once. */
static bool con_service(struct srv_con *con)
{
	short events;
	int n;

	if (con->ended)
		return false;
	if (!list_empty(&con->arm_task.link)) {		/* not without it between two polls */
		loop_undefer(&con->arm_task);
		fab_arm(con->fab, &events);
	}
	n = fab_dispatch(con->fab, POLL_BUDGET);
	if (n < 0) {
		con_drained(con);
		return false;
	}
	return n >= POLL_BUDGET || !con->started || con_arm(con);
}

static void con_poll_again(struct srv_con *con)
{
	loop_defer(con_loop(con), &con->again_task);
}

static bool con_ready(struct loop_watch *watch)
{
	return con_service(container_of(watch, struct srv_con, watch));
}

static void con_again(struct loop_task *task)
{
	struct srv_con *con = container_of(task, struct srv_con, again_task);

	if (con_service(con))
		con_poll_again(con);
}

static void con_arm_now(struct loop_task *task)
{
	struct srv_con *con = container_of(task, struct srv_con, arm_task);
	short events;

	if (fab_arm(con->fab, &events))
		con_poll_again(con);
	else if (con->started)
		loop_watch_events(&con->watch, events);
}

static void con_start(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, start_msg);
	int rc;

	con->watch.fd = fab_conn_fd(con->fab);
	con->watch.events = POLLIN;
	con->watch.ready = con_ready;
	con->watch.closed = con_unwatched;
	rc = loop_watch(con_loop(con), &con->watch);
	con->started = !rc;
	if (rc)
		srv_con_fail(con, "cannot watch its descriptor: %s", strerror(-rc));
	if (con_service(con))
		con_poll_again(con);
}

static void con_cut(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, cut_msg);

	con->cut = true;
	if (con->ended) {
		srv_con_check_idle(con);
		return;
	}
	con->dead = true;
	fab_disconnect(con->fab);
	con_poll_again(con);
	loop_timer_set(con_loop(con), &con->drain_timer, clock_now_ms() + DRAIN_AGAIN_MS);
}

static void con_finish(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, finish_msg);

	con->finishing = true;
	srv_con_check_idle(con);
}

/* ---- posting ---- */

int srv_con_post(struct srv_con *con, const struct ibv_send_wr *wr)
{
	int rc = fab_post_send(con->fab, wr);

	if (rc) {
		const char *cause = fab_conn_cause(con->fab);

		srv_con_fail(con, "cannot post: %s", cause[0] ? cause : strerror(-rc));
		con_poll_again(con);
		return rc;
	}
	if (fab_need_rearm(con->fab) && con_arm(con))
		con_poll_again(con);
	return 0;
}

/* Take the next finished requests off the list and chain their answers, @count of them; returns the
 * head, or NULL when none of them has an answer to send. */
static struct ibv_send_wr *con_chain_replies(struct srv_con *con, unsigned *count)
{
	struct ibv_send_wr *head = NULL, **tail = &head, *first;
	unsigned n = 0;

	while (n < SRV_REPLY_BATCH && !list_empty(&con->replies)) {
		struct srv_req *req = list_entry(list_pop(&con->replies), struct srv_req, link);
		struct srv_reply *reply = &con->thread->scratch[n];

		con->inflight--;
		first = srv_io_response(req, (uintptr_t)&con->send_cqe, reply);
		if (!first)
			continue;
		*tail = first;
		tail = &reply->wr.wr[reply->wr.n - 1].next;
		n++;
	}
	*count = n;
	return head;
}

static void con_reply_task(struct loop_task *task)
{
	struct srv_con *con = container_of(task, struct srv_con, reply_task);

	while (!list_empty(&con->replies)) {
		unsigned n;
		struct ibv_send_wr *head = con_chain_replies(con, &n);
		int rc = head ? srv_con_post(con, head) : 0;

		for (unsigned i = 0; i < n; i++) {
			struct srv_req *keyed = con->thread->scratch[i].keyed;

			if (keyed)
				srv_key_posted(keyed, rc);
		}
	}
	srv_con_check_idle(con);
}

void srv_con_reply(struct srv_con *con, struct srv_req *req)
{
	list_add_tail(&con->replies, &req->link);
	loop_defer(con_loop(con), &con->reply_task);
}

static void con_wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_con *con = container_of(cqe, struct srv_con, send_cqe);

	if (wc->status != IBV_WC_SUCCESS) {
		srv_con_wc_failed(con, wc, "sending");
		return;
	}
	con->marker_left = true;	/* nothing else is signaled */
	srv_con_check_idle(con);
}

int srv_con_post_empty(struct srv_con *con, unsigned n)
{
	struct ibv_recv_wr wr[POST_RECV_BATCH];
	int rc = 0;

	while (n && !rc) {
		unsigned k = MIN(n, (unsigned)POST_RECV_BATCH);

		for (unsigned i = 0; i < k; i++) {
			wr[i] = (struct ibv_recv_wr){
				.wr_id = (uintptr_t)&con->recv_cqe,
				.next = i + 1 < k ? &wr[i + 1] : NULL,
			};
		}
		rc = fab_post_recv(con->fab, wr);
		n -= k;
	}
	return rc;
}

/* ---- life, control thread ---- */

struct srv_con *srv_con_create(struct srv_path *path, uint16_t cid, struct srv_thread *thread,
			       struct fab_conn *fab)
{
	struct srv_con *con = calloc(1, sizeof(*con));

	if (!con)
		return NULL;
	con->path = path;
	con->thread = thread;
	con->fab = fab;
	con->cid = cid;
	list_init(&con->replies);
	list_init(&con->revokes);
	loop_task_init(&con->revoke_task, srv_key_revoke_task);
	loop_task_init(&con->reply_task, con_reply_task);
	loop_task_init(&con->again_task, con_again);
	loop_task_init(&con->arm_task, con_arm_now);
	loop_timer_init(&con->drain_timer, con_drain_timer);
	con->recv_cqe.done = srv_io_wc_recv;
	con->send_cqe.done = con_wc_send;
	loop_msg_init(&con->start_msg, con_start);
	loop_msg_init(&con->cut_msg, con_cut);
	loop_msg_init(&con->finish_msg, con_finish);
	loop_msg_init(&con->drained_msg, srv_path_con_drained);
	loop_msg_init(&con->quiet_msg, srv_path_con_quiet);
	loop_msg_init(&con->finished_msg, srv_path_con_finished);
	return con;
}

void srv_con_destroy(struct srv_con *con)
{
	assert(!con->inflight && !con->fab);
	free(con);
}

void srv_con_start(struct srv_con *con)
{
	loop_post(con_loop(con), &con->start_msg);
}

void srv_con_cut(struct srv_con *con)
{
	loop_post(con_loop(con), &con->cut_msg);
}

void srv_con_finish(struct srv_con *con)
{
	loop_post(con_loop(con), &con->finish_msg);
}
