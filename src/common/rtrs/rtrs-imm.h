/* SPDX-License-Identifier: BSD-3-Clause */
/* Immediate data, doc/protocol.md 3.2.  Host values here; __be32 in requests (doc/traps.md 1). */
#ifndef RTRS_IMM_H
#define RTRS_IMM_H

#include <endian.h>
#include <stdbool.h>

#include <linux/types.h>

#include "rtrs-geom.h"

#define RTRS_IMM_PAYL_MASK ((1u << RTRS_IMM_PAYL_BITS) - 1)
#define RTRS_IMM_MSG_ID_BITS 19
#define RTRS_IMM_MSG_ID_MASK ((1u << RTRS_IMM_MSG_ID_BITS) - 1)
#define RTRS_IMM_ERRNO_MASK 0x1FFu

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
