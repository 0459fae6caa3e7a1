/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the set-up messages in a path's service memory and the wait for a session name; control
 * thread.  Ends with done() or with the path.  An INFO_REQ that breaks a rule fails the path: RTRS
 * has no negative answer (doc/protocol.md 2.4).  A client of ours is told why, and hangs up. */
#define FSM_PREFIX SRV_INFO_

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "util.h"

/* The longest reason, which has three names. */
#define INFO_CAUSE_LEN (RTRS_NAME_MAX + SRV_PATH_NAME + 2 * FAB_IDENTITY_LEN + 64)

/* ---- the name ---- */

static enum srv_info_event refused(struct srv_path *path, enum rtrs_refusal refusal,
				   const char *cause)
{
	path->info.refusal = refusal;
	path->srv->refused[refusal == RTRS_REFUSES_EXPORT ? SRV_REFUSED_RIGHTS :
			   SRV_REFUSED_IDENTITY]++;
	srv_log_refusal(path->srv, &path->client, path->identity, NULL, cause);
	return SRV_INFO_EV_REFUSED;
}

/* May @path join its session under path->info.name?  REFUSED: the reason is in @cause. */
static enum srv_info_event info_judge(struct srv_path *path, char *cause, size_t len)
{
	const char *name = path->info.name;
	const struct srv_path *holder = srv_sess_name_holder(path, name);

	if (path->sess->name[0] && strcmp(path->sess->identity, path->identity)) {
		snprintf(cause, len, "its session belongs to %s, but the client is %s",
			 srv_sess_person(path->sess->identity), srv_sess_person(path->identity));
		return refused(path, RTRS_REFUSES_IDENTITY, cause);
	}
	if (holder && holder->state == SRV_PATH_DRAINING)
		return SRV_INFO_EV_HELD;
	if (holder) {
		snprintf(cause, len, "session name %s of %s is in use by %s", name,
			 srv_sess_person(path->identity), holder->name);
		return refused(path, RTRS_REFUSES_NAME, cause);
	}
	if (path->sess->name[0] && strcmp(path->sess->name, name)) {
		snprintf(cause, len, "session name %s, but its session is called %s", name,
			 path->sess->name);
		return refused(path, RTRS_REFUSES_OTHER_NAME, cause);
	}
	return path->srv->ops->path_joins(path, cause, len) ? SRV_INFO_EV_FREE :
	       refused(path, RTRS_REFUSES_EXPORT, cause);
}

/* ---- life ---- */

static void info_event(struct srv_path *path, enum srv_info_event event);

/* @path may be gone when this returns. */
static void info_refuse(struct srv_path *path, const char *cause)
{
	bool tell = path->info.hears && path->info.state != SRV_INFO_TOLD;

	info_event(path, tell ? SRV_INFO_EV_TELL : SRV_INFO_EV_REFUSED);
	path->info.done(path, cause);
}

static void info_look(void *object)
{
	struct srv_path *path = object;
	char cause[INFO_CAUSE_LEN];
	enum srv_info_event event = info_judge(path, cause, sizeof(cause));

	if (event == SRV_INFO_EV_REFUSED)
		info_refuse(path, cause);
	else
		info_event(path, event);
}

static void info_wait(void *object)
{
	struct srv_path *path = object;

	log_dbg(path->name, "waits for session name %s", path->info.name);
	loop_timer_set(srv_loop(path->srv), &path->info.timer, clock_now_ms() + SRV_PARK_TIMEOUT);
}

static void info_wait_no_more(void *object)
{
	loop_timer_cancel(&((struct srv_path *)object)->info.timer);
}

static void info_join(void *object)
{
	struct srv_path *path = object;

	info_wait_no_more(path);
	memcpy(path->sess->name, path->info.name, sizeof(path->sess->name));
	memcpy(path->sess->identity, path->identity, sizeof(path->sess->identity));
	srv_sess_name_path(path);
	path->info.done(path, NULL);
}

/* Send the @len bytes of the service memory. */
static void info_send(struct srv_path *path, size_t len)
{
	struct srv_con *con = path->cons[0];
	struct ibv_sge sge = {
		.addr = (uintptr_t)path->chunks.service + SRV_SERVICE_RSP,
		.length = (uint32_t)len,
		.lkey = path->chunks.service_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};

	if (!srv_con_dead(con))
		srv_con_post(con, &wr);
}

/* The client hangs up when it has read why.  If the server hung up first, the client could see the
 * end of another connection before it reads. */
static void info_tell(void *object)
{
	struct srv_path *path = object;

	rtrs_info_refusal_encode((void *)(path->chunks.service + SRV_SERVICE_RSP),
				 path->info.refusal);
	info_send(path, rtrs_info_rsp_len(0));
	loop_timer_set(srv_loop(path->srv), &path->info.timer, clock_now_ms() + SRV_TOLD_TIMEOUT);
}

#define UNDECIDED (IN(SEEN) | IN(WAITS))

static const struct fsm_row info_rows[] = {
	ROW(IN(AWAITED), REQ, SEEN, info_look),
	ROW(IN(SEEN), HELD, WAITS, info_wait),
	STAY(IN(WAITS), HELD),
	ROW(UNDECIDED, FREE, NAMED, info_join),
	ROW(UNDECIDED | IN(TOLD), REFUSED, OVER, info_wait_no_more),
	ROW(UNDECIDED, TELL, TOLD, info_tell),
	ROW(IN(AWAITED) | UNDECIDED | IN(TOLD), FAIL, OVER, info_wait_no_more),
	/* A path has its name until @path has drained. */
	STAY(IN(NAMED) | IN(OVER), FAIL),
};

static const char *const info_states[SRV_INFO_NSTATES] = {
	"awaited", "seen", "waits", "named", "told", "over",
};

static const char *const info_events[SRV_INFO_NEVENTS] = {
	"req", "held", "free", "refused", "tell", "fail",
};

const struct fsm srv_info_fsm = FSM("handshake", info_rows, info_states, info_events);

static void info_event(struct srv_path *path, enum srv_info_event event)
{
	fsm_run(&srv_info_fsm, path->name, &path->info.state, event, path);
}

static void info_timeout(struct loop_timer *timer)
{
	struct srv_path *path = container_of(timer, struct srv_path, info.timer);
	char cause[INFO_CAUSE_LEN];

	if (path->info.state == SRV_INFO_TOLD) {
		info_refuse(path, "it was refused, and does not disconnect");
		return;
	}
	snprintf(cause, sizeof(cause), "session name %s is still in use", path->info.name);
	refused(path, RTRS_REFUSES_NAME_CLOSING, cause);
	info_refuse(path, cause);
}

/* ---- messages ---- */

static void srv_info_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_path *path = container_of(cqe, struct srv_path, info.cqe);
	struct srv_con *con = path->cons[0];
	const char *why;

	if (wc->status != IBV_WC_SUCCESS) {
		srv_con_wc_failed(con, wc, "receiving INFO_REQ");
		return;
	}
	if (path->state != SRV_PATH_CONNECTING)
		return;
	if (wc->opcode != IBV_WC_RECV || (wc->wc_flags & IBV_WC_WITH_IMM)) {
		srv_con_fail(con, "immediate data before INFO_REQ");
		return;
	}
	if (rtrs_info_req_decode(path->chunks.service + SRV_SERVICE_REQ, wc->byte_len,
				 path->info.name, &why)) {
		srv_con_fail(con, "INFO_REQ: %s", why);
		return;
	}
	if (path->ncons != path->cid_num || path->ndrained) {
		srv_con_fail(con, "INFO_REQ with %u of %u connections",
			     path->ncons - path->ndrained, path->cid_num);
		return;
	}
	path->info.hears = rtrs_info_req_hears(path->chunks.service + SRV_SERVICE_REQ);
	info_event(path, SRV_INFO_EV_REQ);
}

void srv_info_init(struct srv_path *path, void (*done)(struct srv_path *path, const char *cause))
{
	path->info.done = done;
	path->info.cqe.done = srv_info_wc_recv;
	loop_timer_init(&path->info.timer, info_timeout);
}

int srv_info_post_recv(struct srv_path *path, struct srv_con *con)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)path->chunks.service + SRV_SERVICE_REQ,
		.length = sizeof(struct rtrs_msg_info_req),
		.lkey = path->chunks.service_mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = (uintptr_t)&path->info.cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return fab_post_recv(con->fab, &wr);
}

void srv_info_respond(struct srv_path *path)
{
	rtrs_info_rsp_encode((void *)(path->chunks.service + SRV_SERVICE_RSP),
			     path->chunks.regions, path->chunks.nregions);
	info_send(path, rtrs_info_rsp_len(path->chunks.nregions));
}

void srv_info_cancel(struct srv_path *path)
{
	info_event(path, SRV_INFO_EV_FAIL);
}

void srv_info_retry(struct srv *srv)
{
	struct srv_sess *sess;
	struct srv_path *path;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			if (path->info.state == SRV_INFO_WAITS)
				info_look(path);
		}
	}
}
