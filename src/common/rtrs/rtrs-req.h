/* SPDX-License-Identifier: BSD-3-Clause */
/* The request in a chunk, doc/protocol.md 3.1 and 3.3:
 *
 *	WRITE  | data | user message | rtrs_msg_rdma_write |
 *	READ   | (result area) | user message | rtrs_msg_rdma_read | desc[sg_cnt] |
 *	       ^ 0             ^ data_len     ^ off = data_len + usr_len
 *
 * With digests a digest follows, which rtrs_digest_seal() and rtrs_digest_fits() alone see.
 *
 * The client encodes user message and RTRS header back to back; the server decodes from a private
 * copy.  Behind that, the work requests that carry request and answer.  Pure. */
#ifndef RTRS_REQ_H
#define RTRS_REQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "rtrs-imm.h"
#include "rtrs-msg.h"

/* ---- digests ----
 *
 * Digests of requests and answers: ours, on a path whose ends have agreed on them in SESS_INFO
 * (doc/decisions.md D26; man/rtrs-protocol.pod has the bytes).  A digest stands behind the message
 * of a request or of an answer, little-endian, and covers the immediate, the message and the
 * data. */

enum rtrs_digest { RTRS_DIGEST_NONE, RTRS_DIGEST_CRC32C, RTRS_DIGESTS };
/* The names for users: "none", "crc32c". */
extern const char *const rtrs_digest_names[RTRS_DIGESTS];

#define RTRS_DIGEST_LEN 4u		/* bytes */

struct rtrs_digest_pair {
	uint32_t found, expected;
};

/* True if this build can make digests.  The functions below need that. */
bool rtrs_digest_works(void);
/* Write the digest behind the @len bytes of @msg, which go with @imm and @data_len bytes of @data.
 * Returns the length of message and digest. */
size_t rtrs_digest_seal(void *msg, size_t len, __be32 imm, const void *data, size_t data_len);
/* True if the digest behind the @len bytes of @msg is the digest of what came: @imm, @msg and
 * @data.  Fills @pair. */
bool rtrs_digest_fits(const void *msg, size_t len, __be32 imm, const void *data, size_t data_len,
		      struct rtrs_digest_pair *pair);

/* ---- the header ---- */

/* Room for the largest user message we send or take (RNBD's OPEN, 264), the RTRS header and a
 * digest. */
#define RTRS_USR_MAX 512
#define RTRS_HDR_MAX                                                                        \
	(RTRS_USR_MAX + sizeof(struct rtrs_msg_rdma_read) + sizeof(struct rtrs_sg_desc) +   \
	 RTRS_DIGEST_LEN)

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

/* ---- chains of work requests ----
 *
 * These functions fill, callers post.  A unit test asserts on the chain for every row of
 * doc/protocol.md 3.4. */

/* A request, client to server: RDMA_WRITE_WITH_IMM of [data] user message, header. */
struct rtrs_wr_req {
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
};

/* Fill @w with a request.  @data: source of a WRITE's data, NULL for a READ or a WRITE without data
 * (a zero-length SGE must not be sent, doc/protocol.md 10).  @hdr: the memory of user message and
 * RTRS header, sent inline if @data is NULL.  @wr_id as fab_cqe; signaled if @signaled.  next is
 * NULL. */
void rtrs_wr_request(struct rtrs_wr_req *w, uint64_t wr_id, bool signaled,
		     const struct rtrs_geom *g, uint32_t buf_id, const struct rtrs_rbuf *chunk,
		     const struct rtrs_req *req, const struct ibv_sge *data,
		     const struct ibv_sge *hdr);

/* An answer, server to client: at most RDMA_WRITE, SEND_WITH_INV and the final immediate.  The
 * requests that re-arm the chunk's key stand in between (doc/protocol.md 4). */
struct rtrs_wr_rsp {
	struct ibv_send_wr wr[3];
	struct ibv_sge sge[2];
	unsigned n;			/* used entries of wr[], chained by next */
};

struct rtrs_rsp {
	uint32_t msg_id;
	int status;			/* 0 or negative errno */
	bool new_rkey;			/* the session announced NEW_RKEY (doc/traps.md 9) */
	bool digest;			/* the request came with a digest */
	const struct rtrs_req *req;	/* dir, need_inval, has_desc, desc */
	struct ibv_sge data;		/* READ with status 0; length == desc.len */
	struct ibv_sge rkey_rsp;	/* new_rkey: an encoded rtrs_msg_rkey_rsp; digest: an
					 * rtrs_msg_rsp.  Goes inline */
	struct ibv_send_wr *rearm;	/* new_rkey: chain between data and answer; NULL: posted
					 * by other means (type-1 ibv_bind_mw) */
};

/* The immediate of the answer @rsp. */
__be32 rtrs_rsp_imm(const struct rtrs_rsp *rsp);
/* Fill @w with the answer @rsp.  Returns the head of the chain, ready to post and not signaled;
 * next of the last is NULL. */
struct ibv_send_wr *rtrs_wr_response(struct rtrs_wr_rsp *w, uint64_t wr_id,
				     const struct rtrs_rsp *rsp);

/* Fill @wr with a zero-length RDMA_WRITE_WITH_IMM, type HB_MSG or HB_ACK (doc/protocol.md 5). */
void rtrs_wr_heartbeat(struct ibv_send_wr *wr, uint64_t wr_id, enum rtrs_imm_type type);

#endif
