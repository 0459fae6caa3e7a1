/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD on the server: SESS_INFO, OPEN, CLOSE and the end of sessions (doc/protocol.md 8).  IO is
 * in srv-dev-io.h.  Control thread. */
#ifndef SRV_OPEN_H
#define SRV_OPEN_H

struct export;
struct srv;
struct srv_path;
struct srv_req;
struct srv_rnbd;
struct srv_sess;

/* Answer the message @req.  Ends in srv_req_finish_control().  An OPEN needs a path in service. */
void srv_open_sess_info(struct srv_req *req);
void srv_open_open(struct srv_req *req);
void srv_open_close(struct srv_req *req);
void srv_open_init(struct srv_rnbd *rnbd);
/* @path is failing: its OPENs wait no longer. */
void srv_open_path_failed(struct srv_path *path);
/* The last path of @sess has drained: close all its devices, each when its IO has left the
 * storage. */
void srv_open_sess_lost(struct srv_sess *sess);
/* Close all handles of @ex, each when its IO has left the storage, and tell how many.  What their
 * clients send to them from now on fails with -ENOTCONN, until they open @ex anew. */
unsigned srv_open_kick(struct srv *srv, const struct export *ex);
/* A handle was closed or a dying session has become visible as such: try waiting OPENs again. */
void srv_open_retry(struct srv *srv);

#endif
