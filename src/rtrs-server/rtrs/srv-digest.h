/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests at the server, on a path whose client wants them (rtrs-digest.h; doc/decisions.md D26).
 * Thread of the connection. */
#ifndef SRV_DIGEST_H
#define SRV_DIGEST_H

#include <stdint.h>

struct rtrs_rsp;
struct srv_req;

/* Compare the digest of @req, which is decoded, with what arrived; the digest is behind the @len
 * bytes of the headers in req->hdr.  A wrong one is counted and logged, and fails the connection,
 * before anybody acts on @req. */
void srv_digest_check(struct srv_req *req, uint32_t len);
/* The same for the headers of @req, which came with a digest and break the rule @why. */
void srv_digest_broken(struct srv_req *req, const char *why);
/* Add the digest to the answer @rsp of @req, which is complete otherwise. */
void srv_digest_answer(const struct srv_req *req, struct rtrs_rsp *rsp);

#endif
