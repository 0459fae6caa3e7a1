/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the set-up messages in a path's service memory and the wait for a session name; control
 * thread.  Ends with done() or with the path.  An INFO_REQ that breaks a rule fails the path: there
 * is no negative answer (doc/protocol.md 2.4). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "srv-con.h"
#include "srv-info.h"
#include "srv-path.h"
#include "srv-state.h"
#include "srv-sess.h"
#include "util.h"

static void info_failed(struct srv_path *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void info_failed(struct srv_path *path, const char *fmt, ...)
{
	char cause[SRV_CAUSE_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, sizeof(cause), fmt, ap);
	va_end(ap);
	path->info.done(path, cause);
}

/* Take the name and go on, wait for it, or fail. */
static void info_try(struct srv_path *path)
{
	struct srv_info *info = &path->info;
	struct srv_path *holder = srv_sess_name_holder(path->sess, info->name);

	if (holder && holder->state == SRV_PATH_DRAINING) {
		if (info->state == SRV_INFO_WAITS)
			return;
		log_dbg(path->name, "waits for session name %s of %s", info->name, holder->name);
		info->state = SRV_INFO_WAITS;
		loop_timer_set(srv_loop(path->srv), &info->timer,
			       clock_now_ms() + SRV_PARK_TIMEOUT);
		return;
	}
	srv_info_cancel(path);
	if (holder) {
		info_failed(path, "session name %s is in use by %s", info->name, holder->name);
		return;
	}
	if (path->sess->name[0] && strcmp(path->sess->name, info->name)) {
		info_failed(path, "session name %s, but its session is called %s", info->name,
			    path->sess->name);
		return;
	}
	memcpy(path->sess->name, info->name, sizeof(path->sess->name));
	srv_path_named(path);
	info->state = SRV_INFO_NAMED;
	info->done(path, NULL);
}

static void info_timeout(struct loop_timer *timer)
{
	struct srv_path *path = container_of(timer, struct srv_path, info.timer);

	info_failed(path, "session name %s is still in use", path->info.name);
}

static void info_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
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
	path->info.state = SRV_INFO_SEEN;
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
	info_try(path);
}

void srv_info_init(struct srv_path *path, void (*done)(struct srv_path *path, const char *cause))
{
	path->info.done = done;
	path->info.cqe.done = info_wc_recv;
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
	struct srv_con *con = path->cons[0];
	struct rtrs_msg_info_rsp *rsp = (void *)(path->chunks.service + SRV_SERVICE_RSP);
	struct ibv_sge sge = {
		.addr = (uintptr_t)rsp,
		.length = (uint32_t)rtrs_info_rsp_len(path->chunks.nregions),
		.lkey = path->chunks.service_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};

	rtrs_info_rsp_encode(rsp, path->chunks.regions, path->chunks.nregions);
	if (!srv_con_dead(con))
		srv_con_post(con, &wr);
}

void srv_info_cancel(struct srv_path *path)
{
	loop_timer_cancel(&path->info.timer);
	if (path->info.state == SRV_INFO_WAITS)
		path->info.state = SRV_INFO_SEEN;
}

void srv_info_retry(struct srv *srv)
{
	struct srv_sess *sess;
	struct srv_path *path;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			if (path->info.state == SRV_INFO_WAITS)
				info_try(path);
		}
	}
}
