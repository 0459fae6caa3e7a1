/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to a client that asks for the names of the exports (rnbd-list.h).  Control thread. */
#ifndef SRV_LIST_H
#define SRV_LIST_H

struct srv_req;

/* A LIST.  Ends in srv_req_finish_control(): -EINVAL for a client whose extension does not have it,
 * as for any unknown message; also with room for less than any one name. */
void srv_list_request(struct srv_req *req);

#endif
