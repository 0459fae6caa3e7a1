/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the set-up messages in a path's service memory and the wait for a session name; control thread.
 * Ends with srv_path_up() or with the path.  An INFO_REQ that breaks a rule fails the path: there is
 * no negative answer (doc/protocol.md 2.4). */
#include <string.h>

#include "clock.h"
#include "log.h"
#include "srv-con.h"
#include "srv-info.h"
#include "srv-path.h"
#include "srv-priv.h"
#include "srv-sess.h"
#include "util.h"

static void info_attached(struct srv_chunks *c)
{
	srv_path_up(container_of(c, struct srv_path, chunks));
}

/* Take the name and go on, wait for it, or fail. */
static void info_try(struct srv_path *path)
{
	struct srv_path *holder = srv_sess_name_holder(path->sess, path->info_name);

	if (holder && holder->state == SRV_PATH_DRAINING) {
		if (path->info_deadline_ms)
			return;
		log_dbg(path->name, "waits for session name %s of %s", path->info_name,
			holder->name);
		path->info_deadline_ms = clock_now_ms() + SRV_PARK_TIMEOUT;
		loop_timer_set(srv_loop(path->srv), &path->info_timer, path->info_deadline_ms);
		return;
	}
	srv_info_cancel(path);
	if (holder) {
		srv_path_fail(path, "session name %s is in use by %s", path->info_name,
			      holder->name);
		return;
	}
	if (path->sess->name[0] && strcmp(path->sess->name, path->info_name)) {
		srv_path_fail(path, "session name %s, but its session is called %s",
			      path->info_name, path->sess->name);
		return;
	}
	memcpy(path->sess->name, path->info_name, sizeof(path->sess->name));
	path->named = true;
	srv_chunk_attach(&path->chunks, info_attached);
}

static void info_timeout(struct loop_timer *timer)
{
	struct srv_path *path = container_of(timer, struct srv_path, info_timer);

	srv_path_fail(path, "session name %s is still in use", path->info_name);
}

static void info_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_path *path = container_of(cqe, struct srv_path, info_cqe);
	struct srv_con *con = path->cons[0];
	const char *why;

	if (wc->status != IBV_WC_SUCCESS) {
		srv_con_wc_failed(con, wc, "receiving INFO_REQ");
		return;
	}
	if (path->state != SRV_PATH_CONNECTING)
		return;
	path->info_seen = true;
	if (wc->opcode != IBV_WC_RECV || (wc->wc_flags & IBV_WC_WITH_IMM)) {
		srv_con_fail(con, "immediate data before INFO_REQ");
		return;
	}
	if (rtrs_info_req_decode(path->chunks.service + SRV_SERVICE_REQ, wc->byte_len,
				 path->info_name, &why)) {
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

void srv_info_init(struct srv_path *path)
{
	path->info_cqe.done = info_wc_recv;
	loop_timer_init(&path->info_timer, info_timeout);
}

int srv_info_post_recv(struct srv_path *path, struct srv_con *con)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)path->chunks.service + SRV_SERVICE_REQ,
		.length = sizeof(struct rtrs_msg_info_req),
		.lkey = path->chunks.service_mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = (uintptr_t)&path->info_cqe,
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
	if (!con->dead)
		srv_con_post(con, &wr);
}

void srv_info_cancel(struct srv_path *path)
{
	loop_timer_cancel(&path->info_timer);
	path->info_deadline_ms = 0;
}

void srv_info_retry(struct srv *srv)
{
	struct srv_sess *sess;
	struct srv_path *path;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			if (path->info_deadline_ms)
				info_try(path);
		}
	}
}
