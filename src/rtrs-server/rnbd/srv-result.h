/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of control messages.  Control thread. */
#ifndef SRV_RESULT_H
#define SRV_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "srv-chunk.h"
#include "srv-req.h"

/* True if the client asked for an answer of at least @len bytes. */
static inline bool srv_result_wanted(const struct srv_req *req, size_t len)
{
	return req->rtrs.has_desc && req->rtrs.data_len >= len;
}

/* Put @rsp, the answer, at the start of the request's chunk, and zeroes behind, up to the length
 * that the client gets. */
static inline void srv_result_put(struct srv_req *req, const void *rsp, size_t len)
{
	uint8_t *chunk = srv_chunk(&req->path->chunks, req->buf_id);

	if (len)
		memcpy(chunk, rsp, len);
	memset(chunk + len, 0, req->rtrs.data_len - len);
}

#endif
