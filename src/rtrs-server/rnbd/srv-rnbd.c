/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns RNBD's part of the server and of a session, and sends each message to the file with the
 * answer.  IO runs on the thread of the connection, behind the fence; other messages run on the
 * control thread.  An unknown message is answered with -EINVAL. */
#include <errno.h>
#include <stdlib.h>

#include "srv-allow.h"
#include "srv-close.h"
#include "srv-dev-io.h"
#include "srv-export.h"
#include "srv-list.h"
#include "srv-open.h"
#include "srv-prio.h"
#include "srv-probe.h"
#include "srv-rnbd-state.h"
#include "srv-rnbd.h"
#include "srv-sess-info.h"
#include "srv-size.h"

static void rnbd_request(struct srv_req *req)
{
	uint32_t tag = 0;

	/* Only IO waits at the fence: a client that is back must be greeted while the storage is
	 * still busy with an earlier request under this buf_id. */
	if (rnbd_msg_type(req->rtrs.usr, req->rtrs.usr_len) != RNBD_MSG_IO) {
		srv_req_to_control(req);
		return;
	}
	if (srv_rnbd_has(req->path->sess, RNBD_EXT_TAG))
		tag = rnbd_io_tag(req->rtrs.usr, req->rtrs.usr_len);
	srv_req_order(req, tag);
}

/* ---- control messages ---- */

struct message {
	int type;			/* enum rnbd_msg_type */
	void (*answer)(struct srv_req *req);
	bool in_service;		/* only on a path in service */
};

static const struct message messages[] = {
	{ .type = RNBD_MSG_SESS_INFO, .answer = srv_sess_info_request },
	/* ORDER: the waiters of a path that failed before are cancelled; do not add another. */
	{ .type = RNBD_MSG_OPEN, .answer = srv_open_request, .in_service = true },
	{ .type = RNBD_MSG_CLOSE, .answer = srv_close_request },
	{ .type = RNBD_MSG_LIST, .answer = srv_list_request },
	{ .type = RNBD_MSG_PROBE, .answer = srv_probe_request },
};

static const struct message *rnbd_message(const struct srv_req *req)
{
	int type = rnbd_msg_type(req->rtrs.usr, req->rtrs.usr_len);

	for (unsigned i = 0; i < ARRAY_SIZE(messages); i++) {
		if (messages[i].type == type)
			return &messages[i];
	}
	return NULL;
}

static void rnbd_control(struct srv_req *req)
{
	const struct message *m = rnbd_message(req);

	if (!m)
		srv_req_finish_control(req, -EINVAL);
	else if (m->in_service && req->path->state != SRV_PATH_CONNECTED)
		srv_req_finish_control(req, -ECONNABORTED);
	else
		m->answer(req);
}

/* ---- begin and end ---- */

int srv_rnbd_create(struct srv *srv, struct exports *exports)
{
	struct srv_rnbd *rnbd = calloc(1, sizeof(*rnbd));

	srv->user = rnbd;
	if (!rnbd)
		return -ENOMEM;
	rnbd->srv = srv;
	rnbd->exports = exports;
	list_init(&rnbd->limits);
	srv_open_init(rnbd);
	srv_size_init(rnbd);
	srv_ident_boot(rnbd->boot_id);
	rnbd->host_id = srv_ident_host(&rnbd->host_lasts);
	rnbd->instance = srv_ident_instance();
	rnbd->may_realtime = srv_prio_may_realtime();
	return srv_export_init(srv);
}

void srv_rnbd_destroy(struct srv *srv)
{
	struct srv_rnbd *rnbd = srv_rnbd(srv);

	if (rnbd)
		srv_export_fini(srv);
	free(rnbd);
}

static int rnbd_sess_begins(struct srv_sess *sess)
{
	struct srv_rnbd_sess *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	srv_dev_table_init(&r->devs, sess, srv_close_quiet);
	sess->user = r;
	return 0;
}

static void rnbd_sess_ends(struct srv_sess *sess)
{
	struct srv_rnbd_sess *r = srv_rnbd_sess(sess);

	srv_dev_table_fini(&r->devs);
	free(r);
}

/* ---- struct srv_ops ---- */

static void rnbd_resume(struct srv_req *req)
{
	static void (*const runs[SRV_REQ_NSTAGES])(struct srv_req *req) = {
		[SRV_REQ_FENCED] = srv_dev_io_start,	/* the turn has come */
		[SRV_REQ_SIZE] = srv_dev_io_ask,	/* control thread */
		[SRV_REQ_SIZED] = srv_dev_io_sized,
		[SRV_REQ_LIMIT] = srv_dev_io_let_go,
		[SRV_REQ_CONTROL] = rnbd_control,	/* control thread */
	};

	runs[srv_req_stage(req)](req);
}

static void rnbd_path_failed(struct srv_path *path)
{
	srv_open_path_failed(path);
	srv_size_path_failed(path);
}

const struct srv_ops srv_rnbd_ops = {
	.req_size = sizeof(struct srv_rnbd_req),
	.request = rnbd_request,
	.resume = rnbd_resume,
	.path_failed = rnbd_path_failed,
	.path_joins = srv_allow_path,
	.con_cut = srv_dev_io_con_cut,
	.sess_begins = rnbd_sess_begins,
	.sess_lost = srv_close_sess_lost,
	.sess_ends = rnbd_sess_ends,
};
