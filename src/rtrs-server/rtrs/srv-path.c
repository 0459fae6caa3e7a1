/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a path; control thread.
 *
 * The happy path: srv-setup.c makes the path and its connections; the client sends INFO_REQ
 * (srv-info.c); the memory is attached to the rings; the path serves, and sends heartbeats.  At the
 * end FAIL cuts every connection.  When all have drained the path is unlinked and the client may
 * come back.  When the last request has left the storage the memory is detached from the rings and
 * freed, and with the last path of a session the session.
 *
 * Possible failures: srv_path_fail(), called where the cause is seen, with one line in the log. */
#define FSM_PREFIX SRV_PATH_

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export-ring.h"
#include "log.h"
#include "rtrs-req.h"
#include "srv-auth.h"
#include "srv-chunk.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "util.h"

#define STUCK_MS 5000			/* of a thread: long enough for a line in the log */

/* The cause of a path's end is worth more lines than the coming or going of a client. */
static struct log_limit down_limit = LOG_LIMIT_INIT(1000, 10000);
static struct log_limit setup_limit = LOG_LIMIT_INIT(20, 10000);
static struct log_limit stuck_limit = LOG_LIMIT_INIT(4, 60000);

static void path_event(struct srv_path *path, enum srv_path_event event);

/* ---- timers: heartbeats, on connection 0 (doc/protocol.md 5), and the set-up ---- */

/* Log a thread that the storage holds: silence is the only other sign of such a thread. */
static void hb_check_stuck(const struct srv_path *path)
{
	for (unsigned cid = 1; cid < path->cid_num; cid++) {
		const struct reactor *r = path->cons[cid]->thread->reactor;
		uint64_t ms = export_ring_stuck_ms(r);

		if (ms < STUCK_MS)
			continue;
		srv_log_event_limited(
			path->srv, &path->client, &stuck_limit, LOG_LEVEL_WARN,
			LOG_FIELDS(IO_STUCK, .session = path->sess->name, .peer = path->name,
				   .identity = path->identity),
			path->name,
			"requests wait: the file system has not answered one write of %s for %llu "
			"s", reactor_name(r), (unsigned long long)ms / 1000);
		return;
	}
}

/* Before posting receives, which feed the heartbeat. */
static void hb_start(struct srv_path *path)
{
	const struct srv_conf *conf = path->srv->conf;
	bool own = path->server.provider == &fab_tcp;
	struct rtrs_hb_conf hb = rtrs_hb_conf(conf->hb_interval_ms, conf->hb_missed_max, own);

	hb.patience = own;
	rtrs_hb_start(&path->hb, clock_now_ms(), &hb);
}

static void hb_send(struct srv_path *path)
{
	struct srv_con *con = path->cons[0];
	struct ibv_send_wr wr;

	rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_MSG_IMM);
	rtrs_hb_sent(&path->hb, clock_now_ns());
	if (!srv_con_dead(con))
		srv_con_post(con, &wr);
}

static void srv_path_hb_timer(struct loop_timer *timer)
{
	struct srv_path *path = container_of(timer, struct srv_path, timer);
	enum rtrs_hb_action due = rtrs_hb_tick(&path->hb, clock_now_ms());

	if (due == RTRS_HB_DEAD) {
		srv_path_fail(path, "heartbeat missed %u times", path->hb.missed_max);
		return;
	}
	if (due == RTRS_HB_SEND)
		hb_send(path);
	hb_check_stuck(path);
	loop_timer_set(srv_loop(path->srv), &path->timer, path->hb.next_ms);
}

static void srv_path_setup_timer(struct loop_timer *timer)
{
	struct srv_path *path = container_of(timer, struct srv_path, timer);

	srv_path_fail(path, "set-up not finished in %u s: %u of %u connections, %s INFO_REQ",
		      path->srv->conf->setup_timeout_ms / 1000, path->ncons, path->cid_num,
		      path->info.state == SRV_INFO_AWAITED ? "without" : "with");
}

/* ---- actions ---- */

static void path_serve(void *object)
{
	struct srv_path *path = object;
	int rc = srv_key_open(path);
	char name[SRV_SESS_NAME_LEN];

	explicit_bzero(path->conn_key, sizeof(path->conn_key));
	if (rc) {
		srv_path_fail(path, "cannot give its chunks keys: %s", strerror(-rc));
		return;
	}
	/* ORDER: the heartbeat first, because a receive may complete as soon as posted. */
	hb_start(path);
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		unsigned n = cid ? path->srv->geom.queue_depth : path->service_recvs;

		rc = srv_con_post_empty(path->cons[cid], n + SRV_SPARE_RECVS);
		if (rc) {
			srv_path_fail(path, "cannot post receives on connection %u: %s", cid,
				      strerror(-rc));
			return;
		}
	}
	loop_timer_cancel(&path->timer);
	loop_timer_init(&path->timer, srv_path_hb_timer);
	loop_timer_set(srv_loop(path->srv), &path->timer, path->hb.next_ms);
	srv_log_access(path->srv, &path->client,
		       LOG_FIELDS(PATH_UP, .session = path->sess->name, .peer = path->name,
				  .identity = path->identity),
		       path->name, "path up, %u connections, session %s", path->cid_num,
		       srv_sess_tell_name(path->sess, name, sizeof(name)));
	path->up_since_ms = clock_now_ms();
	path->srv->paths_up++;
	srv_flaps_up(&path->srv->flaps, path);
	srv_sess_path_up(path->sess, path->name);
	srv_info_respond(path);
}

static void path_cut(void *object)
{
	struct srv_path *path = object;

	loop_timer_cancel(&path->timer);
	srv_info_cancel(path);
	path->srv->ops->path_failed(path);
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid])
			srv_con_cut(path->cons[cid]);
	}
	if (path->ndrained == path->ncons)
		path_event(path, SRV_PATH_EV_DRAINED);
}

/* ORDER: windows before connections (frwr.h). */
static void path_close_cons(struct srv_path *path)
{
	srv_chunk_close_windows(&path->chunks, path->name);
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		struct srv_con *con = path->cons[cid];

		if (!con)
			continue;
		fab_conn_destroy(con->fab);
		con->fab = NULL;
	}
}

static void path_unlink(void *object)
{
	struct srv_path *path = object;
	struct srv *srv = path->srv;

	srv_req_path_drained(path);
	path_close_cons(path);
	srv->ncons -= path->ncons;
	srv->paths_down += path->up_since_ms != 0;
	if (path->up_since_ms && srv_sess_path_down(path->sess))
		srv->ops->sess_lost(path->sess);
	/* ORDER: after the path has lost the names, so that no retry waits for this path again. */
	srv->path_unlinked(path);
	if (path->nquiet == path->ncons)
		path_event(path, SRV_PATH_EV_QUIET);
}

static void path_detached(struct srv_chunks *c)
{
	struct srv_path *path = container_of(c, struct srv_path, chunks);
	struct srv *srv = path->srv;
	unsigned ncons = path->ncons;

	log_dbg(path->name, "gone");
	srv_chunk_fini(&path->chunks);
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (!path->cons[cid])
			continue;
		/* The cut would find a connection freed that is not quiet. */
		assert(srv_con_state(path->cons[cid]) == SRV_CON_QUIET);
		srv_con_destroy(path->cons[cid]);
	}
	free(path->cons);
	srv_req_free(path);
	free(path->stat_base);
	explicit_bzero(path->conn_key, sizeof(path->conn_key));
	srv->npaths--;
	srv->memory -= path->memory;
	list_del(&path->link);
	srv_sess_put(path->sess);
	free(path);
	srv->part_gone(srv, ncons);
}

static void path_free(void *object)
{
	srv_chunk_detach(&((struct srv_path *)object)->chunks, path_detached);
}

#define DOWN (IN(DRAINING) | IN(LINGERING) | IN(GONE))

/* The other pairs never happen: only a connection that was cut reports DRAINED and QUIET, and a
 * connection's own end is a FAIL first. */
static const struct fsm_row path_rows[] = {
	ROW(IN(CONNECTING), INFO, CONNECTED, path_serve),
	ROW(IN(CONNECTING) | IN(CONNECTED), FAIL, DRAINING, path_cut),
	ROW(IN(DRAINING), DRAINED, LINGERING, path_unlink),
	ROW(IN(LINGERING), QUIET, GONE, path_free),
	STAY(DOWN, INFO),		/* memory became ready when the path was already failing */
	STAY(DOWN, FAIL),
};

static const char *const path_states[SRV_PATH_NSTATES] = {
	"connecting", "connected", "draining", "lingering", "gone",
};

static const char *const path_events[SRV_PATH_NEVENTS] = { "info", "fail", "drained", "quiet" };

const struct fsm srv_path_fsm = FSM("path", path_rows, path_states, path_events);

static void path_event(struct srv_path *path, enum srv_path_event event)
{
	unsigned old;
	const struct fsm_row *row = fsm_step(&srv_path_fsm, path->name, &path->state, event, &old);

	if (row->next != FSM_STAY)
		path->srv->nhalf_open -= old == SRV_PATH_CONNECTING;
	if (row->action)
		row->action(path);
}

static void tell_not_set_up(const struct srv_path *path, enum log_level level, const char *cause)
{
	char line[SRV_CAUSE_LEN + 32];

	snprintf(line, sizeof(line), "path not set up: %s", cause);
	srv_log_again(&path->srv->log, &path->client, &setup_limit, level,
		      LOG_FIELDS(PATH_FAILED, .session = path->sess->name, .peer = path->name,
				 .identity = path->identity), path->name, line);
}

/* Say why @path fails; @level: of the line about a path that was not up yet. */
static void tell_failed(const struct srv_path *path, enum log_level level, const char *cause)
{
	if (path->state == SRV_PATH_CONNECTED)
		srv_log_event_limited(path->srv, &path->client, &down_limit, LOG_LEVEL_INFO,
				      LOG_FIELDS(PATH_DOWN, .session = path->sess->name,
						 .peer = path->name, .identity = path->identity),
				      path->name, "path down: %s", cause);
	else
		tell_not_set_up(path, level, cause);
}

void srv_path_fail(struct srv_path *path, const char *fmt, ...)
{
	/* A refusal has its line already. */
	if (path->state < SRV_PATH_DRAINING && path->info.state != SRV_INFO_TOLD) {
		char cause[SRV_CAUSE_LEN];
		va_list ap;

		va_start(ap, fmt);
		vsnprintf(cause, sizeof(cause), fmt, ap);
		va_end(ap);
		tell_failed(path, LOG_LEVEL_INFO, cause);
		if (path->up_since_ms)
			srv_flaps_lost(&path->srv->flaps, path, cause);
	}
	path_event(path, SRV_PATH_EV_FAIL);
}

static void path_given_up(struct loop_msg *msg)
{
	srv_path_fail(container_of(msg, struct srv_path, given_up_msg),
		      "its client has retried a request over another path");
}

/* ---- reports of connections ---- */

static void con_drained(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, drained_msg);
	struct srv_path *path = con->path;

	path->ndrained++;
	if (path->state < SRV_PATH_DRAINING)
		srv_path_fail(path, "connection %u: %s", con->cid,
			      con->cause[0] ? con->cause : "disconnected");
	else if (path->ndrained == path->ncons)
		path_event(path, SRV_PATH_EV_DRAINED);
}

static void con_quiet(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, quiet_msg);
	struct srv_path *path = con->path;

	path->nquiet++;
	if (path->state == SRV_PATH_LINGERING && path->nquiet == path->ncons)
		path_event(path, SRV_PATH_EV_QUIET);
}

static void con_finished(struct loop_msg *msg)
{
	struct srv_con *con = container_of(msg, struct srv_con, finished_msg);
	struct srv_path *path = con->path;

	path->nfinished++;
	if (path->nfinished == path->ncons)
		srv_path_fail(path, "server is shutting down");
}

static void con_is_cut(struct srv_con *con)
{
	con->path->srv->ops->con_cut(con);
}

const struct srv_con_ops srv_path_con_ops = {
	.recv = srv_req_wc_recv,
	.reply = srv_req_reply_task,
	.revoke = srv_key_revoke_task,
	.cut = con_is_cut,
	.trim = srv_trim_timer,
	.drained = con_drained,
	.quiet = con_quiet,
	.finished = con_finished,
};

void srv_path_finish(struct srv_path *path)
{
	if (path->state != SRV_PATH_CONNECTED) {
		srv_path_fail(path, "server is shutting down");
		return;
	}
	for (unsigned cid = 0; cid < path->cid_num; cid++)
		srv_con_finish(path->cons[cid]);
}

/* ---- set-up, until the path serves ---- */

static void path_attached(struct srv_chunks *c)
{
	path_event(container_of(c, struct srv_path, chunks), SRV_PATH_EV_INFO);
}

static void path_info_done(struct srv_path *path, const char *cause)
{
	if (!cause) {
		srv_chunk_attach(&path->chunks, path_attached);
		return;
	}
	/* Its client goes on to try, and does not come in: worth more than a path that was cut. */
	if (path->state < SRV_PATH_DRAINING)
		tell_failed(path, LOG_LEVEL_WARN, cause);
	if (path->info.state != SRV_INFO_TOLD)
		path_event(path, SRV_PATH_EV_FAIL);
}

void srv_path_init(struct srv_path *path, struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct srv_who *who, const struct fab_conn *conn)
{
	path->srv = sess->srv;
	path->sess = sess;
	path->state = SRV_PATH_CONNECTING;
	path->cid_num = req->cid_num;
	path->recon_cnt = req->recon_cnt;
	memcpy(path->uuid, req->sess_uuid, RTRS_UUID_LEN);
	fab_conn_addrs(conn, &path->server, &path->client);
	fab_conn_identity(conn, &path->transport);
	memcpy(path->identity, who->id.name, sizeof(path->identity));
	memcpy(path->conn_key, who->conn_key, sizeof(path->conn_key));
	path->key = who->id.key;
	path->key_since_s = who->id.key_since_s;
	srv_sess_name_path(path);
	loop_timer_init(&path->timer, srv_path_setup_timer);
	loop_msg_init(&path->given_up_msg, path_given_up);
	srv_info_init(path, path_info_done);
}
