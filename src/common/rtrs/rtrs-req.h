/* SPDX-License-Identifier: BSD-3-Clause */
/* The request in a chunk, doc/protocol.md 3.1 and 3.3:
 *
 *	WRITE  | data | user message | rtrs_msg_rdma_write |
 *	READ   | (result area) | user message | rtrs_msg_rdma_read | desc[sg_cnt] |
 *	       ^ 0             ^ data_len     ^ off = data_len + usr_len
 *
 * The client encodes user message and RTRS header back to back; the server decodes from a private
 * copy.  Pure. */
#ifndef RTRS_REQ_H
#define RTRS_REQ_H

#include <stdbool.h>

#include "rtrs-geom.h"

/* Room for the largest user message we send or take (RNBD's OPEN, 264) and the RTRS header. */
#define RTRS_USR_MAX 512
#define RTRS_HDR_MAX \
	(RTRS_USR_MAX + sizeof(struct rtrs_msg_rdma_read) + sizeof(struct rtrs_sg_desc))

enum rtrs_dir { RTRS_DIR_READ, RTRS_DIR_WRITE };

struct rtrs_desc {
	uint64_t addr;
	uint32_t key, len;
};

struct rtrs_req {
	enum rtrs_dir dir;
	uint32_t data_len;		/* off - usr_len */
	uint16_t usr_len;
	bool need_inval;
	bool has_desc;			/* READ: sg_cnt == 1 */
	struct rtrs_desc desc;		/* desc.len == data_len once decoded */
	const uint8_t *usr;		/* decode: into the caller's copy */
};

/* Write the RTRS header for @req behind the user message that already stands in @buf[0..usr_len).
 * Returns the length of both together.  @buf has RTRS_HDR_MAX bytes. */
size_t rtrs_req_encode(const struct rtrs_req *req, uint8_t *buf);

/* The region [*start, *start + *len) of @chunk to copy before decoding: headers are decoded from a
 * copy because the client may still write the chunk.  @off: from the immediate.  @byte_len: of the
 * completion, the length that the client claims to have written.
 *
 * Reads only the fixed header at @off in @chunk, each byte once.  The region lies inside the chunk.
 * -EINVAL with @why: off or header past the chunk, unknown type, usr_len > off, usr_len >
 * RTRS_USR_MAX, data_len > max_io_size, READ with sg_cnt > 1, byte_len that does not fit (3.3). */
int rtrs_req_extent(const struct rtrs_geom *g, const uint8_t *chunk, uint32_t off,
		    uint32_t byte_len, uint32_t *start, uint32_t *len, const char **why);

/* Decode @copy, the copied region of rtrs_req_extent().  Checks the copy again, and also: a
 * descriptor is there exactly when a READ has data, and desc.len == data_len.  @req has need_inval
 * only with a descriptor; unknown flags are ignored.  -EINVAL with @why. */
int rtrs_req_decode(const struct rtrs_geom *g, const uint8_t *copy, uint32_t start, uint32_t len,
		    uint32_t off, uint32_t byte_len, struct rtrs_req *req, const char **why);

#endif
