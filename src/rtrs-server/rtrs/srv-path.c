/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the path, its connections' structs, its memory and its timers; control thread.
 *
 * How it ends: FAIL cuts every connection; when all have drained the path is unlinked and its
 * client may come back; when the last request has left the storage the memory is detached from the
 * rings and freed, and with the last path of a session the session.
 * How it fails: srv_path_fail(), from wherever the cause is seen, with one line in the log. */
#define FSM_PREFIX SRV_PATH_

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export-io.h"
#include "log.h"
#include "mask.h"
#include "rtrs-wr.h"
#include "srv-geom.h"
#include "srv-key-pool.h"
#include "srv-mem.h"
#include "srv-req.h"
#include "util.h"

/* Why a path ended is worth more lines than that somebody came or went. */
static struct log_limit down_limit = LOG_LIMIT_INIT(1000, 10000);
static struct log_limit setup_limit = LOG_LIMIT_INIT(20, 10000);
#define STUCK_MS 5000			/* of a thread: it is worth telling */

static struct log_limit stuck_limit = LOG_LIMIT_INIT(4, 60000);

static void path_event(struct srv_path *path, enum srv_path_event event);

/* ---- heartbeat ---- */

/* The storage holds a thread: nothing else of that is seen but silence. */
static void path_check_stuck(const struct srv_path *path)
{
	for (unsigned cid = 1; cid < path->cid_num; cid++) {
		const struct reactor *r = path->cons[cid]->thread->reactor;
		uint64_t ms = export_ring_stuck_ms(r);

		if (ms < STUCK_MS)
			continue;
		srv_log_limited(path->srv, &path->client, &stuck_limit, LOG_LEVEL_WARN, path->name,
				"requests wait: the file system has not answered one write of %s for "
				"%llu s", reactor_name(r), (unsigned long long)ms / 1000);
		return;
	}
}

static void path_hb_timer(struct loop_timer *timer)
{
	struct srv_path *path = container_of(timer, struct srv_path, timer);
	struct srv_con *con = path->cons[0];
	struct ibv_send_wr wr;

	switch (rtrs_hb_tick(&path->hb, clock_now_ms())) {
	case RTRS_HB_DEAD:
		srv_path_fail(path, "heartbeat missed %u times", path->hb.missed_max);
		return;
	case RTRS_HB_SEND:
		rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_MSG_IMM);
		rtrs_hb_sent(&path->hb, clock_now_ns());
		if (!srv_con_dead(con))
			srv_con_post(con, &wr);
		break;
	case RTRS_HB_NONE:
		break;
	}
	path_check_stuck(path);
	loop_timer_set(srv_loop(path->srv), &path->timer, path->hb.next_ms);
}

static void path_setup_timer(struct loop_timer *timer)
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

	if (rc) {
		srv_path_fail(path, "cannot give its chunks keys: %s", strerror(-rc));
		return;
	}
	/* ORDER: a receive may complete from the moment it is posted. */
	rtrs_hb_start(&path->hb, clock_now_ms(), path->srv->conf->hb_interval_ms,
		      path->srv->conf->hb_missed_max);
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		unsigned n = cid ? path->srv->geom.queue_depth : path->service_recvs;

		rc = srv_con_post_empty(path->cons[cid], n);
		if (rc) {
			srv_path_fail(path, "cannot post receives on connection %u: %s", cid,
				      strerror(-rc));
			return;
		}
	}
	loop_timer_cancel(&path->timer);
	loop_timer_init(&path->timer, path_hb_timer);
	loop_timer_set(srv_loop(path->srv), &path->timer, path->hb.next_ms);
	srv_log_access(path->srv, &path->client, path->name,
		       "path up, %u connections, session %s", path->cid_num, path->sess->name);
	path->was_up = true;
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

/* ORDER: windows first (frwr.h). */
static void path_close_cons(struct srv_path *path)
{
	srv_key_pool_close(&path->chunks, path->name);
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
	if (path->was_up && srv_sess_path_down(path->sess))
		srv->ops->sess_lost(path->sess);
	/* ORDER: nobody may wait in the belief that this path still holds a name. */
	srv->path_unlinked(srv);
	if (path->nquiet == path->ncons)
		path_event(path, SRV_PATH_EV_QUIET);
}

static void path_detached(struct srv_chunks *c)
{
	struct srv_path *path = container_of(c, struct srv_path, chunks);
	struct srv *srv = path->srv;

	log_dbg(path->name, "gone");
	srv_chunk_fini(&path->chunks);
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (!path->cons[cid])
			continue;
		/* Or the cut would find it freed. */
		assert(srv_con_state(path->cons[cid]) == SRV_CON_QUIET);
		srv_con_destroy(path->cons[cid]);
	}
	free(path->cons);
	free(path->reqs);
	free(path->stat_base);
	srv->npaths--;
	srv->memory -= path->memory;
	srv_mem_freed(srv, path->ncons);
	list_del(&path->link);
	srv_sess_put(path->sess);
	free(path);
	srv->part_gone(srv);
}

static void path_free(void *object)
{
	srv_chunk_detach(&((struct srv_path *)object)->chunks, path_detached);
}

#define DOWN (IN(DRAINING) | IN(LINGERING) | IN(GONE))

/* A pair that is not in the table does not happen: DRAINED and QUIET are only reported by
 * connections that were cut, and a connection that ends by itself is a FAIL first. */
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
	const struct fsm_row *row = fsm_row(&srv_path_fsm, path->state, event);

	assert(row);
	if (row->next != FSM_STAY) {
		log_dbg(path->name, "%s: %s -> %s", path_events[event], path_states[path->state],
			path_states[row->next]);
		path->srv->nhalf_open -= path->state == SRV_PATH_CONNECTING;
		path->state = (enum srv_path_state)row->next;
	}
	if (row->action)
		row->action(path);
}

void srv_path_fail(struct srv_path *path, const char *fmt, ...)
{
	if (path->state < SRV_PATH_DRAINING) {
		char cause[SRV_CAUSE_LEN];
		va_list ap;

		va_start(ap, fmt);
		vsnprintf(cause, sizeof(cause), fmt, ap);
		va_end(ap);
		if (path->state == SRV_PATH_CONNECTED)
			srv_log_limited(path->srv, &path->client, &down_limit, LOG_LEVEL_INFO,
					path->name, "path down: %s", cause);
		else
			srv_log_limited(path->srv, &path->client, &setup_limit, LOG_LEVEL_INFO,
					path->name, "path not set up: %s", cause);
	}
	path_event(path, SRV_PATH_EV_FAIL);
}

static void path_given_up(struct loop_msg *msg)
{
	srv_path_fail(container_of(msg, struct srv_path, given_up_msg),
		      "its client has sent a request of it again over another path");
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

static const struct srv_con_ops con_ops = {
	.recv = srv_req_wc_recv,
	.reply = srv_req_reply_task,
	.revoke = srv_key_revoke_task,
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

/* ---- set-up ---- */

static void path_attached(struct srv_chunks *c)
{
	path_event(container_of(c, struct srv_path, chunks), SRV_PATH_EV_INFO);
}

static void info_done(struct srv_path *path, const char *cause)
{
	if (cause)
		srv_path_fail(path, "%s", cause);
	else
		srv_chunk_attach(&path->chunks, path_attached);
}

static int path_alloc(struct srv_path *path, struct srv *srv, struct fab_conn *conn)
{
	struct fab_device_attr attr;
	int rc = fab_query_device(conn, &attr);

	if (rc)
		return rc;
	snprintf(path->device, sizeof(path->device), "%s", attr.name);
	path->device_port = attr.port;
	/* Each user message has a chunk, so a short queue that is longer than three times the depth
	 * (srv-accept.c) has room for all of them and the heartbeats. */
	path->service_recvs = MIN((unsigned)RTRS_SERVICE_CON_DEPTH, attr.max_qp_wr - 1);
	path->cons = calloc(path->cid_num, sizeof(*path->cons));
	if (!path->cons || srv_req_alloc(path, srv->geom.queue_depth))
		return -ENOMEM;
	return srv_chunk_init(&path->chunks, srv, conn);
}

uint64_t srv_path_memory(const struct srv *srv, unsigned ncons, const struct fab_conn *conn)
{
	return (uint64_t)srv->geom.queue_depth * srv->geom.chunk_size +
	       (uint64_t)ncons * srv_geom_con_memory(srv, conn);
}

/* No port of the client: that is another one after each reconnect. */
void srv_path_named(struct srv_path *path)
{
	char client[FAB_ADDR_STRLEN], server[FAB_ADDR_STRLEN];
	const char *sess = path->sess->name;

	snprintf(path->name, sizeof(path->name), "%s%s%s@%s", sess, *sess ? "/" : "",
		 fab_addr_format_host(&path->client, client, sizeof(client)),
		 fab_addr_format(&path->server, server, sizeof(server)));
	/* As all texts that people see, so that it is the same in all of them. */
	mask_control(path->name);
}

int srv_path_create(struct srv_sess *sess, const struct rtrs_conn_req *req, struct fab_conn *conn,
		    struct srv_path **ret, char *err, size_t errlen)
{
	char cause[SRV_CAUSE_LEN];
	struct srv_path *path = calloc(1, sizeof(*path));
	struct srv *srv = sess->srv;
	int rc;

	if (!path) {
		snprintf(err, errlen, "no memory for a path");
		return -ENOMEM;
	}
	path->srv = srv;
	path->sess = sess;
	path->state = SRV_PATH_CONNECTING;
	path->cid_num = req->cid_num;
	path->recon_cnt = req->recon_cnt;
	memcpy(path->uuid, req->sess_uuid, RTRS_UUID_LEN);
	fab_conn_addrs(conn, &path->server, &path->client);
	srv_path_named(path);
	loop_timer_init(&path->timer, path_setup_timer);
	loop_msg_init(&path->given_up_msg, path_given_up);
	srv_info_init(path, info_done);

	rc = path_alloc(path, srv, conn);
	if (rc) {
		srv_chunk_error(&path->chunks, rc, cause, sizeof(cause));
		snprintf(err, errlen, "cannot make a path: %s", cause);
		free(path->cons);
		free(path->reqs);
		free(path);
		return rc;
	}
	path->offset = srv->next_offset++ % (srv->nthreads - 1);
	srv_sess_get(sess);
	list_add_tail(&sess->paths, &path->link);
	srv->npaths++;
	path->memory = srv_path_memory(srv, path->cid_num, conn);
	srv->memory += path->memory;
	srv->nhalf_open++;
	loop_timer_set(srv_loop(srv), &path->timer, clock_now_ms() + srv->conf->setup_timeout_ms);
	*ret = path;
	return 0;
}

/* Returns 0, or -errno with the connection rejected or destroyed. */
static int con_accept(struct srv_path *path, struct srv_con *con)
{
	const struct rtrs_conn_rsp rsp = {
		.queue_depth = (uint16_t)path->srv->geom.queue_depth,
		.max_io_size = path->srv->geom.max_io_size,
		.max_hdr_size = path->srv->geom.max_hdr_size,
		.new_rkey = srv_chunk_new_keys(&path->chunks),
	};
	struct rtrs_msg_conn_rsp m;
	struct fab_qp_attr attr;
	int rc;

	srv_geom_queues(path->srv, con->cid, &path->chunks, path->service_recvs, &attr);
	rc = fab_create_qp(con->fab, path->chunks.pd, &attr);
	if (!rc && !con->cid)
		rc = srv_info_post_recv(path, con);	/* must exist before the accept (2.2) */
	if (rc) {
		srv_con_refuse(con->fab, rc);
		return rc;
	}
	rtrs_conn_rsp_encode(&m, &rsp);
	fab_conn_set_context(con->fab, con);
	rc = fab_accept(con->fab, &m, sizeof(m));
	if (rc)
		fab_conn_destroy(con->fab);
	return rc;
}

int srv_path_add_con(struct srv_path *path, uint16_t cid, struct fab_conn *conn)
{
	struct srv *srv = path->srv;
	unsigned thread = cid ? 1 + (path->offset + cid) % (srv->nthreads - 1) : 0;
	char cause[SRV_CAUSE_LEN];
	struct srv_con *con = srv_con_create(path, cid, &srv->threads[thread], conn, &con_ops);
	int rc;

	if (!con) {
		rc = -ENOMEM;
		srv_con_refuse(conn, rc);
	} else {
		rc = con_accept(path, con);
	}
	if (rc) {
		if (con) {
			con->fab = NULL;
			srv_con_destroy(con);
		}
		srv_path_fail(path, "cannot accept connection %u: %s", cid,
			      srv_chunk_error(&path->chunks, rc, cause, sizeof(cause)));
		return rc;
	}
	path->cons[cid] = con;
	path->chunks.rings[thread].used = true;
	path->ncons++;
	srv->ncons++;
	srv_con_start(con);
	return 0;
}
