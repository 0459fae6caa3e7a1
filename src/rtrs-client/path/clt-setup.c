/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the connections of a path, each after the other (doc/protocol.md 1.6), and exchanges INFO
 * (2.4, 2.5).  Service thread only.
 *
 * The happy path: clt_setup_con() resolves the address; setup_resolved() makes the queue pair and
 * sends the CONN_REQ; setup_established() takes the CONN_RSP, with depth and sizes on connection 0,
 * or with the question for a proof (clt-auth.c); when all are up, clt_setup_info() sends INFO_REQ;
 * info_take() takes the chunks, and posts the receives of all connections.
 *
 * Possible failures: an address that cannot be reached, a refusal with its reason, a device that is
 * too small, an answer that breaks the protocol, no memory: the caller gets -errno and the cause in
 * words, and clt_setup_release() destroys the objects of the earlier steps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth-creds.h"
#include "clt-cause.h"
#include "clt-path-priv.h"
#include "process.h"

/* The needs of a single request at a time.  Queue: on connection 0 a user message, a heartbeat, the
 * answer to a heartbeat, and a spare place.  SGE: data and header of a WRITE. */
#define MIN_QUEUE 4u
#define MIN_SGE 2u

/* ---- a connection ---- */

static const char *why_not(const struct clt_con *con, int err)
{
	const char *cause = con->fab ? fab_conn_cause(con->fab) : "";

	return *cause ? cause : fds_strerror(err);
}

/* Put the name of @con in front of @why, or, without @why, of the text of @err.  Returns @err. */
static int why_add_con(const struct clt_con *con, int err, char why[CLT_WHY])
{
	char text[CLT_WHY];

	snprintf(text, sizeof(text), "%s", *why ? why : strerror(-err));
	snprintf(why, CLT_WHY, "connection %u: %.*s", con->cid, CLT_WHY - 32, text);
	return err;
}

int clt_setup_con(struct clt_path *path, char why[CLT_WHY])
{
	struct clt_con *con = &path->att.cons[path->next_cid];
	int r;

	r = clt_con_make(con, path->cm);
	if (r == 0)
		r = fab_resolve(con->fab, path->src.len ? &path->src : NULL, &path->dst);
	if (r < 0)
		snprintf(why, CLT_WHY, "%s%s", why_not(con, r),
			 clt_cause_source(&path->src, r));
	return r;
}

/* Ask for the abilities of @con's device, and choose the mode of keys for READs. */
static int setup_mode(struct clt_con *con, char why[CLT_WHY])
{
	struct clt_path *path = clt_path_of(con);
	struct clt_attempt *att = con->att;
	enum clt_mem_way way = CLT_MEM_DIRECT;
	bool direct;
	int r = frwr_query(con->fab, att->pd, &att->caps);

	if (r < 0)
		return r;
	frwr_lessons_apply(path->conf.lessons, &att->caps);
	direct = att->caps.dev.caps & FAB_CAP_REREG_MR &&
		 fab_pd_local_dma_lkey(att->pd, &att->dma_lkey);
	r = clt_key_pick(path->conf.registration, &att->caps, direct, why, CLT_WHY);
	if (r < 0)
		return r;
	att->mode = (enum frwr_mode)r;
	snprintf(path->mode_why, sizeof(path->mode_why), "%s", why);
	*why = '\0';
	if (!direct || att->mode == FRWR_STATIC)
		way = CLT_MEM_BOUNCE;
	else if (att->mode == FRWR_REREG)
		way = CLT_MEM_REREG;
	/* Written only if changed: owners of requests read @way. */
	if (way != att->way)
		att->way = way;
	return 0;
}

/* Make the protection domain, with the first connection of each attempt, or of the path where the
 * domain is kept. */
static int setup_pd(struct clt_con *con, char why[CLT_WHY])
{
	struct clt_attempt *att = con->att;
	int r = fab_pd_create(con->fab, &att->pd);

	if (r < 0)
		return r;
	r = setup_mode(con, why);
	if (r < 0) {
		fab_pd_destroy(att->pd);
		att->pd = NULL;
	}
	return r;
}

static int setup_qp(struct clt_con *con, char why[CLT_WHY])
{
	struct clt_path *path = clt_path_of(con);
	struct fab_device_attr dev;
	struct fab_qp_attr qp = {
		.max_send_wr = 2 * RTRS_SERVICE_CON_DEPTH + 2,
		.max_recv_wr = 2 * RTRS_SERVICE_CON_DEPTH + 2,
		.max_send_sge = MIN_SGE,
	};
	int r;

	r = fab_query_device(con->fab, &dev);
	if (r < 0)
		return r;
	if (dev.max_qp_wr < MIN_QUEUE || dev.max_sge < MIN_SGE) {
		snprintf(why, CLT_WHY,
			 "the device is too small: queues of %u requests with %u pieces, "
			 "expected at least %u with %u", dev.max_qp_wr, dev.max_sge, MIN_QUEUE,
			 MIN_SGE);
		return -EOPNOTSUPP;
	}
	r = con->att->pd ? 0 : setup_pd(con, why);
	if (r < 0)
		return r;
	path->max_qp_wr = dev.max_qp_wr;
	if (con->cid) {
		qp.max_send_wr = MAX(4 * con->att->depth + 1, path->window_send_wr);
		qp.max_recv_wr = 3 * con->att->depth + 1;
	}
	qp.max_send_wr = MIN(qp.max_send_wr, dev.max_qp_wr);
	qp.max_recv_wr = MIN(qp.max_recv_wr, dev.max_qp_wr);
	return fab_create_qp(con->fab, con->att->pd, &qp);
}

static int setup_resolved(struct clt_con *con, char why[CLT_WHY])
{
	struct clt_path *path = clt_path_of(con);
	struct rtrs_conn_req req = {
		.cid = (uint16_t)con->cid,
		.cid_num = (uint16_t)path->att.ncons,
		.recon_cnt = (uint16_t)path->attempts,
		.flags = RTRS_CONN_REQ_FIRST_CONN | RTRS_CONN_REQ_HEARS | path->conf.lineage,
		.auth = path->auth.proven ? RTRS_AUTHS_PROVES :
			auth_mode(path->conf.auth) != AUTH_MODE_NONE && !con->cid ?
			RTRS_AUTHS_ASKS : RTRS_AUTHS_NOTHING,
		.auth_version = auth_conn_version(con->fab),
	};
	struct rtrs_msg_conn_req msg;
	int r;

	memcpy(req.sess_uuid, path->uuid, sizeof(req.sess_uuid));
	memcpy(req.paths_uuid, path->conf.sess_uuid, sizeof(req.paths_uuid));
	rtrs_conn_req_encode(&msg, &req);
	r = setup_qp(con, why);
	if (r == 0)
		r = fab_connect(con->fab, &msg, sizeof(msg));
	return r < 0 ? why_add_con(con, r, why) : 0;
}

/* Take the limits of the path from @rsp, the answer on connection 0. */
static int setup_geometry(struct clt_con *con, const struct rtrs_conn_rsp *rsp, char why[CLT_WHY])
{
	struct clt_path *path = clt_path_of(con);
	struct clt_attempt *att = con->att;
	int r;

	if (rtrs_geom_init(&att->geom, rsp->queue_depth, rsp->max_io_size, rsp->max_hdr_size) < 0) {
		snprintf(why, CLT_WHY, "impossible queue depth or sizes");
		return -EPROTO;
	}
	att->new_rkey = rsp->new_rkey;
	att->digest = path->conf.digest == RTRS_DIGEST_NONE ? CLT_DIGEST_NONE : CLT_DIGEST_WANTED;
	/* An answer and an invalidate of a key may come for each request. */
	att->depth = MIN(att->geom.queue_depth, MAX(path->max_qp_wr / 2, 2u) - 1);
	if (att->way == CLT_MEM_BOUNCE)
		att->depth = MIN(att->depth, (unsigned)CLT_ARENA_SLOTS);
	att->depth = clt_key_depth(&att->caps, att->mode, att->depth, &path->window_send_wr);
	if (!att->depth) {
		snprintf(why, CLT_WHY,
			 "the device is too small for memory windows: registration=static needs "
			 "none");
		return -EOPNOTSUPP;
	}
	r = path->ops->geometry(path, why, CLT_WHY);
	if (r < 0)
		return r;
	att->rbufs = calloc(att->geom.queue_depth, sizeof(*att->rbufs));
	if (!att->rbufs) {
		snprintf(why, CLT_WHY, "no memory");
		return -ENOMEM;
	}
	return 0;
}

static int setup_established(struct clt_con *con, const struct fab_event *ev, char why[CLT_WHY])
{
	struct clt_path *path = clt_path_of(con);
	struct rtrs_conn_rsp rsp;
	const char *text = "";
	int r;

	clt_con_established(con);
	r = rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, false, &rsp, &text);
	if (r == 0 && rsp.status) {
		r = rsp.status;
		text = strerror(-r);
	}
	snprintf(why, CLT_WHY, "%s", text);
	if (r == 0)
		r = clt_auth_judge(con, &rsp, (const void *)ev->private_data, why, CLT_WHY);
	if (r > 0)
		return 2;
	if (r == 0 && con->cid == 0)
		r = setup_geometry(con, &rsp, why);
	if (r < 0)
		return why_add_con(con, r, why);
	/* A failure to register memory is no fault of the connection. */
	r = con->cid ? 0 : clt_mem_attach(con->att, why, CLT_WHY);
	if (r < 0)
		return r;
	if (con->cid == 0)
		clt_con_zero_service(path);
	path->next_cid++;
	return 1;
}

static int setup_rejected(struct clt_con *con, const struct fab_event *ev, char why[CLT_WHY])
{
	const struct clt_path *path = clt_path_of(con);
	struct rtrs_conn_rsp rsp;
	const char *text;

	if (rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, true, &rsp, &text) < 0) {
		snprintf(why, CLT_WHY, "connection %u was refused (%s)", con->cid, text);
		return -ECONNREFUSED;
	}
	text = clt_cause_reason(rsp.refusal, auth_mode(path->conf.auth) != AUTH_MODE_NONE);
	if (*text)
		snprintf(why, CLT_WHY, "connection %u was refused: %s", con->cid, text);
	else
		snprintf(why, CLT_WHY, "connection %u was refused: %s%s", con->cid,
			 strerror(-rsp.status),
			 clt_cause_refused(&path->dst, con->cid, rsp.status));
	return rsp.refusal == RTRS_REFUSES_SETUPS ? CLT_BUSY : rsp.status;
}

static int setup_disconnected(struct clt_con *con, const struct fab_event *ev, char why[CLT_WHY])
{
	if (!ev->status) {
		snprintf(why, CLT_WHY, "connection %u was closed by the server", con->cid);
		return -ECONNRESET;
	}
	snprintf(why, CLT_WHY, "connection %u: %s", con->cid, why_not(con, ev->status));
	return ev->status;
}

int clt_setup_event(struct clt_con *con, const struct fab_event *ev, char why[CLT_WHY])
{
	*why = '\0';
	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		return setup_resolved(con, why);
	case FAB_EVENT_ESTABLISHED:
		return setup_established(con, ev, why);
	case FAB_EVENT_REJECTED:
		return setup_rejected(con, ev, why);
	case FAB_EVENT_UNREACHABLE:
		snprintf(why, CLT_WHY, "%s%s", why_not(con, ev->status),
			 clt_cause_unreachable(&clt_path_of(con)->dst, ev->status));
		return ev->status;
	case FAB_EVENT_DISCONNECTED:
		return setup_disconnected(con, ev, why);
	case FAB_EVENT_CONNECT_REQUEST:
	case FAB_EVENT_LISTENER_GONE:
		return 0;		/* we do not listen */
	}
	return 0;
}

/* ---- INFO ---- */

/* Post the receives of all connections: from now on answers may come. */
static int post_receives(struct clt_path *path)
{
	struct clt_attempt *att = &path->att;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < att->ncons; i++) {
		unsigned n = i ? 2 * att->depth : 2 * RTRS_SERVICE_CON_DEPTH;

		r = clt_rx_post(&att->cons[i], MIN(n, path->max_qp_wr));
	}
	return r;
}

static int info_take(struct clt_path *path, const struct ibv_wc *wc, char why[CLT_WHY])
{
	struct clt_attempt *att = &path->att;
	const void *rsp = path->talk.in;
	const char *text = "an immediate instead of INFO_RSP";
	int r = wc->opcode == IBV_WC_RECV ? 0 : -EPROTO;
	unsigned refusal = r ? 0 : rtrs_info_refusal_decode(rsp, wc->byte_len);

	if (refusal) {
		clt_cause_session(refusal, path->conf.sess_name, why, CLT_WHY);
		return -EBUSY;
	}
	if (r == 0)
		r = rtrs_info_rsp_decode(rsp, wc->byte_len, &att->geom, att->rbufs, &text);
	if (r < 0) {
		snprintf(why, CLT_WHY, "bad INFO_RSP: %s", text);
		return r;
	}
	r = post_receives(path);
	if (r < 0)
		clt_mem_why(att, r, why, CLT_WHY);
	return r;
}

static void info_came(struct clt_path *path, const struct ibv_wc *wc)
{
	char why[CLT_WHY];

	if (clt_attempt_state(&path->att) == CLT_PATH_INFO)	/* else closing */
		path->info_done(path, info_take(path, wc, why), why);
}

int clt_setup_info(struct clt_path *path,
		   void (*done)(struct clt_path *path, int err, const char *why), char why[CLT_WHY])
{
	struct clt_attempt *att = &path->att;
	size_t len = rtrs_info_rsp_len(att->geom.queue_depth);
	struct rtrs_msg_info_req *req;
	int r = clt_key_open(att, path->conf.lessons, why, CLT_WHY);

	if (r < 0)
		return r;
	path->info_done = done;
	r = clt_con_zero_talk(path, len, sizeof(*req), info_came, why);
	if (r < 0)
		return r;
	req = path->talk.out;
	rtrs_info_req_encode(req, path->conf.sess_name);
	rtrs_info_req_hear(req);
	return clt_con_zero_say(path, sizeof(*req), why);
}

/* ---- the end of an attempt ---- */

void clt_setup_release(struct clt_path *path)
{
	struct clt_attempt *att = &path->att;

	/* ORDER: a device may wait long for a queue pair with a window (frwr.h). */
	clt_key_close(att, path->name, false);
	for (unsigned i = 0; i < att->ncons; i++)
		clt_con_release(&att->cons[i]);
	/* ORDER: no memory before the last connection, so that nobody waits for a device that is
	 * slow to let go (fab_conn_destroy()). */
	for (unsigned i = 0; i < att->ncons; i++)
		clt_rx_free(&att->cons[i]);
	clt_key_close(att, path->name, true);
	clt_con_zero_talk_end(path);
	clt_auth_release(path);
	free(att->rbufs);
	att->rbufs = NULL;
	if (att->way == CLT_MEM_BOUNCE && att->pd) {
		clt_mem_detach(att);
		fab_pd_destroy(att->pd);
		att->pd = NULL;
	}
}
