/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to LIST, a request for the names of the exports (rnbd-list.h).  Control thread. */
#ifndef SRV_LIST_H
#define SRV_LIST_H

struct srv_req;

/* Answer the LIST @req.  Ends in srv_req_finish_control().  -EINVAL: the client's extension lacks
 * LIST (an unknown message gets the same answer), or the room is too small for any one name. */
void srv_list_request(struct srv_req *req);

#endif
