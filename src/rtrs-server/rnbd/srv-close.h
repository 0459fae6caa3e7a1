/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of handles: by a CLOSE, with the last path of a session, or because we want so.  Control
 * thread. */
#ifndef SRV_CLOSE_H
#define SRV_CLOSE_H

struct export;
struct loop_msg;
struct srv;
struct srv_req;
struct srv_sess;

/* Answer the CLOSE @req when the handle has closed.  Ends in srv_req_finish_control(). */
void srv_close_request(struct srv_req *req);
/* For srv_dev_table_init(): @msg is of a device that is closing and has lost its last reference. */
void srv_close_quiet(struct loop_msg *msg);
/* The last path of @sess has drained: close all its devices, each when its IO has left the
 * storage. */
void srv_close_sess_lost(struct srv_sess *sess);
/* Close all handles of @ex, each when its IO has left the storage, and tell how many.  What their
 * clients send to them from now on fails with -ENOTCONN, until they open @ex anew. */
unsigned srv_close_kick(struct srv *srv, const struct export *ex);

#endif
