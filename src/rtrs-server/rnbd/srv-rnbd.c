/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of RNBD.  IO runs on the thread of the connection, behind the fence (srv-dev-io.c).
 * Other messages run on the control thread, in this order: SESS_INFO, a PROBE of each path, LIST,
 * then OPEN (srv-open.c) and CLOSE (srv-open.h) of each export.
 *
 * Possible failures are answers: -EINVAL to an unknown message, -ECONNABORTED to one whose path is
 * not in service any more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "exports.h"
#include "rnbd-ext.h"
#include "rnbd-msg.h"
#include "srv-allow.h"
#include "srv-export.h"
#include "srv-open.h"
#include "srv-rnbd-state.h"
#include "util.h"

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

/* ---- LIST (rnbd-ext.h): the exports that the session may open ---- */

/* List the exports for @sess from number @first on, and count those for which @w has no room. */
static void list_from(const struct srv_sess *sess, uint32_t first, struct rnbd_list_writer *w)
{
	const struct export *ex;
	uint32_t i = 0, left = 0;

	list_for_each(ex, &srv_rnbd(sess->srv)->exports->list, link) {
		if (srv_allow_refuses(sess, ex) || i++ < first)
			continue;
		if (left || !rnbd_list_add(w, ex->name))
			left++;
	}
	rnbd_list_end(w, left);
}

/* The answer is made in the request's chunk, which is written and never read, because the client
 * can write there, too.  -EINVAL: the client's extension lacks LIST (an unknown message gets the
 * same answer), or the room is too small for any one name. */
static void answer_list(struct srv_req *req)
{
	struct rnbd_list_writer w;
	uint32_t first;

	if (!srv_rnbd_has(req->path->sess, RNBD_EXT_LIST) || !req->rtrs.has_desc ||
	    req->rtrs.data_len < RNBD_LIST_ROOM_MIN ||
	    rnbd_list_decode(req->rtrs.usr, req->rtrs.usr_len, &first)) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	rnbd_list_begin(&w, srv_chunk(&req->path->chunks, req->buf_id), req->rtrs.data_len);
	list_from(req->path->sess, first, &w);
	srv_req_finish_control(req, 0);
}

/* ---- SESS_INFO (doc/protocol.md 8.1): the common version, and this server's identity ---- */

/* The id for a client to compare after coming back: another boot of the host, or a loss since,
 * makes another id. */
static void put_boot_id(const struct srv_rnbd *rnbd, uint8_t id[SRV_IDENT_BOOT_LEN])
{
	uint64_t losses = store_losses(rnbd->exports);

	memcpy(id, rnbd->boot_id, SRV_IDENT_BOOT_LEN);
	for (unsigned i = 0; i < SRV_IDENT_BOOT_LEN; i++)
		id[i] ^= (uint8_t)(losses >> 8 * i);
}

/* 24 bits of the host's hash, never 0.  A host without an id that lasts over reboots sends 0
 * instead. */
static uint32_t host_told(const struct srv_rnbd *rnbd)
{
	uint64_t id = rnbd->host_id;
	uint32_t host = (uint32_t)(id ^ id >> 24 ^ id >> 48) & 0xffffff;

	return !rnbd->host_lasts ? 0 : host ? host : 1;
}

/* Begin with digests on @path, if its client has the feature among @features.  Returns the
 * feature, or 0. */
static uint32_t begin_digests(struct srv_path *path, uint32_t features)
{
	if (!(features & RNBD_EXT_DIGEST) || !rtrs_digest_works())
		return 0;
	/* ORDER: before the answer, behind which the client sends digests. */
	atomic_store_explicit(&path->digest, RTRS_DIGEST_CRC32C, memory_order_release);
	return RNBD_EXT_DIGEST;
}

/* The content of a client's SESS_INFO is kept with the session. */
static void answer_sess_info(struct srv_req *req)
{
	const struct srv_rnbd *rnbd = srv_rnbd(req->path->srv);
	struct srv_rnbd_sess *sess = srv_rnbd_sess(req->path->sess);
	struct rnbd_sess_info info;
	struct rnbd_msg_sess_info rsp;
	int rc = rnbd_sess_info_decode(req->rtrs.usr, req->rtrs.usr_len, &info);

	if (rc || !srv_result_wanted(req, sizeof(rsp))) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	sess->resends = info.ext.valid;
	sess->take_over_ms = 0;
	atomic_store(&sess->features, info.ext.valid ? info.ext.features : 0);
	info.ver = MIN(info.ver, (uint8_t)RNBD_PROTO_VER_MAJOR);
	atomic_store(&sess->ver, info.ver);
	if (info.ext.valid) {
		info.ext.features = RNBD_EXT_ALL | begin_digests(req->path, info.ext.features);
		if (exports_any_shared(rnbd->exports))
			info.ext.features |= RNBD_EXT_SHARED;
		info.ext.instance = rnbd->instance;
		info.ext.host = host_told(rnbd);
		put_boot_id(rnbd, info.ext.boot_id);
	}
	rnbd_sess_info_encode(&rsp, RNBD_MSG_SESS_INFO_RSP, &info);
	srv_result_put(req, &rsp, sizeof(rsp));
	srv_req_finish_control(req, 0);
}

/* ---- PROBE: do packets of full size pass, before a path is up (man/rtrs-protocol.pod)? ---- */

/* A READ gets zeroes, because the chunk holds what its last request left.  -EINVAL: the client's
 * extension lacks PROBE. */
static void answer_probe(struct srv_req *req)
{
	if (!srv_rnbd_has(req->path->sess, RNBD_EXT_PROBE)) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	if (req->rtrs.has_desc)
		srv_result_put(req, NULL, 0);
	srv_req_finish_control(req, 0);
}

/* ---- control messages ---- */

struct message {
	int type;			/* enum rnbd_msg_type */
	void (*answer)(struct srv_req *req);
	bool in_service;		/* only on a path in service */
};

static const struct message messages[] = {
	{ .type = RNBD_MSG_SESS_INFO, .answer = answer_sess_info },
	/* ORDER: the waiters of a path that failed before are cancelled; do not add another. */
	{ .type = RNBD_MSG_OPEN, .answer = srv_open_request, .in_service = true },
	{ .type = RNBD_MSG_CLOSE, .answer = srv_close_request },
	{ .type = RNBD_MSG_LIST, .answer = answer_list },
	{ .type = RNBD_MSG_PROBE, .answer = answer_probe },
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
	rnbd->may_realtime = srv_export_may_realtime();
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
	srv_dev_table_init(&r->devs, sess, sess->srv->nthreads, srv_close_quiet);
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

static void rnbd_tell(const struct srv_req *req, char *text, size_t len)
{
	const struct srv_dev_table *devs = &srv_rnbd_sess(req->path->sess)->devs;
	int type = rnbd_msg_type(req->rtrs.usr, req->rtrs.usr_len);
	struct rnbd_io io;
	struct srv_dev *dev;

	if (type != RNBD_MSG_IO || srv_dev_io_decode(req, &io)) {
		snprintf(text, len, "message of type %d", type);
		return;
	}
	dev = srv_dev_get(devs, io.device_id);
	snprintf(text, len, "%s of %u bytes at %llu of %s", rnbd_op_name(io.op), io.bi_size,
		 (unsigned long long)io.sector << RNBD_SECTOR_SHIFT,
		 dev ? dev->ex->name : "an export that is not open");
	if (dev && srv_dev_put(dev))
		srv_post_control(req->path->srv, &dev->quiet_msg);
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
	.tell = rnbd_tell,
	.path_failed = rnbd_path_failed,
	.path_joins = srv_allow_path,
	.con_cut = srv_dev_io_con_cut,
	.sess_begins = rnbd_sess_begins,
	.sess_lost = srv_close_sess_lost,
	.sess_ends = rnbd_sess_ends,
};
