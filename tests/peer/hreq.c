/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests with any value in any field, and the valid ones of RNBD.  Owns nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hpath.h"
#include "rtrs-imm.h"

/* One field of the header in place of the right one. */
static void edit_header(const struct hedit *e, bool is_read, struct rtrs_msg_rdma_read *h)
{
	if (e->set & HSET_TYPE)
		h->type = le16_put(e->type);
	if (e->set & HSET_USR_LEN)
		h->usr_len = le16_put(e->usr_len);
	if (!is_read)
		return;
	if (e->set & HSET_SG_CNT)
		h->sg_cnt = le16_put(e->sg_cnt);
	if (e->set & HSET_FLAGS)
		h->flags = le16_put(e->flags);
	if (e->set & HSET_DESC_LEN)
		h->desc[0].len = le32_put(e->desc_len);
	if (e->set & HSET_DESC_KEY)
		h->desc[0].key = le32_put(e->desc_key);
	if (e->set & HSET_DESC_ADDR)
		h->desc[0].addr = le64_put(e->desc_addr);
}

/* User message and header into @buf, which has room for a descriptor whether it is sent or not. */
static size_t build_header(struct hpath *p, const struct hreq *r, uint8_t *buf)
{
	struct rtrs_req req = {
		.dir = r->is_read ? RTRS_DIR_READ : RTRS_DIR_WRITE,
		.data_len = r->data_len,
		.usr_len = (uint16_t)r->usr_len,
		.need_inval = r->need_inval,
		.has_desc = r->is_read && r->data_len && !r->no_desc,
		.desc = { (uintptr_t)p->result + r->result_at, p->mr->rkey, r->data_len },
	};
	size_t len;

	if (r->usr_len)
		memcpy(buf, r->usr, r->usr_len);
	len = rtrs_req_encode(&req, buf);
	edit_header(&r->edit, r->is_read, (void *)(buf + r->usr_len));
	return len;
}

void hreq_fill(struct hwrite *w, struct hpath *p, const struct hreq *r)
{
	const struct hedit *e = &r->edit;
	uint32_t lead = r->is_read ? 0 : r->data_len;
	size_t room = MAX((size_t)lead + RTRS_HDR_MAX + 64, (size_t)e->write_len), len;
	uint32_t type = e->set & HSET_IMM_TYPE ? e->imm_type : RTRS_IO_REQ_IMM;
	uint32_t buf_id = e->set & HSET_BUF_ID ? e->buf_id : r->buf_id;
	uint32_t off = e->set & HSET_OFF ? e->off : r->data_len + r->usr_len;
	const struct rtrs_rbuf *chunk = &p->rbufs[r->buf_id];
	uint64_t addr = chunk->addr + (r->is_read ? r->data_len : 0);
	uint32_t rkey = chunk->rkey;
	uint8_t *bytes = calloc(1, room);

	expect(bytes && r->usr_len <= RTRS_USR_MAX);
	if (r->data)
		memcpy(bytes, r->data, lead);
	else
		memset(bytes, 0x5a, lead);
	len = lead + build_header(p, r, bytes + lead);
	if (e->set & HSET_WRITE_LEN)
		len = e->write_len;
	if (e->set & HSET_ADDR)
		addr += e->addr;
	if (e->set & HSET_RKEY)
		rkey ^= e->rkey;
	hwrite_fill(w, p, r->cid, bytes, len, addr, rkey, true,
		    type << RTRS_IMM_PAYL_BITS |
			    ((buf_id << p->geom.off_bits | off) & RTRS_IMM_PAYL_MASK));
	free(bytes);
	p->answers[r->buf_id].posted++;
}

void hreq_post(struct hpath *p, const struct hreq *r)
{
	struct hwrite w;

	hreq_fill(&w, p, r);
	fab_post_send(p->cons[r->cid].conn, &w.wr);
}

int hreq_do(struct hpath *p, const struct hreq *r)
{
	hreq_post(p, r);
	return hpath_wait_answer(p, r->buf_id);
}

/* ---- what a good client says ---- */

int hpath_sess_info(struct hpath *p)
{
	const struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR };
	struct rnbd_sess_info got;
	struct rnbd_msg_sess_info m;
	struct hreq r = { .is_read = true, .data_len = sizeof(m), .usr = &m, .usr_len = sizeof(m) };
	int status;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &info);
	status = hreq_do(p, &r);
	if (!status) {
		expect(!rnbd_sess_info_decode(p->result, sizeof(m), &got));
		expect(got.ver == RNBD_PROTO_VER_MAJOR && !got.ext.valid);
	}
	return status;
}

int hpath_open(struct hpath *p, const char *export_name, enum rnbd_access_mode mode)
{
	struct rnbd_msg_open m;
	struct hreq r = { .is_read = true, .data_len = sizeof(struct rnbd_msg_open_rsp), .usr = &m,
			  .usr_len = sizeof(m) };
	int status;

	expect(!rnbd_open_encode(&m, export_name, mode));
	status = hreq_do(p, &r);
	if (!status)
		expect(!rnbd_open_rsp_decode(p->result, r.data_len, &p->dev));
	return status;
}

int hpath_io(struct hpath *p, unsigned cid, uint32_t buf_id, const struct rnbd_io *io,
	     const void *data)
{
	bool has_data = io->op == RNBD_OP_READ || io->op == RNBD_OP_WRITE;
	struct rnbd_msg_io m;
	struct hreq r = {
		.cid = cid,
		.buf_id = buf_id,
		.is_read = io->op == RNBD_OP_READ || io->op == RNBD_OP_FLUSH,
		.data_len = has_data ? io->bi_size : 0,
		.usr = &m,
		.usr_len = sizeof(m),
		.data = data,
	};

	rnbd_io_encode(&m, io);
	return hreq_do(p, &r);
}
