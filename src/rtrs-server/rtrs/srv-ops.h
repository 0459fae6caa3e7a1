/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of RTRS to the protocol above, which is RNBD.
 *
 * RTRS brings messages and takes answers; only the protocol above knows what a message says, and
 * which messages have an order.  A request ends in srv_req_finish() or srv_req_finish_control(),
 * once. */
#ifndef SRV_OPS_H
#define SRV_OPS_H

#include <stdbool.h>
#include <stddef.h>

struct srv_con;
struct srv_path;
struct srv_req;
struct srv_sess;

struct srv_ops {
	/* bytes of a struct that begins with struct srv_req; RTRS keeps a struct of this size for
	 * each request */
	size_t req_size;

	/* Take @req, which has arrived with a valid RTRS header.  Thread of @req->con.  Pass @req
	 * to srv_req_order() or srv_req_to_control(), or finish @req. */
	void (*request)(struct srv_req *req);
	/* Continue @req in its stage, a stage of srv_ops (srv-req.h), on the thread of the
	 * stage. */
	void (*resume)(struct srv_req *req);
	/* Say in words what @req, which is decoded, asks for, as far as its message can be
	 * believed.  Thread of @req->con. */
	void (*tell)(const struct srv_req *req, char *text, size_t len);

	/* Finish the requests on srv_con.held of @con, which is being cut.  Thread of @con. */
	void (*con_cut)(struct srv_con *con);

	/* ---- control thread ---- */

	/* Finish the requests of @path that wait on the control thread: @path is failing. */
	void (*path_failed)(struct srv_path *path);
	/* May @path, which has told its name, join its session?  False: the reason is in @cause. */
	bool (*path_joins)(const struct srv_path *path, char *cause, size_t len);
	/* Make sess->user for @sess, which is new.  0, or -ENOMEM with nothing held. */
	int (*sess_begins)(struct srv_sess *sess);
	/* The last path of @sess in service has drained.  Another path may follow. */
	void (*sess_lost)(struct srv_sess *sess);
	/* Free sess->user: @sess has neither a path nor a request left. */
	void (*sess_ends)(struct srv_sess *sess);
};

#endif
