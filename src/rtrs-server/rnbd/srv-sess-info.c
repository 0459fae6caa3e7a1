/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: keeps the content of a client's SESS_INFO with the session; control thread.
 * Errors are answers. */
#include <errno.h>
#include <string.h>

#include "exports.h"
#include "rnbd-msg.h"
#include "srv-result.h"
#include "srv-rnbd-state.h"
#include "srv-sess-info.h"
#include "util.h"

/* The id for a client to compare after coming back: another boot of the host, or a loss since,
 * makes another id. */
static void put_boot_id(const struct srv_rnbd *rnbd, uint8_t id[SRV_IDENT_BOOT_LEN])
{
	uint64_t losses = exports_losses(rnbd->exports);

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

void srv_sess_info_request(struct srv_req *req)
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
		info.ext.features = RNBD_EXT_ALL;
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
