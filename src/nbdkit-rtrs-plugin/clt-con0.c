/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection 0 of a path: polled by the service loop, and the heartbeats on it.
 *
 * Service thread, except clt_con0_service().  The connection fails when a heartbeat cannot be sent or the
 * server gives no sign of life; ends with clt_con0_down(). */
#include <config.h>

#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "clt-path-priv.h"
#include "rtrs-imm.h"
#include "rtrs-wr.h"

static bool con0_ready(struct loop_watch *watch)
{
	struct clt_con *con = container_of(watch, struct clt_con, watch);
	short events = watch->events;
	int n;

	do {
		n = clt_rx_poll(con, CLT_POLL_BUDGET);
		if (n == 0)
			n = fab_arm(con->fab, &events);
	} while (n > 0 && !atomic_load(&clt_path_of(con)->failing));
	loop_watch_events(watch, events);
	return false;
}

static void path_service_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, service_msg);
	struct clt_con *con = &path->att.cons[0];

	if (!con->established || con->drained || atomic_load(&path->failing) ||
	    path->state == CLT_CLOSING)
		return;
	if (!con->watch.loop)
		clt_path_watch(path, &con->watch, fab_conn_fd(con->fab), POLLIN, con0_ready);
	con0_ready(&con->watch);
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

	rtrs_wr_heartbeat(&wr, (uintptr_t)&path->hb_cqe, type);
	if (fab_post_send(path->att.cons[0].fab, &wr) < 0)
		clt_tx_lost(&path->att.cons[0]);
	clt_con0_service(path);
}

void clt_con0_heartbeat(struct clt_con *con, unsigned type)
{
	if (con->cid)
		return;			/* belongs on connection 0; harmless elsewhere */
	if (type == RTRS_HB_ACK_IMM)
		rtrs_hb_ack(&con->att->hb, clock_now_ms());
	else
		hb_post(clt_path_of(con), RTRS_HB_ACK_IMM);
}

void clt_con0_lose_patience(struct clt_path *path)
{
	/* RACE: whoever receives something sets it to 0, and the next tick tells. */
	unsigned missed = atomic_load(&path->att.hb.missed);

	if (path->silent && missed > 1)
		clt_tx_fail(&path->att.cons[0], -ETIMEDOUT, "no sign of life for %u s, and nobody waits any longer",
			      path->att.hb.interval_ms * (missed - 1) / 1000);
}

/* At a tick. */
static void hb_silence(struct clt_path *path, bool silent)
{
	bool changed = path->silent != silent;

	path->silent = silent;
	if (changed)
		path->ops->silence(path);
	if (path->impatient)
		clt_con0_lose_patience(path);
}

static void path_hb_timer(struct loop_timer *timer)
{
	struct clt_path *path = container_of(timer, struct clt_path, hb_timer);

	switch (rtrs_hb_tick(&path->att.hb, clock_now_ms())) {
	case RTRS_HB_NONE:
		hb_silence(path, true);
		break;
	case RTRS_HB_SEND:
		hb_silence(path, false);
		hb_post(path, RTRS_HB_MSG_IMM);
		break;
	case RTRS_HB_DEAD:
		clt_tx_fail(&path->att.cons[0], -ETIMEDOUT, "no sign of life for %u s",
			      path->att.hb.interval_ms * (path->att.hb.missed_max + 1) / 1000);
		return;
	}
	loop_timer_set(path->loop, timer, path->att.hb.next_ms);
}

void clt_con0_init(struct clt_path *path)
{
	loop_msg_init(&path->service_msg, path_service_msg);
	loop_timer_init(&path->hb_timer, path_hb_timer);
	path->hb_cqe.done = hb_wc;
}

void clt_con0_up(struct clt_path *path)
{
	rtrs_hb_start(&path->att.hb, clock_now_ms(), RTRS_HB_INTERVAL_MS, RTRS_HB_MISSED_MAX);
	loop_timer_set(path->loop, &path->hb_timer, path->att.hb.next_ms);
}

void clt_con0_down(struct clt_path *path)
{
	loop_timer_cancel(&path->hb_timer);
	path->silent = false;
}
