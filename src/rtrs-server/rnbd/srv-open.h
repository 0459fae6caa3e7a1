/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to an OPEN (doc/protocol.md 8.2), at once or after waiting for a handle or the
 * storage.  Control thread. */
#ifndef SRV_OPEN_H
#define SRV_OPEN_H

struct srv;
struct srv_path;
struct srv_req;
struct srv_rnbd;

/* Begin with no OPEN waiting. */
void srv_open_init(struct srv_rnbd *rnbd);
/* Answer the OPEN @req, whose path is in service.  Ends in srv_req_finish_control(). */
void srv_open_request(struct srv_req *req);
/* End the waiting OPENs of @path, which is failing. */
void srv_open_path_failed(struct srv_path *path);
/* Try waiting OPENs again: a handle was closed, or a dying session has become visible as such. */
void srv_open_retry(struct srv *srv);

#endif
