/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection 0 of a path, which the service loop polls, and the heartbeats on this connection.
 *
 * Service thread, except clt_con0_service().  The connection fails when a heartbeat cannot be sent
 * or the server gives no sign of life. */
#include <config.h>

#include <errno.h>

#include "clock.h"
#include "clt-path-priv.h"
#include "rtrs-imm.h"
#include "rtrs-req.h"

static void path_service_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, service_msg);
	struct clt_con *con = &path->att.cons[0];

	if (clt_con_is_open(con) && clt_path_runs(path))
		clt_con_serve(con);
}

void clt_con0_service(struct clt_path *path)
{
	loop_post(path->loop, &path->service_msg);
}

/* ---- heartbeat ---- */

static void hb_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct clt_path *path = container_of(cqe, struct clt_path, hb_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		clt_tx_lost(&path->att.cons[0]);
}

static void hb_post(struct clt_path *path, enum rtrs_imm_type type)
{
	struct ibv_send_wr wr;

	if (type == RTRS_HB_MSG_IMM)
		rtrs_hb_sent(&path->att.hb, clock_now_ns());
	rtrs_wr_heartbeat(&wr, (uintptr_t)&path->hb_cqe, type);
	if (fab_post_send(path->att.cons[0].fab, &wr) < 0)
		clt_tx_lost(&path->att.cons[0]);
	clt_con0_service(path);
}

void clt_con0_heartbeat(struct clt_con *con, unsigned type)
{
	if (con->cid)
		return;			/* belongs on connection 0; harmless elsewhere */
	if (type != RTRS_HB_ACK_IMM) {
		hb_post(clt_path_of(con), RTRS_HB_ACK_IMM);
		return;
	}
	rtrs_hb_ack(&con->att->hb, clock_now_ns());
	clt_path_of(con)->ops->alive(clt_path_of(con));
}

unsigned clt_con0_ask(struct clt_path *path)
{
	hb_post(path, RTRS_HB_MSG_IMM);
	return path->att.hb.sent;
}

void clt_con0_lose_patience(struct clt_path *path)
{
	/* RACE: a thread that receives something sets @missed to 0, and the next tick notices. */
	unsigned missed = atomic_load(&path->att.hb.missed);

	if (clt_attempt_state(&path->att) == CLT_PATH_SILENT && missed > 1)
		clt_tx_fail(&path->att.cons[0], -ETIMEDOUT,
			    "no sign of life for %g s, and no request waits any longer",
			    path->att.hb.interval_ms * (missed - 1) / 1e3);
}

/* Heartbeats prove that connection 0 is alive, and no other. */
static void ask_others(struct clt_path *path)
{
	unsigned ms = rtrs_hb_silence_ms(&path->hb);

	for (unsigned i = 1; i < path->att.ncons; i++) {
		struct clt_con *con = &path->att.cons[i];

		if (clt_con_is_open(con) && fab_conn_unheard(con->fab))
			clt_tx_fail(con, -ETIMEDOUT, "connection %u: nothing was acknowledged for "
				    "%g s", i, ms / 1e3);
	}
}

enum rtrs_hb_action clt_con0_tick(struct clt_path *path)
{
	struct rtrs_hb *hb = &path->att.hb;
	enum rtrs_hb_action action = rtrs_hb_tick(hb, clock_now_ms());

	ask_others(path);
	if (action == RTRS_HB_SEND)
		hb_post(path, RTRS_HB_MSG_IMM);
	else if (action == RTRS_HB_DEAD)
		clt_tx_fail(&path->att.cons[0], -ETIMEDOUT, "no sign of life for %g s",
			    hb->interval_ms * (hb->missed_max + 1) / 1e3);
	return action;
}

void clt_con0_init(struct clt_path *path)
{
	loop_msg_init(&path->service_msg, path_service_msg);
	path->hb_cqe.done = hb_wc;
}

void clt_con0_up(struct clt_path *path)
{
	rtrs_hb_start(&path->att.hb, clock_now_ms(), &path->hb);
}
