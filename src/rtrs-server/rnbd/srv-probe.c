/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers PROBE.  Owns nothing; control thread.  The chunk holds what its last request left, so a
 * READ gets zeroes. */
#include <errno.h>

#include "srv-probe.h"
#include "srv-result.h"
#include "srv-rnbd-state.h"

void srv_probe_request(struct srv_req *req)
{
	if (!srv_rnbd_has(req->path->sess, RNBD_EXT_PROBE)) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	if (req->rtrs.has_desc)
		srv_result_put(req, NULL, 0);
	srv_req_finish_control(req, 0);
}
