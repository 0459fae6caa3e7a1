/* SPDX-License-Identifier: BSD-3-Clause */
/* Work request chains of the IO path.  These functions fill, callers post.  Pure; a unit test
 * asserts on the chain for every row of doc/protocol.md 3.4. */
#ifndef RTRS_WR_H
#define RTRS_WR_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "rtrs-msg.h"
#include "rtrs-req.h"

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
	const struct rtrs_req *req;	/* dir, need_inval, has_desc, desc */
	struct ibv_sge data;		/* READ with status 0; length == desc.len */
	struct ibv_sge rkey_rsp;	/* new_rkey: an encoded rtrs_msg_rkey_rsp, which goes
					 * inline */
	struct ibv_send_wr *rearm;	/* new_rkey: chain between data and answer; NULL: posted
					 * by other means (type-1 ibv_bind_mw) */
};

/* Fill @w with the answer @rsp.  Returns the head of the chain, ready to post and not signaled;
 * next of the last is NULL. */
struct ibv_send_wr *rtrs_wr_response(struct rtrs_wr_rsp *w, uint64_t wr_id,
				     const struct rtrs_rsp *rsp);

/* Fill @wr with a zero-length RDMA_WRITE_WITH_IMM, type HB_MSG or HB_ACK (doc/protocol.md 5). */
void rtrs_wr_heartbeat(struct ibv_send_wr *wr, uint64_t wr_id, enum rtrs_imm_type type);

#endif
