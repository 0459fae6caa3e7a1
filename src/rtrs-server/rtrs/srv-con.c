/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection; thread: see the header.
 *
 * The happy path: srv-setup.c accepts the connection, and con_start() has its thread serve it
 * (fab-service.h); completions are polled, and answers posted.  At the end the service is gone,
 * whichever end began.  Then "drained" goes to the control thread; when the last request has come
 * back from the storage, "quiet" follows.  The table below has the whole life.
 *
 * Possible failures: srv_con_fail() notes the first cause and disconnects; the rest of a failure is
 * an ordinary end. */
#define FSM_PREFIX SRV_CON_

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtrs-msg.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-state.h"
#include "util.h"

#define POLL_BUDGET 128
#define POST_RECV_BATCH 64

static struct loop *con_loop(const struct srv_con *con)
{
	return con->thread->loop;
}

/* ---- life ---- */

static void con_run_event(struct srv_con *con, enum srv_con_event event);

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

static void con_drain(void *object)
{
	fab_service_failed(&((struct srv_con *)object)->service);
}

static void con_disconnect(void *object)
{
	fab_service_disconnect(&((struct srv_con *)object)->service);
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
#define DOWN (IN(DEAD) | IN(CUT) | IN(DRAINED) | IN(LINGERING) | IN(QUIET))

static const struct fsm_row con_rows[] = {
	/* shutdown in good order */
	ROW(IN(SERVING), FINISH, FINISHING, con_check_idle),
	ROW(IN(FINISHING), IDLE, MARKED, con_mark),
	ROW(IN(MARKED), LEFT, FINISHED, con_tell_finished),

	/* the ways down, from either end */
	ROW(UP, FAIL, DEAD, con_disconnect),
	ROW(UP, FLUSHED, DEAD, con_drain),
	ROW(UP | IN(DEAD), CUT, CUT, con_disconnect),
	ROW(IN(DEAD), DRAINED, DRAINED, con_tell_drained),
	ROW(IN(CUT), DRAINED, LINGERING, con_tell_drained),
	ROW(IN(DRAINED), CUT, LINGERING, con_check_idle),
	ROW(IN(LINGERING), IDLE, QUIET, con_tell_quiet),

	/* too early or too late to matter */
	STAY(IN(SERVING) | IN(MARKED) | IN(FINISHED) | (DOWN & ~IN(LINGERING)), IDLE),
	STAY(IN(DEAD) | IN(DRAINED), FINISH),
	STAY(IN(SERVING) | IN(FINISHING) | IN(FINISHED) | DOWN, LEFT),
	STAY(DOWN, FAIL),
	STAY(DOWN, FLUSHED),
};

static const char *const con_states[SRV_CON_NSTATES] = {
	"serving", "finishing", "marked", "finished", "dead", "cut", "drained", "lingering",
	"quiet",
};

static const char *const con_events[SRV_CON_NEVENTS] = {
	"finish", "idle", "left", "fail", "flushed", "cut", "drained",
};

const struct fsm srv_con_fsm = FSM("connection", con_rows, con_states, con_events);

static void con_run_event(struct srv_con *con, enum srv_con_event event)
{
	char name[SRV_PATH_NAME + 8];

	fsm_run(&srv_con_fsm, fsm_name(name, sizeof(name), con->path->name, con->cid), &con->state,
		event, con);
}

void srv_con_idle(struct srv_con *con)
{
	con_run_event(con, SRV_CON_EV_IDLE);
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

/* ---- idle memory ---- */

void srv_con_trim_later(struct srv_con *con, uint64_t now_ns)
{
	uint64_t due_ns = now_ns + SRV_TRIM_MS * 1000000ull;

	if (srv_con_dead(con) || !srv_chunk_gives_back(&con->path->chunks))
		return;
	/* A round that goes on may have passed the chunk. */
	con->trim_due_ns = MIN(con->trim_due_ns, due_ns);
	if (!loop_timer_armed(&con->trim_timer))
		loop_timer_set(con_loop(con), &con->trim_timer, due_ns / 1000000 + 1);
}

/* ---- service ---- */

static int con_poll(struct fab_service *service, int budget)
{
	struct srv_con *con = container_of(service, struct srv_con, service);
	int n;

	con->now_ns = 0;
	n = fab_dispatch(service->fab, budget);
	if (con->consumed < SRV_SPARE_RECVS || srv_con_dead(con))
		return n;
	/* ORDER: before the answers of this pass, so before the client may send more requests than
	 * it had in flight. */
	if (srv_con_post_empty(con, con->consumed))
		srv_con_fail(con, "cannot post receives");
	con->consumed = 0;
	return n;
}

static void con_ended(struct fab_service *service)
{
	struct srv_con *con = container_of(service, struct srv_con, service);

	srv_con_flushed(con);
	if (!con->cause[0])
		snprintf(con->cause, sizeof(con->cause), "%s", fab_conn_cause(con->fab));
	/* ORDER: before the control thread hears of the end, and takes the windows away. */
	loop_timer_cancel(&con->trim_timer);
	loop_undefer(&con->revoke_task);
	con->revoke_task.fn(&con->revoke_task);
}

static void con_gone(struct fab_service *service)
{
	con_run_event(container_of(service, struct srv_con, service), SRV_CON_EV_DRAINED);
}

static const struct fab_service_ops con_service = {
	.poll = con_poll,
	.budget = POLL_BUDGET,
	.ended = con_ended,
	.gone = con_gone,
};

static void con_start(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, start_msg);
	int rc = fab_service_begin(&con->service, con_loop(con), con->fab);

	if (rc)
		srv_con_fail(con, "cannot watch its descriptor: %s", strerror(-rc));
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
		return rc;
	}
	fab_service_posted(&con->service);
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
		struct ibv_recv_wr *next = NULL;

		for (unsigned i = k; i--; next = &wr[i]) {
			wr[i].wr_id = (uintptr_t)&con->recv_cqe;
			wr[i].next = next;
			wr[i].sg_list = NULL;
			wr[i].num_sge = 0;
		}
		rc = fab_post_recv(con->fab, wr);
		n -= k;
	}
	return rc;
}

/* ---- control thread ---- */

void srv_con_refusal(struct rtrs_msg_conn_rsp *m, int status, enum rtrs_refusal refusal)
{
	const struct rtrs_conn_rsp rsp = { .status = status, .refusal = refusal };

	rtrs_conn_rsp_encode(m, &rsp);
}

void srv_con_refuse(struct fab_conn *fab, int status, enum rtrs_refusal refusal)
{
	struct rtrs_msg_conn_rsp m;

	srv_con_refusal(&m, status, refusal);
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
	loop_timer_init(&con->trim_timer, ops->trim);
	con->trim_due_ns = UINT64_MAX;
	fab_service_init(&con->service, &con_service);
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
