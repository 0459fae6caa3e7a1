/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to PROBE, by which a client learns whether packets of full size pass, in both
 * directions, before a path is up (man/rtrs-protocol.pod).  Control thread. */
#ifndef SRV_PROBE_H
#define SRV_PROBE_H

struct srv_req;

/* Answer the PROBE @req, a READ with as many zeroes as the client wants.  Ends in
 * srv_req_finish_control().  -EINVAL: the client's extension lacks PROBE (an unknown message gets
 * the same answer). */
void srv_probe_request(struct srv_req *req);

#endif
