/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD on the server: SESS_INFO, OPEN, CLOSE and the end of sessions (doc/protocol.md 8).  IO is
 * in rnbd-io.h. */
#ifndef RNBD_SRV_H
#define RNBD_SRV_H

struct loop_msg;
struct srv;
struct srv_path;
struct srv_req;
struct srv_sess;

/* @req has passed the fence.  Ends in srv_io_finish().  Thread of @req's connection. */
void rnbd_srv_request(struct srv_req *req);

/* ---- control thread ---- */

void rnbd_srv_init(struct srv *srv);
/* The last reference of a closing device is gone; the message is in a struct rnbd_dev. */
void rnbd_srv_dev_quiet(struct loop_msg *msg);
/* @path is failing: its OPENs wait no longer. */
void rnbd_srv_path_failed(struct srv_path *path);
/* The last path of @sess has drained: close all its devices, each when its IO has left the storage. */
void rnbd_srv_sess_lost(struct srv_sess *sess);
/* A handle was closed or a dying session has become visible as such: try waiting OPENs again. */
void rnbd_srv_retry_opens(struct srv *srv);

#endif
