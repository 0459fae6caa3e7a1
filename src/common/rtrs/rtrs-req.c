/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a request in its chunk.  Owns nothing; runs on the caller's thread; a decoder fails
 * with -EINVAL and the broken rule in words: the caller then closes the path.
 *
 * RACE: without key revocation the client may rewrite the chunk at any moment.  So
 * rtrs_req_extent() reads the chunk only for the length to copy, each byte once; rtrs_req_decode()
 * checks all again on the copy. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include "rtrs-imm.h"
#include "rtrs-req.h"

struct req_shape {
	uint16_t type, usr_len, flags, sg_cnt;
	uint32_t hdr_len;
};

static uint16_t read_once16(const volatile uint8_t *p)
{
	uint16_t low = p[0];

	return (uint16_t)(low | p[1] << 8);
}

static size_t desc_len(unsigned sg_cnt)
{
	return sg_cnt * sizeof(struct rtrs_sg_desc);
}

/* Read and check the fixed header at @p, where @room bytes may be read.  Returns NULL or the broken
 * rule. */
static const char *shape_read(const struct rtrs_geom *g, const uint8_t *p, uint32_t room,
			      uint32_t off, uint32_t byte_len, struct req_shape *s)
{
	uint64_t wrote;

	*s = (struct req_shape){ .hdr_len = sizeof(struct rtrs_msg_rdma_write) };
	if (room < sizeof(struct rtrs_msg_rdma_write))
		return "request header runs past its chunk";
	s->type = read_once16(p + offsetof(struct rtrs_msg_rdma_read, type));
	s->usr_len = read_once16(p + offsetof(struct rtrs_msg_rdma_read, usr_len));
	if (s->type != RTRS_MSG_WRITE && s->type != RTRS_MSG_READ)
		return "unknown type of request";
	if (s->usr_len > off)
		return "user message longer than its offset";
	if (s->usr_len > RTRS_USR_MAX)
		return "user message longer than any we know";
	if (off - s->usr_len > g->max_io_size)
		return "more data than max_io_size";

	wrote = (uint64_t)off + s->hdr_len;
	if (s->type == RTRS_MSG_READ) {
		s->hdr_len = sizeof(struct rtrs_msg_rdma_read);
		if (room < s->hdr_len)
			return "request header runs past its chunk";
		s->flags = read_once16(p + offsetof(struct rtrs_msg_rdma_read, flags));
		s->sg_cnt = read_once16(p + offsetof(struct rtrs_msg_rdma_read, sg_cnt));
		if (s->sg_cnt > 1)
			return "READ with more than one descriptor";
		s->hdr_len += (uint32_t)desc_len(s->sg_cnt);
		if (room < s->hdr_len)
			return "descriptor runs past its chunk";
		wrote = s->usr_len + s->hdr_len;
	}
	return wrote == byte_len ? NULL : "length written does not fit the request";
}

size_t rtrs_req_encode(const struct rtrs_req *req, uint8_t *buf)
{
	struct rtrs_msg_rdma_write *w = (void *)(buf + req->usr_len);
	struct rtrs_msg_rdma_read *r = (void *)(buf + req->usr_len);

	assert(req->usr_len <= RTRS_USR_MAX);
	if (req->dir == RTRS_DIR_WRITE) {
		w->type = le16_put(RTRS_MSG_WRITE);
		w->usr_len = le16_put(req->usr_len);
		return req->usr_len + sizeof(*w);
	}
	r->type = le16_put(RTRS_MSG_READ);
	r->usr_len = le16_put(req->usr_len);
	r->flags = le16_put(req->has_desc && req->need_inval ? RTRS_MSG_NEED_INVAL_F : 0);
	r->sg_cnt = le16_put(req->has_desc);
	if (req->has_desc) {
		r->desc[0].addr = le64_put(req->desc.addr);
		r->desc[0].key = le32_put(req->desc.key);
		r->desc[0].len = le32_put(req->desc.len);
	}
	return req->usr_len + sizeof(*r) + desc_len(req->has_desc);
}

int rtrs_req_extent(const struct rtrs_geom *g, const uint8_t *chunk, uint32_t off,
		    uint32_t byte_len, uint32_t *start, uint32_t *len, const char **why)
{
	struct req_shape s;

	if (off >= g->chunk_size) {
		*why = "offset past the chunk";
		return -EINVAL;
	}
	*why = shape_read(g, chunk + off, g->chunk_size - off, off, byte_len, &s);
	if (*why)
		return -EINVAL;
	*start = off - s.usr_len;
	*len = s.usr_len + s.hdr_len;
	return 0;
}

/* Check the rules that need the descriptor.  Returns NULL or the broken rule. */
static const char *desc_check(const struct rtrs_req *req)
{
	if (!req->has_desc)
		return req->data_len ? "READ of data without a descriptor" : NULL;
	if (!req->data_len)
		return "READ with a descriptor and no data";
	return req->desc.len == req->data_len ? NULL : "descriptor of another length than the data";
}

int rtrs_req_decode(const struct rtrs_geom *g, const uint8_t *copy, uint32_t start, uint32_t len,
		    uint32_t off, uint32_t byte_len, struct rtrs_req *req, const char **why)
{
	const struct rtrs_msg_rdma_read *r;
	struct req_shape s;

	assert(start <= off && off - start <= len);
	*why = shape_read(g, copy + (off - start), len - (off - start), off, byte_len, &s);
	if (*why)
		return -EINVAL;
	if (s.usr_len != off - start || s.usr_len + s.hdr_len != len) {
		*why = "request header changed while it was read";
		return -EINVAL;
	}

	*req = (struct rtrs_req){
		.dir = s.type == RTRS_MSG_READ ? RTRS_DIR_READ : RTRS_DIR_WRITE,
		.data_len = off - s.usr_len,
		.usr_len = s.usr_len,
		.usr = copy,
	};
	if (req->dir == RTRS_DIR_WRITE)
		return 0;
	r = (const void *)(copy + s.usr_len);
	if (s.sg_cnt) {
		req->has_desc = true;
		req->need_inval = s.flags & RTRS_MSG_NEED_INVAL_F;
		req->desc.addr = le64_get(r->desc[0].addr);
		req->desc.key = le32_get(r->desc[0].key);
		req->desc.len = le32_get(r->desc[0].len);
	}
	*why = desc_check(req);
	return *why ? -EINVAL : 0;
}

/* ---- chains of work requests: structs of the caller, which the caller posts ---- */

/* Begin @wr: the fields that a request or an answer may have.  The others are of opcodes that come
 * with their own requests, and nobody reads them here. */
static void wr_begin(struct ibv_send_wr *wr, uint64_t wr_id, enum ibv_wr_opcode op)
{
	wr->wr_id = wr_id;
	wr->next = NULL;
	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->opcode = op;
	wr->send_flags = 0;
	wr->imm_data = 0;
	wr->wr.rdma.remote_addr = 0;
	wr->wr.rdma.rkey = 0;
}

void rtrs_wr_request(struct rtrs_wr_req *w, uint64_t wr_id, bool signaled,
		     const struct rtrs_geom *g, uint32_t buf_id, const struct rtrs_rbuf *chunk,
		     const struct rtrs_req *req, const struct ibv_sge *data,
		     const struct ibv_sge *hdr)
{
	bool is_write = req->dir == RTRS_DIR_WRITE;
	int n = 0;

	assert(data ? is_write && data->length && data->length == req->data_len :
		      !is_write || !req->data_len);
	if (data)
		w->sge[n++] = *data;
	w->sge[n++] = *hdr;
	wr_begin(&w->wr, wr_id, IBV_WR_RDMA_WRITE_WITH_IMM);
	w->wr.sg_list = w->sge;
	w->wr.num_sge = n;
	/* A request without data is small, so its messages are sent inline. */
	w->wr.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) | (data ? 0 : IBV_SEND_INLINE);
	w->wr.imm_data = rtrs_imm_io_req(g, buf_id, req->data_len + req->usr_len);
	/* a READ leaves its result area alone */
	w->wr.wr.rdma.remote_addr = chunk->addr + (is_write ? 0 : req->data_len);
	w->wr.wr.rdma.rkey = chunk->rkey;
}

/* A chain under construction: the head, and the place of the next link. */
struct chain {
	struct ibv_send_wr *head, **tail;
};

static void chain_add(struct chain *c, struct ibv_send_wr *wr)
{
	*c->tail = wr;
	while (wr->next)
		wr = wr->next;
	c->tail = &wr->next;
}

static struct ibv_send_wr *rsp_next(struct rtrs_wr_rsp *w, uint64_t wr_id, enum ibv_wr_opcode op)
{
	struct ibv_send_wr *wr = &w->wr[w->n++];

	wr_begin(wr, wr_id, op);
	return wr;
}

static struct ibv_send_wr *rsp_data(struct rtrs_wr_rsp *w, uint64_t wr_id,
				    const struct rtrs_rsp *rsp)
{
	struct ibv_send_wr *wr = rsp_next(w, wr_id, IBV_WR_RDMA_WRITE);

	assert(rsp->data.length && rsp->data.length == rsp->req->desc.len);
	w->sge[0] = rsp->data;
	wr->sg_list = &w->sge[0];
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = rsp->req->desc.addr;
	wr->wr.rdma.rkey = rsp->req->desc.key;
	return wr;
}

static struct ibv_send_wr *rsp_inval(struct rtrs_wr_rsp *w, uint64_t wr_id,
				     const struct rtrs_rsp *rsp)
{
	struct ibv_send_wr *wr = rsp_next(w, wr_id, IBV_WR_SEND_WITH_INV);

	wr->invalidate_rkey = rsp->req->desc.key;
	return wr;
}

static bool rsp_has_desc(const struct rtrs_rsp *rsp)
{
	return rsp->req->dir == RTRS_DIR_READ && rsp->req->has_desc;
}

static bool rsp_invalidates(const struct rtrs_rsp *rsp)
{
	return rsp_has_desc(rsp) && rsp->req->need_inval;
}

__be32 rtrs_rsp_imm(const struct rtrs_rsp *rsp)
{
	return rtrs_imm_io_rsp(rsp->msg_id, rsp->status, rsp_invalidates(rsp));
}

static struct ibv_send_wr *rsp_imm(struct rtrs_wr_rsp *w, uint64_t wr_id,
				   const struct rtrs_rsp *rsp)
{
	struct ibv_send_wr *wr = rsp_next(w, wr_id, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (rsp->new_rkey || rsp->digest) {
		assert(rsp->rkey_rsp.length == (rsp->digest ? sizeof(struct rtrs_msg_rsp) :
						sizeof(struct rtrs_msg_rkey_rsp)));
		wr->opcode = IBV_WR_SEND_WITH_IMM;
		w->sge[1] = rsp->rkey_rsp;
		wr->sg_list = &w->sge[1];
		wr->num_sge = 1;
	}
	wr->imm_data = rtrs_rsp_imm(rsp);
	wr->send_flags = wr->num_sge ? IBV_SEND_INLINE : 0;
	return wr;
}

struct ibv_send_wr *rtrs_wr_response(struct rtrs_wr_rsp *w, uint64_t wr_id,
				     const struct rtrs_rsp *rsp)
{
	bool inval = rsp_invalidates(rsp);
	bool data = rsp_has_desc(rsp) && !rsp->status;
	struct ibv_send_wr *rearm = rsp->new_rkey ? rsp->rearm : NULL;
	struct chain c = { .tail = &c.head };

	/* ORDER: the rows of doc/protocol.md 3.4.  A key is re-armed behind the data that is read
	 * from its chunk; without data the client's own key is given back first. */
	w->n = 0;
	if (data)
		chain_add(&c, rsp_data(w, wr_id, rsp));
	if (rearm && data)
		chain_add(&c, rearm);
	if (inval)
		chain_add(&c, rsp_inval(w, wr_id, rsp));
	if (rearm && !data)
		chain_add(&c, rearm);
	chain_add(&c, rsp_imm(w, wr_id, rsp));
	return c.head;
}

void rtrs_wr_heartbeat(struct ibv_send_wr *wr, uint64_t wr_id, enum rtrs_imm_type type)
{
	assert(type == RTRS_HB_MSG_IMM || type == RTRS_HB_ACK_IMM);
	wr_begin(wr, wr_id, IBV_WR_RDMA_WRITE_WITH_IMM);
	wr->imm_data = rtrs_imm_pack(type, 0);
}

/* ---- digests: CRC-32C by ISA-L, which uses the instructions of the CPU ---- */

const char *const rtrs_digest_names[RTRS_DIGESTS] = {
	[RTRS_DIGEST_NONE] = "none", [RTRS_DIGEST_CRC32C] = "crc32c",
};

bool rtrs_digest_works(void)
{
#ifdef HAVE_ISAL
	return true;
#else
	return false;
#endif
}

/* @len is part of a message, so below FAB_MSG_MAX. */
static uint32_t crc_add(uint32_t crc, const void *data, size_t len)
{
#ifdef HAVE_ISAL
	return crc32_iscsi((unsigned char *)data, (int)len, crc);
#else
	assert(!"digests on a path of a build without digests");
	return crc;
#endif
}

static uint32_t crc_of(const void *msg, size_t len, __be32 imm, const void *data, size_t data_len)
{
	uint32_t crc = crc_add(crc_add(UINT32_MAX, &imm, sizeof(imm)), msg, len);

	return ~(data_len ? crc_add(crc, data, data_len) : crc);
}

size_t rtrs_digest_seal(void *msg, size_t len, __be32 imm, const void *data, size_t data_len)
{
	le32 digest = le32_put(crc_of(msg, len, imm, data, data_len));

	_Static_assert(sizeof(digest) == RTRS_DIGEST_LEN, "man/rtrs-protocol.pod");
	memcpy((uint8_t *)msg + len, &digest, sizeof(digest));
	return len + sizeof(digest);
}

bool rtrs_digest_fits(const void *msg, size_t len, __be32 imm, const void *data, size_t data_len,
		      struct rtrs_digest_pair *pair)
{
	le32 digest;

	memcpy(&digest, (const uint8_t *)msg + len, sizeof(digest));
	pair->found = le32_get(digest);
	pair->expected = crc_of(msg, len, imm, data, data_len);
	return pair->found == pair->expected;
}
