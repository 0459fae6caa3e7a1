/* SPDX-License-Identifier: BSD-3-Clause */
/* What RTRS asks of the protocol above it, which is RNBD.
 *
 * RTRS brings messages and takes answers; what a message says, and which of them have an order, the
 * protocol above knows.  A request ends in srv_req_finish() or srv_req_finish_control(), once. */
#ifndef SRV_OPS_H
#define SRV_OPS_H

#include <stddef.h>

struct srv_path;
struct srv_req;
struct srv_sess;

struct srv_ops {
	/* bytes of a struct that begins with struct srv_req: RTRS keeps one for each request */
	size_t req_size;

	/* @req has arrived, and its RTRS header is valid.  Thread of @req->con.  Pass @req to
	 * srv_req_order() or srv_req_to_control(), or finish @req. */
	void (*request)(struct srv_req *req);
	/* @req goes on in its stage, one of srv_ops (srv-req.h), on the thread that the stage is
	 * for. */
	void (*resume)(struct srv_req *req);

	/* ---- control thread ---- */

	/* @path is failing: finish the requests of @path that wait on the control thread. */
	void (*path_failed)(struct srv_path *path);
	/* @sess is new: sess->user is the protocol's.  0, or -ENOMEM with nothing held. */
	int (*sess_begins)(struct srv_sess *sess);
	/* The last path of @sess in service has drained.  Another one may follow. */
	void (*sess_lost)(struct srv_sess *sess);
	/* No path and no request of @sess is left: free sess->user. */
	void (*sess_ends)(struct srv_sess *sess);
};

#endif
