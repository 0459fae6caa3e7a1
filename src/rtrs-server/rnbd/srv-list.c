/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists the exports that the session may open (srv-allow.h).  Owns nothing; control thread;
 * errors are answers.  The answer is made in the request's chunk, which is written and never read,
 * because the client can write there, too. */
#include <errno.h>

#include "export.h"
#include "exports.h"
#include "rnbd-list.h"
#include "srv-allow.h"
#include "srv-list.h"
#include "srv-rnbd-state.h"

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

void srv_list_request(struct srv_req *req)
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
