/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one fabric connection.  Thread: see the header.
 *
 * How a connection ends: fab_poll() returns -ENOTCONN, whichever end began.  Then the descriptor
 * is unwatched, and "drained" goes to the control thread; when the last request has come back from
 * the storage, "quiet" follows.  The table below has the whole life.
 * How a connection fails: srv_con_fail() notes the first cause and disconnects; the rest of a
 * failure is an ordinary end. */
#define FSM_PREFIX SRV_CON_

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "rtrs-msg.h"
#include "srv-con.h"
#include "srv-state.h"
#include "util.h"

#define DRAIN_AGAIN_MS 1000
#define POLL_BUDGET 128
#define POST_RECV_BATCH 64

static struct loop *con_loop(const struct srv_con *con)
{
	return con->thread->loop;
}

/* ---- life ---- */

static void con_run_event(struct srv_con *con, enum srv_con_event event);

static void con_poll_again(struct srv_con *con)
{
	loop_defer(con_loop(con), &con->again_task);
}

static void con_check_idle(void *object)
{
	srv_con_check_idle(object);
}

/* Post an empty write, unnoticed by any peer, behind the last answer: the completion shows that
 * all answers have left. */
static void con_mark(void *object)
{
	struct srv_con *con = object;
	struct ibv_send_wr marker = {
		.wr_id = (uintptr_t)&con->send_cqe,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	srv_con_post(con, &marker);
}

static void con_tell_finished(void *object)
{
	struct srv_con *con = object;

	srv_post_control(con->thread->srv, &con->finished_msg);
}

/* A failed connection may drain without an event (fab_arm()). */
static void con_drain_later(void *object)
{
	struct srv_con *con = object;

	loop_timer_set(con_loop(con), &con->drain_timer, clock_now_ms() + DRAIN_AGAIN_MS);
}

static void con_disconnect(void *object)
{
	fab_disconnect(((struct srv_con *)object)->fab);
	con_drain_later(object);
}

static void con_cut_now(void *object)
{
	con_disconnect(object);
	con_poll_again(object);
}

static void con_unwatched(struct loop_watch *watch)
{
	con_run_event(container_of(watch, struct srv_con, watch), SRV_CON_EV_UNWATCHED);
}

static void con_end(void *object)
{
	struct srv_con *con = object;

	loop_timer_cancel(&con->drain_timer);
	if (!con->cause[0])
		snprintf(con->cause, sizeof(con->cause), "%s", fab_conn_cause(con->fab));
	loop_undefer(&con->again_task);
	loop_undefer(&con->arm_task);
	/* ORDER: before the control thread hears of the end, and takes the windows away. */
	loop_undefer(&con->revoke_task);
	con->revoke_task.fn(&con->revoke_task);
	if (con->watch.fd >= 0)
		loop_unwatch(&con->watch);
	else
		con_unwatched(&con->watch);
}

static void con_tell_drained(void *object)
{
	struct srv_con *con = object;

	/* ORDER: drained before quiet; both go through the same inbox. */
	srv_post_control(con->thread->srv, &con->drained_msg);
	srv_con_check_idle(con);
}

/* ORDER: after the cut has come, because the cut would find @con freed; from here on @con may be
 * freed. */
static void con_tell_quiet(void *object)
{
	struct srv_con *con = object;

	srv_post_control(con->thread->srv, &con->quiet_msg);
}

#define UP (IN(SERVING) | IN(FINISHING) | IN(MARKED) | IN(FINISHED))
#define DOWN (IN(DEAD) | IN(CUT) | IN(ENDED) | IN(CUT_ENDED) | IN(DRAINED) | IN(LINGERING) |       \
	      IN(QUIET))

static const struct fsm_row con_rows[] = {
	/* shutdown in good order */
	ROW(IN(SERVING), FINISH, FINISHING, con_check_idle),
	ROW(IN(FINISHING), IDLE, MARKED, con_mark),
	ROW(IN(MARKED), LEFT, FINISHED, con_tell_finished),

	/* the ways down, from either end */
	ROW(UP, FAIL, DEAD, con_disconnect),
	ROW(UP, FLUSHED, DEAD, con_drain_later),
	ROW(UP | IN(DEAD), CUT, CUT, con_cut_now),
	ROW(UP | IN(DEAD), ENDED, ENDED, con_end),
	ROW(IN(CUT), ENDED, CUT_ENDED, con_end),
	ROW(IN(ENDED), CUT, CUT_ENDED, NULL),
	ROW(IN(ENDED), UNWATCHED, DRAINED, con_tell_drained),
	ROW(IN(CUT_ENDED), UNWATCHED, LINGERING, con_tell_drained),
	ROW(IN(DRAINED), CUT, LINGERING, con_check_idle),
	ROW(IN(LINGERING), IDLE, QUIET, con_tell_quiet),

	/* too early or too late to matter */
	STAY(IN(SERVING) | IN(MARKED) | IN(FINISHED) | (DOWN & ~IN(LINGERING)), IDLE),
	STAY(IN(DEAD) | IN(ENDED) | IN(DRAINED), FINISH),
	STAY(IN(SERVING) | IN(FINISHING) | IN(FINISHED) | DOWN, LEFT),
	STAY(DOWN, FAIL),
	STAY(DOWN, FLUSHED),
};

static const char *const con_states[SRV_CON_NSTATES] = {
	"serving", "finishing", "marked", "finished", "dead", "cut", "ended", "cut+ended",
	"drained", "lingering", "quiet",
};

static const char *const con_events[SRV_CON_NEVENTS] = {
	"finish", "idle", "left", "fail", "flushed", "cut", "ended", "unwatched",
};

const struct fsm srv_con_fsm = FSM("connection", con_rows, con_states, con_events);

static void con_run_event(struct srv_con *con, enum srv_con_event event)
{
	fsm_run(&srv_con_fsm, &con->state, event, con);
}

void srv_con_idle(struct srv_con *con)
{
	con_run_event(con, SRV_CON_EV_IDLE);
}

static void con_drain_timer(struct loop_timer *timer)
{
	struct srv_con *con = container_of(timer, struct srv_con, drain_timer);

	con_drain_later(con);
	con_poll_again(con);
}

void srv_con_fail(struct srv_con *con, const char *fmt, ...)
{
	va_list ap;

	if (srv_con_dead(con))
		return;
	va_start(ap, fmt);
	vsnprintf(con->cause, sizeof(con->cause), fmt, ap);
	va_end(ap);
	con_run_event(con, SRV_CON_EV_FAIL);
}

void srv_con_flushed(struct srv_con *con)
{
	con_run_event(con, SRV_CON_EV_FLUSHED);	/* the cause comes with drained */
}

void srv_con_wc_failed(struct srv_con *con, const struct ibv_wc *wc, const char *what)
{
	const char *cause = fab_conn_cause(con->fab);

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		srv_con_flushed(con);
	else
		srv_con_fail(con, "%s failed: %s", what, cause[0] ? cause : "work request error");
}

/* ---- polling ---- */

/* Arm, or arm later, before the thread sleeps, if arming is dear.  Returns true when more work is
 * ready. */
static bool con_arm(struct srv_con *con)
{
	short events;

	if (fab_arm_is_dear(con->fab)) {
		loop_before_sleep(con_loop(con), &con->arm_task);
		return false;
	}
	if (fab_arm(con->fab, &events))
		return true;
	if (con->watch.fd >= 0)
		loop_watch_events(&con->watch, events);
	return false;
}

/* Poll and get ready to sleep.  Returns true when more work is ready. */
static bool con_service(struct srv_con *con)
{
	short events;
	int n;

	if (srv_con_ended(con))
		return false;
	if (!list_empty(&con->arm_task.link)) {		/* fab_arm() runs between two polls */
		loop_undefer(&con->arm_task);
		fab_arm(con->fab, &events);
	}
	con->now_ns = 0;
	n = fab_dispatch(con->fab, POLL_BUDGET);
	if (n < 0) {
		con_run_event(con, SRV_CON_EV_ENDED);
		return false;
	}
	return n >= POLL_BUDGET || con->watch.fd < 0 || con_arm(con);
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
	else if (con->watch.fd >= 0)
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
	if (rc) {
		con->watch.fd = -1;
		srv_con_fail(con, "cannot watch its descriptor: %s", strerror(-rc));
	}
	if (con_service(con))
		con_poll_again(con);
}

static void con_cut(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, cut_msg);

	/* ORDER: before the event: a connection with nothing in flight may be freed then. */
	con->cut(con);
	con_run_event(con, SRV_CON_EV_CUT);
}

static void con_finish(struct loop_msg *msg)
{
	con_run_event(container_of(msg, struct srv_con, finish_msg), SRV_CON_EV_FINISH);
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

static void con_wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_con *con = container_of(cqe, struct srv_con, send_cqe);

	if (wc->status != IBV_WC_SUCCESS) {
		srv_con_wc_failed(con, wc, "sending");
		return;
	}
	con_run_event(con, SRV_CON_EV_LEFT);	/* nothing else is signaled */
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

/* ---- control thread ---- */

void srv_con_refusal(struct rtrs_msg_conn_rsp *m, int status)
{
	const struct rtrs_conn_rsp rsp = { .status = status };

	rtrs_conn_rsp_encode(m, &rsp);
}

void srv_con_refuse(struct fab_conn *fab, int status)
{
	struct rtrs_msg_conn_rsp m;

	srv_con_refusal(&m, status);
	fab_reject(fab, &m, sizeof(m));
}

struct srv_con *srv_con_create(struct srv_path *path, uint16_t cid, struct srv_thread *thread,
			       struct fab_conn *fab, const struct srv_con_ops *ops)
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
	list_init(&con->held);
	con->cut = ops->cut;
	loop_task_init(&con->revoke_task, ops->revoke);
	loop_task_init(&con->reply_task, ops->reply);
	loop_task_init(&con->again_task, con_again);
	loop_task_init(&con->arm_task, con_arm_now);
	loop_timer_init(&con->drain_timer, con_drain_timer);
	con->watch.fd = -1;
	con->recv_cqe.done = ops->recv;
	con->send_cqe.done = con_wc_send;
	loop_msg_init(&con->start_msg, con_start);
	loop_msg_init(&con->cut_msg, con_cut);
	loop_msg_init(&con->finish_msg, con_finish);
	con->drained_msg.fn = ops->drained;
	con->quiet_msg.fn = ops->quiet;
	con->finished_msg.fn = ops->finished;
	return con;
}

void srv_con_destroy(struct srv_con *con)
{
	assert(!counter_get(&con->inflight) && !con->fab);
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
