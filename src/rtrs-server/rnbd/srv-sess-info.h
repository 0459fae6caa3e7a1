/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to SESS_INFO (doc/protocol.md 8.1): the version that both ends speak, and with our
 * extension the identity of this server.  Control thread. */
#ifndef SRV_SESS_INFO_H
#define SRV_SESS_INFO_H

struct srv_req;

/* Answer the SESS_INFO @req.  Ends in srv_req_finish_control(). */
void srv_sess_info_request(struct srv_req *req);

#endif
