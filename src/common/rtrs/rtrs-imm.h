/* SPDX-License-Identifier: BSD-3-Clause */
/* Immediate data, and the geometry of chunks by which an immediate is split, doc/protocol.md 3.2.
 * Host values here; __be32 in requests (doc/traps.md 1). */
#ifndef RTRS_IMM_H
#define RTRS_IMM_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "rtrs-proto.h"
#include "util.h"

#define RTRS_IMM_PAYL_MASK ((1u << RTRS_IMM_PAYL_BITS) - 1)
#define RTRS_IMM_MSG_ID_BITS 19
#define RTRS_IMM_MSG_ID_MASK ((1u << RTRS_IMM_MSG_ID_BITS) - 1)
#define RTRS_IMM_ERRNO_MASK 0x1FFu

/* ---- geometry: how queue depth and chunk size share the 28 payload bits of an immediate, the same
 * way on both sides (doc/protocol.md 2.6, 3.2; doc/traps.md 3) ---- */

struct rtrs_geom {
	uint32_t queue_depth;		/* chunks, permits: 1..65535 */
	uint32_t max_io_size;		/* bytes of data in one request */
	uint32_t max_hdr_size;		/* bytes of headers behind the data */
	uint32_t chunk_size;		/* max_io_size + max_hdr_size */
	uint32_t off_bits;		/* offset field of the IO_REQ payload */
	uint32_t off_mask;
};

/* Returns 0; -EINVAL queue depth 0 or too large, or a size of 0 or a sum beyond 32 bits;
 * -EOVERFLOW when bits(queue_depth) + bits(chunk_size) > 28. */
static inline int rtrs_geom_init(struct rtrs_geom *g, uint32_t queue_depth, uint32_t max_io_size,
				 uint32_t max_hdr_size)
{
	uint64_t chunk_size = (uint64_t)max_io_size + max_hdr_size;
	unsigned qd_bits = ceil_log2(queue_depth);

	if (!queue_depth || queue_depth > RTRS_MAX_QUEUE_DEPTH)
		return -EINVAL;
	if (!max_io_size || !max_hdr_size || chunk_size > UINT32_MAX)
		return -EINVAL;
	if (qd_bits + ceil_log2(chunk_size) > RTRS_IMM_PAYL_BITS)
		return -EOVERFLOW;

	g->queue_depth = queue_depth;
	g->max_io_size = max_io_size;
	g->max_hdr_size = max_hdr_size;
	g->chunk_size = (uint32_t)chunk_size;
	g->off_bits = RTRS_IMM_PAYL_BITS - qd_bits;
	g->off_mask = (1u << g->off_bits) - 1;
	return 0;
}

/* The largest power of 2 that rtrs_geom_init() takes as a queue depth with these sizes; 0: no
 * depth. */
static inline uint32_t rtrs_geom_depth_max(uint32_t max_io_size, uint32_t max_hdr_size)
{
	struct rtrs_geom geom;
	uint32_t depth = 0;

	while (!rtrs_geom_init(&geom, depth ? 2 * depth : 1, max_io_size, max_hdr_size))
		depth = geom.queue_depth;
	return depth;
}

/* ---- immediates ---- */

/* The immediate of @type with @payload. */
static inline __be32 rtrs_imm_pack(enum rtrs_imm_type type, uint32_t payload)
{
	return htobe32((uint32_t)type << RTRS_IMM_PAYL_BITS | (payload & RTRS_IMM_PAYL_MASK));
}

/* The enum rtrs_imm_type of @imm, unchecked. */
static inline unsigned rtrs_imm_type(__be32 imm)
{
	return be32toh(imm) >> RTRS_IMM_PAYL_BITS;
}

/* The payload of @imm. */
static inline uint32_t rtrs_imm_payload(__be32 imm)
{
	return be32toh(imm) & RTRS_IMM_PAYL_MASK;
}

/* The immediate of a request in chunk @buf_id, whose RTRS header is at @off. */
static inline __be32 rtrs_imm_io_req(const struct rtrs_geom *g, uint32_t buf_id, uint32_t off)
{
	return rtrs_imm_pack(RTRS_IO_REQ_IMM, buf_id << g->off_bits | off);
}

/* Split the payload of a request.  Unchecked: the caller compares @buf_id with the queue depth and
 * @off with the chunk size. */
static inline void rtrs_imm_io_req_split(const struct rtrs_geom *g, uint32_t payload,
					 uint32_t *buf_id, uint32_t *off)
{
	*buf_id = payload >> g->off_bits;
	*off = payload & g->off_mask;
}

/* The immediate of an answer.  @status: 0 or a negative errno.  @w_inv: a SEND_WITH_INV is in
 * front. */
static inline __be32 rtrs_imm_io_rsp(uint32_t msg_id, int status, bool w_inv)
{
	return rtrs_imm_pack(w_inv ? RTRS_IO_RSP_W_INV_IMM : RTRS_IO_RSP_IMM,
			     ((uint32_t)-status & RTRS_IMM_ERRNO_MASK) << RTRS_IMM_MSG_ID_BITS |
				     (msg_id & RTRS_IMM_MSG_ID_MASK));
}

/* Split the payload of an answer.  @status: 0 or a negative errno.  Unchecked. */
static inline void rtrs_imm_io_rsp_split(uint32_t payload, uint32_t *msg_id, int *status)
{
	*msg_id = payload & RTRS_IMM_MSG_ID_MASK;
	*status = -(int)(payload >> RTRS_IMM_MSG_ID_BITS);
}

#endif
