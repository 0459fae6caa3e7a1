/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of a path.  The happy path: made, established, served; drained when its path
 * ends, destroyed.  Possible failures: the peer hangs up, also on an idle connection, or a
 * heartbeat on connection 0 stays without an answer: the connection fails its path, which then
 * drains it.
 *
 * Service thread, but for clt_con_zero_service().  A connection has drained when its service
 * (fab-service.h) says so, which it has while the service loop has the poll role. */
#define FSM_PREFIX CLT_CON_

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "clt-path-priv.h"
#include "rtrs-imm.h"
#include "rtrs-req.h"

/* ---- connection 0 ---- The service loop polls it, and it carries heartbeats.  It fails when a
 * heartbeat cannot be sent or the server gives no sign of life. */

static void path_service_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, service_msg);
	struct clt_con *con = &path->att.cons[0];

	if (clt_con_is_open(con) && clt_path_runs(path))
		clt_con_serve(con);
}

void clt_con_zero_service(struct clt_path *path)
{
	loop_post(path->loop, &path->service_msg);
}

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
	clt_con_zero_service(path);
}

void clt_con_zero_heartbeat(struct clt_con *con, unsigned type)
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

unsigned clt_path_ask(struct clt_path *path)
{
	hb_post(path, RTRS_HB_MSG_IMM);
	return path->att.hb.sent;
}

void clt_con_zero_lose_patience(struct clt_path *path)
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

enum rtrs_hb_action clt_con_zero_tick(struct clt_path *path)
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

void clt_con_zero_init(struct clt_path *path)
{
	loop_msg_init(&path->service_msg, path_service_msg);
	path->hb_cqe.done = hb_wc;
}

void clt_con_zero_up(struct clt_path *path)
{
	rtrs_hb_start(&path->att.hb, clock_now_ms(), &path->hb);
}

/* ---- messages on connection 0 before its requests ---- */

static void talk_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct clt_path *path = container_of(cqe, struct clt_path, talk.recv_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		clt_tx_lost(&path->att.cons[0]);
	else
		path->talk.came(path, wc);
}

static void talk_wc_send(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct clt_path *path = container_of(cqe, struct clt_path, talk.send_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		clt_tx_lost(&path->att.cons[0]);
}

int clt_con_zero_talk(struct clt_path *path, size_t in, size_t out,
		      void (*came)(struct clt_path *path, const struct ibv_wc *wc),
		      char why[CLT_WHY])
{
	struct clt_talk *talk = &path->talk;
	int r;

	*talk = (struct clt_talk){ .in = calloc(1, in + out), .in_len = in, .came = came,
				   .recv_cqe.done = talk_wc_recv, .send_cqe.done = talk_wc_send };
	talk->mr = talk->in ? fab_reg_mr(path->att.pd, talk->in, in + out,
					 IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (talk->mr) {
		talk->out = (uint8_t *)talk->in + in;
		return 0;
	}
	r = -errno;
	clt_mem_why(&path->att, r, why, CLT_WHY);
	return r;
}

int clt_con_zero_say(struct clt_path *path, size_t len, char why[CLT_WHY])
{
	struct clt_talk *talk = &path->talk;
	struct fab_conn *fab = path->att.cons[0].fab;
	struct ibv_sge in = { (uintptr_t)talk->in, (uint32_t)talk->in_len, talk->mr->lkey };
	struct ibv_sge out = { (uintptr_t)talk->out, (uint32_t)len, talk->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = (uintptr_t)&talk->recv_cqe, .sg_list = &in,
				    .num_sge = 1 };
	struct ibv_send_wr send = { .wr_id = (uintptr_t)&talk->send_cqe, .opcode = IBV_WR_SEND,
				    .sg_list = &out, .num_sge = 1,
				    .send_flags = IBV_SEND_SIGNALED };
	/* ORDER: the receive before the message that asks for an answer. */
	bool failed = fab_post_recv(fab, &recv) < 0 || fab_post_send(fab, &send) < 0;

	clt_con_zero_service(path);
	if (!failed)
		return 0;
	snprintf(why, CLT_WHY, "connection 0: %s", fab_conn_cause(fab));
	return -ECONNRESET;
}

void clt_con_zero_talk_end(struct clt_path *path)
{
	struct clt_talk *talk = &path->talk;

	if (talk->mr)
		fab_dereg_mr(talk->mr);
	talk->mr = NULL;
	free(talk->in);
	talk->in = NULL;
}

/* ---- life ---- */

static void con_event(struct clt_con *con, enum clt_con_event event)
{
	const struct clt_path *path = clt_path_of(con);
	char name[sizeof(path->name) + 8];

	fsm_run(&clt_con_fsm, fsm_name(name, sizeof(name), path->name, con->cid), &con->state,
		event, con);
}

/* ---- actions ---- */

/* A polling thread sees the end of the connection by itself, unless a leader left with the answer
 * in front of the end.  So the service loop looks, too, after getting the role. */
static void con_ask(void *object)
{
	struct clt_con *con = object;

	if (con->att->io->wait->con_take(con))
		con_event(con, CLT_CON_EV_ROLE);	/* else clt_con_ops.role_free() comes */
}

/* The answers in front of the end come first. */
static void con_look(void *object)
{
	struct clt_con *con = object;

	clt_con_serve(con);
	fab_service_poll_now(&con->service);
	clt_tx_fail(con, -ECONNRESET, "connection %u: peer closed", con->cid);
}

static void con_tell_drained(void *object)
{
	struct clt_con *con = object;

	loop_unwatch(&con->hangup);
	loop_post(clt_path_of(con)->loop, &clt_path_of(con)->drain_msg);
}

static void con_destroy(void *object)
{
	struct clt_con *con = object;

	fab_conn_destroy(con->fab);
	con->fab = NULL;
}

/* ---- the table ---- */

static const struct fsm_row rows[] = {
	ROW(IN(NONE), MAKE, MADE, NULL),
	ROW(IN(MADE), ESTABLISHED, OPEN, NULL),
	ROW(IN(OPEN), HANGUP, LEFT, con_ask),
	ROW(IN(LEFT), ROLE, OPEN, con_look),
	ROW(IN(OPEN) | IN(LEFT), DRAINED, DRAINED, con_tell_drained),
	ROW(IN(MADE) | IN(DRAINED), RELEASE, NONE, con_destroy),

	STAY(ALL & ~IN(NONE), MAKE),
	STAY(ALL & ~IN(MADE), ESTABLISHED),
	STAY(ALL & ~IN(OPEN), HANGUP),
	STAY(ALL & ~IN(LEFT), ROLE),
	STAY(IN(NONE), RELEASE),
};

static const char *const con_states[CLT_CON_NSTATES] = { "none", "made", "open", "left",
							 "drained" };

static const char *const con_events[CLT_CON_NEVENTS] = {
	"make", "established", "hang-up", "role", "drained", "release",
};

const struct fsm clt_con_fsm = FSM("connection", rows, con_states, con_events);

/* ---- service ---- */

static int con_poll(struct fab_service *service, int budget)
{
	return clt_rx_poll(container_of(service, struct clt_con, service), budget);
}

static void con_gone(struct fab_service *service)
{
	con_event(container_of(service, struct clt_con, service), CLT_CON_EV_DRAINED);
}

static const struct fab_service_ops con_service = {
	.poll = con_poll,
	.budget = CLT_POLL_BUDGET,
	.gone = con_gone,
};

void clt_con_serve(struct clt_con *con)
{
	int r;

	if (!fab_service_may_begin(&con->service)) {
		fab_service_poll_soon(&con->service);
		return;
	}
	r = fab_service_begin(&con->service, clt_path_of(con)->loop, con->fab);
	if (r < 0)
		clt_tx_fail(con, r, "cannot watch connection %u: %s", con->cid, strerror(-r));
}

/* ---- up ---- */

int clt_con_make(struct clt_con *con, struct fab_cm *cm)
{
	int r = fab_conn_create(cm, con, &con->fab);

	fab_service_init(&con->service, &con_service);
	if (r < 0)
		con->fab = NULL;
	else
		con_event(con, CLT_CON_EV_MAKE);
	return r;
}

void clt_con_established(struct clt_con *con)
{
	con_event(con, CLT_CON_EV_ESTABLISHED);
}

static bool con_hangup(struct loop_watch *watch)
{
	struct clt_con *con = container_of(watch, struct clt_con, hangup);

	loop_unwatch(watch);
	con_event(con, CLT_CON_EV_HANGUP);
	return false;
}

void clt_con_watch_hangup(struct clt_con *con)
{
	clt_path_watch(clt_path_of(con), &con->hangup, fab_conn_fd(con->fab), POLLRDHUP,
		       con_hangup);
}

void clt_con_role_free(struct clt_con *con)
{
	if (atomic_load(&con->state) == CLT_CON_LEFT)
		con_ask(con);
}

/* ---- down ---- */

void clt_con_shut(struct clt_con *con)
{
	loop_unwatch(&con->hangup);
	if (clt_con_is_open(con))
		fab_disconnect(con->fab);
	if (con->cid)
		con->att->io->wait->con_kick(con);
}

bool clt_con_drain(struct clt_con *con)
{
	if (!clt_con_is_open(con))
		return true;
	if (con->cid && !con->att->io->wait->con_take(con))
		return false;		/* clt_con_ops.role_free() comes */
	clt_con_serve(con);
	fab_service_failed(&con->service);
	return false;
}

void clt_con_release(struct clt_con *con)
{
	con_event(con, CLT_CON_EV_RELEASE);
}
