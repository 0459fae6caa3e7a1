/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a path: the table of states, and the actions of the rows up to a path that is up;
 * clt-path-end.c has those of the end.  Service thread, except failures, which any thread notes.
 *
 * The happy path: path_connect() looks up the addresses if the server has a name; path_next_con()
 * makes the connections one after another (clt-setup.c); path_prove() comes in between if the
 * server asks for the proof, and connection 0 is made again; path_send_info() exchanges INFO;
 * path_open() lets the session open its devices; then the path is UP, or stands by.
 *
 * Possible failures: a step that fails, or has no answer within the time of the set-up; heartbeats
 * without an answer.  clt_path_fail() keeps the first cause and posts a message, so that
 * nothing is torn down inside a handler. */
#define FSM_PREFIX CLT_PATH_

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-path-priv.h"
#include "process.h"

static const char *const states[CLT_PATH_NSTATES] = {
	"idle", "resolving", "connecting", "proving", "proven", "info", "opening", "standby", "up",
	"silent",
	"failing", "draining", "back-off", "closing", "closed",
};

/* ---- calls from the connections ---- */

static void con_failed(struct clt_con *con, int err, const char *cause)
{
	clt_path_fail(clt_path_of(con), err, cause);
}

static void con_posted(struct clt_con *con)
{
	clt_con_zero_service(clt_path_of(con));
}

static void con_role_free(struct clt_con *con)
{
	loop_post(clt_path_of(con)->loop, &clt_path_of(con)->drain_msg);
}

static const struct clt_con_ops con_ops = { con_failed, clt_con_zero_heartbeat, con_posted,
					    con_role_free };

static void path_con_event(struct clt_path *path, const struct fab_event *ev)
{
	struct clt_con *con = ev->conn ? fab_conn_context(ev->conn) : NULL;
	char why[CLT_WHY];
	int r;

	if (!con || con->att != &path->att)
		return;
	if (!clt_path_runs(path)) {
		/* Too late; but @con is open, and must drain like the other connections. */
		if (ev->type == FAB_EVENT_ESTABLISHED) {
			clt_con_established(con);
			fab_disconnect(con->fab);
		}
		return;
	}
	r = clt_setup_event(con, ev, why);
	/* Somebody answers at this address. */
	if (r > 0 && con->cid == 0)
		clt_path_give_time(path, path->conf.setup_ms);
	if (r < 0)
		clt_path_fail(path, r, why);
	else if (r > 1)
		clt_path_step(path, CLT_PATH_EV_ASKED);
	else if (r)
		clt_path_step(path, path->next_cid < path->att.ncons ? CLT_PATH_EV_CON_UP :
								      CLT_PATH_EV_ALL_UP);
}

static bool path_cm_ready(struct loop_watch *watch)
{
	struct clt_path *path = container_of(watch, struct clt_path, cm_watch);
	struct fab_event ev;
	char why[CLT_WHY];
	int r;

	while ((r = fab_cm_get_event(path->cm, &ev)) > 0)
		path_con_event(path, &ev);
	if (r < 0) {
		snprintf(why, sizeof(why), "connection manager: %s", fds_strerror(r));
		clt_path_fail(path, r, why);
	}
	return false;
}

/* ---- actions ---- */

/* Heartbeats of this attempt: as they are wanted by now. */
static void set_heartbeats(struct clt_path *path)
{
	const struct clt_path_conf *conf = &path->conf;

	path->hb = rtrs_hb_conf(conf->hb_interval_ms, conf->hb_misses,
				conf->addr.dst.provider == &fab_tcp);
	if (path->cm)
		fab_cm_set_silence(path->cm, rtrs_hb_silence_ms(&path->hb));
}

/* Make the connection manager, unless @path has kept a manager.  0, or -errno with @why. */
static int make_cm(struct clt_path *path, char why[CLT_WHY])
{
	const struct fab_cm_conf conf = { .provider = path->conf.addr.dst.provider,
					  .seal = clt_auth_seal,
					  .servers = path->conf.servers,
					  .tls = path->conf.tls,
					  .silence_ms = rtrs_hb_silence_ms(&path->hb) };
	int r = path->cm ? 0 : fab_cm_create(&conf, &path->cm);

	if (r < 0) {
		if (r == -ENODEV)
			snprintf(why, CLT_WHY, "this machine has no RDMA device");
		else
			snprintf(why, CLT_WHY, "cannot create a connection manager: %s",
				 fds_strerror(r));
		path->cm = NULL;
		return r;
	}
	clt_path_watch(path, &path->cm_watch, fab_cm_fd(path->cm), POLLIN, path_cm_ready);
	return 0;
}

static void path_next_con(void *object)
{
	struct clt_path *path = object;
	char why[CLT_WHY];
	int r = clt_setup_con(path, why);

	if (r < 0)
		clt_path_fail(path, r, why);
}

static void path_connect_to(struct clt_path *path)
{
	unsigned ms = path->conf.setup_ms;
	char why[CLT_WHY];
	int r;

	clt_path_give_time(path, clt_names_left(&path->names) ? MIN(ms, NAME_NEXT_MS) : ms);
	set_heartbeats(path);
	r = make_cm(path, why);
	if (r < 0)
		clt_path_fail(path, r, why);
	else
		path_next_con(path);
}

static void path_connect(void *object)
{
	struct clt_path *path = object;

	loop_timer_cancel(&path->retry_timer);
	path->attempts++;
	path->next_cid = 0;
	path->probe_bytes = 0;
	path->up_since_ms = 0;
	if (!clt_sess_addr_is_named(&path->conf.addr)) {
		path_connect_to(path);
	} else if (clt_names_left(&path->names)) {
		clt_names_next(&path->names, &path->src, &path->dst);
		path_connect_to(path);
	} else {
		clt_path_step(path, CLT_PATH_EV_LOOK_UP);
	}
}

static void path_connect_found(void *object)
{
	struct clt_path *path = object;

	clt_names_next(&path->names, &path->src, &path->dst);
	path_connect_to(path);
}

static void auth_done(struct clt_path *path, int err, const char *why)
{
	if (err < 0)
		clt_path_fail(path, err, why);
	else
		clt_path_step(path, CLT_PATH_EV_PROVEN);
}

static void path_prove(void *object)
{
	struct clt_path *path = object;
	char why[CLT_WHY];
	int r = clt_auth_begin(path, auth_done, why);

	if (r < 0)
		clt_path_fail(path, r, why);
}

/* The connection of the proof has done its work. */
static void path_leave_con0(void *object)
{
	struct clt_path *path = object;

	clt_con_shut(&path->att.cons[0]);
	loop_post(path->loop, &path->drain_msg);
}

static void path_connect_proven(void *object)
{
	struct clt_path *path = object;

	/* An expiry while the connection drained was too late for the connection. */
	clt_path_give_time(path, path->conf.setup_ms);
	clt_con_release(&path->att.cons[0]);
	clt_rx_free(&path->att.cons[0]);
	clt_con_zero_talk_end(path);
	path_next_con(path);
}

static void info_done(struct clt_path *path, int err, const char *why)
{
	if (err < 0)
		clt_path_fail(path, err, why);
	else
		clt_path_step(path, CLT_PATH_EV_INFO_RSP);
}

static void path_send_info(void *object)
{
	struct clt_path *path = object;
	char why[CLT_WHY];
	int r = clt_setup_info(path, info_done, why);

	if (r < 0)
		clt_path_fail(path, r, why);
}

static void path_open(void *object)
{
	struct clt_path *path = object;

	clt_tx_unseal(&path->att.cons[0]);
	/* Other paths wait for this one: a server that dies now is noticed as any other. */
	clt_con_zero_up(path);
	loop_timer_set(path->loop, &path->hb_timer, path->att.hb.next_ms);
	path->ops->opening(path);
}

static void path_stand_by(void *object)
{
	struct clt_path *path = object;

	loop_timer_cancel(&path->setup_timer);
	path->fails = 0;
	path->round = 0;
	clt_names_good(&path->names, &path->dst);
	path->ops->standby(path);
	path->tell_up = false;
}

/* Heartbeats go on. */
static void path_open_again(void *object)
{
	struct clt_path *path = object;

	clt_path_give_time(path, path->conf.setup_ms);
}

static void path_up(void *object)
{
	struct clt_path *path = object;

	loop_timer_cancel(&path->setup_timer);
	path->up_since_ms = clock_now_ms();
	path->fails = 0;
	path->round = 0;
	clt_names_good(&path->names, &path->dst);
	path->ops->up(path);
	path->tell_up = false;
}

static void path_tell_silence(void *object)
{
	struct clt_path *path = object;

	path->ops->silence(path);
}

/* ---- the table ---- */

#define LATE (ALL & ~CLT_PATH_RUNS)

static const struct fsm_row rows[] = {
	ROW(IN(IDLE) | IN(CLOSED), START, CONNECTING, path_connect),
	ROW(IN(CONNECTING), LOOK_UP, RESOLVING, clt_path_names_look_up),
	ROW(IN(RESOLVING), FOUND, CONNECTING, path_connect_found),
	ROW(IN(CONNECTING), CON_UP, CONNECTING, path_next_con),
	ROW(IN(CONNECTING), ALL_UP, INFO, path_send_info),
	ROW(IN(CONNECTING), ASKED, PROVING, path_prove),
	ROW(IN(PROVING), PROVEN, PROVEN, path_leave_con0),
	ROW(IN(PROVEN), DRAINED, CONNECTING, path_connect_proven),
	ROW(IN(INFO), INFO_RSP, OPENING, path_open),
	ROW(IN(OPENING), OPENED, UP, path_up),
	ROW(IN(OPENING), STANDS_BY, STANDBY, path_stand_by),
	ROW(IN(STANDBY), WANTED, OPENING, path_open_again),
	ROW(IN(UP), SILENCE, SILENT, path_tell_silence),
	ROW(IN(SILENT), ANSWER, UP, path_tell_silence),

	ROW(CLT_PATH_RUNS, FAIL, FAILING, NULL),
	ROW(IN(FAILING), LOST, DRAINING, clt_path_end_drain),
	ROW(IN(DRAINING), DRAINED, BACKOFF, clt_path_end_back_off),
	ROW(IN(BACKOFF), RETRY, CONNECTING, path_connect),

	ROW(CLT_PATH_RUNS | IN(PROVEN) | IN(FAILING), CLOSE, CLOSING, clt_path_end_drain),
	ROW(IN(DRAINING), CLOSE, CLOSING, NULL),
	ROW(IN(CLOSING), DRAINED, CLOSED, clt_path_end_release_and_close),
	ROW(IN(IDLE) | IN(BACKOFF), CLOSE, CLOSED, clt_path_end_close),

	/* too late: a failure, or a CLOSE, was first */
	STAY(ALL & ~(IN(IDLE) | IN(CLOSED)), START),
	STAY(ALL & ~IN(CONNECTING), LOOK_UP),
	STAY(ALL & ~IN(RESOLVING), FOUND),
	STAY(ALL & ~IN(CONNECTING), ASKED),
	STAY(ALL & ~IN(PROVING), PROVEN),
	STAY(ALL & ~IN(CONNECTING), CON_UP),
	STAY(ALL & ~IN(CONNECTING), ALL_UP),
	STAY(ALL & ~IN(INFO), INFO_RSP),
	STAY(ALL & ~IN(OPENING), OPENED),
	STAY(ALL & ~IN(OPENING), STANDS_BY),
	STAY(ALL & ~IN(STANDBY), WANTED),
	STAY(ALL & ~IN(UP), SILENCE),
	STAY(ALL & ~IN(SILENT), ANSWER),
	STAY(LATE, FAIL),
	STAY(ALL & ~IN(FAILING), LOST),
	STAY(ALL & ~(IN(DRAINING) | IN(CLOSING) | IN(PROVEN)), DRAINED),
	STAY(ALL & ~IN(BACKOFF), RETRY),
	STAY(IN(CLOSING) | IN(CLOSED), CLOSE),
};

static const char *const events[CLT_PATH_NEVENTS] = {
	"start", "look up", "found", "asked", "proven", "one up", "all up", "INFO_RSP", "opened",
	"stands by",
	"wanted", "silence", "answer", "fail", "lost", "drained", "retry", "close",
};

const struct fsm clt_path_fsm = FSM("path", rows, states, events);

/* ---- timers ---- */

static void path_setup_timer(struct loop_timer *timer)
{
	struct clt_path *path = container_of(timer, struct clt_path, setup_timer);
	char why[CLT_WHY];

	if (clt_attempt_state(&path->att) == CLT_PATH_RESOLVING) {
		snprintf(why, sizeof(why), "the resolver has not answered within %g s",
			 path->setup_ms / 1e3);
		clt_path_names_not_found(path, -ETIMEDOUT, why);
		return;
	}
	if (clt_attempt_state(&path->att) == CLT_PATH_INFO)
		snprintf(why, sizeof(why), "no answer within %g s: up to %zu bytes, do large "
			 "packets pass (MTU)?", path->setup_ms / 1e3,
			 rtrs_info_rsp_len(path->att.geom.queue_depth));
	else
		snprintf(why, sizeof(why), "no answer within %g s", path->setup_ms / 1e3);
	clt_path_fail(path, -ETIMEDOUT, why);
}

static void path_hb_timer(struct loop_timer *timer)
{
	struct clt_path *path = container_of(timer, struct clt_path, hb_timer);

	switch (clt_con_zero_tick(path)) {
	case RTRS_HB_NONE:
		clt_path_step(path, CLT_PATH_EV_SILENCE);
		break;
	case RTRS_HB_SEND:
		clt_path_step(path, CLT_PATH_EV_ANSWER);
		break;
	case RTRS_HB_DEAD:
		return;
	}
	if (path->impatient)
		clt_con_zero_lose_patience(path);
	loop_timer_set(path->loop, timer, path->att.hb.next_ms);
}

void clt_path_life_init(struct clt_path *path)
{
	path->att.ops = &con_ops;
	clt_path_end_init(path);
	loop_timer_init(&path->setup_timer, path_setup_timer);
	loop_timer_init(&path->hb_timer, path_hb_timer);
}
