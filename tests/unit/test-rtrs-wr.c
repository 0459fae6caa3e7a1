/* SPDX-License-Identifier: BSD-3-Clause */
/* Work request chains: every cell of doc/protocol.md 3.4 and their order. */
#include "unit.h"

#include "rtrs-imm.h"
#include "rtrs-req.h"

#define WR_ID 0x1122334455667788ull
#define CLIENT_ADDR 0x10000ull
#define CLIENT_KEY 0xabcdu
#define CHUNK_ADDR 0x7f0000200000ull

static char rkey_rsp_buf[8];

static const char *op_name(const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE: return "WRITE";
	case IBV_WR_SEND_WITH_INV: return "INV";
	case IBV_WR_RDMA_WRITE_WITH_IMM: return "WRITE_IMM";
	case IBV_WR_SEND_WITH_IMM: return "SEND_IMM";
	case IBV_WR_BIND_MW: return "REG";
	case IBV_WR_LOCAL_INV: return "LINV";
	default: return "?";
	}
}

/* "WRITE INV WRITE_IMM" */
static void chain_text(const struct ibv_send_wr *wr, char *buf, size_t len)
{
	size_t n = 0;

	buf[0] = '\0';
	for (; wr && n < len; wr = wr->next)
		n += (size_t)snprintf(buf + n, len - n, "%s%s", n ? " " : "", op_name(wr));
}

static const struct ibv_send_wr *chain_last(const struct ibv_send_wr *wr)
{
	while (wr->next)
		wr = wr->next;
	return wr;
}

static const struct rtrs_req read_req = { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32,
	.has_desc = true, .desc = { CLIENT_ADDR, CLIENT_KEY, 4096 } };
static const struct rtrs_req read_inv_req = { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32,
	.has_desc = true, .need_inval = true, .desc = { CLIENT_ADDR, CLIENT_KEY, 4096 } };
static const struct rtrs_req write_req = { .dir = RTRS_DIR_WRITE, .data_len = 4096, .usr_len = 32 };
static const struct rtrs_req flush_req = { .dir = RTRS_DIR_READ, .usr_len = 32 };
/* The flag without a descriptor names no key: as if it were clear. */
static const struct rtrs_req flush_inv_req = { .dir = RTRS_DIR_READ, .usr_len = 32,
	.need_inval = true };

enum rearm { NO_RKEY, REARM_NONE, REARM_ONE, REARM_TWO };

static const struct cell {
	const char *name;
	const struct rtrs_req *req;
	int status;
	enum rearm rearm;
	const char *chain;
	uint32_t imm;
} cells[] = {
	{ "READ ok, N, clear", &read_req, 0, NO_RKEY, "WRITE WRITE_IMM", 0x10000005 },
	{ "READ ok, N, set", &read_inv_req, 0, NO_RKEY, "WRITE INV WRITE_IMM", 0x20000005 },
	{ "READ ok, Y, clear", &read_req, 0, REARM_ONE, "WRITE REG SEND_IMM", 0x10000005 },
	{ "READ ok, Y, set", &read_inv_req, 0, REARM_ONE, "WRITE REG INV SEND_IMM", 0x20000005 },

	{ "READ failed, N, clear", &read_req, -EIO, NO_RKEY, "WRITE_IMM", 0x10280005 },
	{ "READ failed, N, set", &read_inv_req, -EIO, NO_RKEY, "INV WRITE_IMM", 0x20280005 },
	{ "READ failed, Y, clear", &read_req, -EIO, REARM_ONE, "REG SEND_IMM", 0x10280005 },
	{ "READ failed, Y, set", &read_inv_req, -EIO, REARM_ONE, "INV REG SEND_IMM", 0x20280005 },

	{ "WRITE ok, N", &write_req, 0, NO_RKEY, "WRITE_IMM", 0x10000005 },
	{ "WRITE failed, N", &write_req, -ENOTCONN, NO_RKEY, "WRITE_IMM", 0x13580005 },
	{ "WRITE ok, Y", &write_req, 0, REARM_ONE, "REG SEND_IMM", 0x10000005 },
	{ "WRITE failed, Y", &write_req, -EIO, REARM_ONE, "REG SEND_IMM", 0x10280005 },

	{ "READ sg 0 ok, N", &flush_req, 0, NO_RKEY, "WRITE_IMM", 0x10000005 },
	{ "READ sg 0 failed, N", &flush_req, -EIO, NO_RKEY, "WRITE_IMM", 0x10280005 },
	{ "READ sg 0 ok, Y", &flush_req, 0, REARM_ONE, "REG SEND_IMM", 0x10000005 },
	{ "READ sg 0 failed, Y", &flush_req, -EIO, REARM_ONE, "REG SEND_IMM", 0x10280005 },
	{ "READ sg 0, N, set", &flush_inv_req, 0, NO_RKEY, "WRITE_IMM", 0x10000005 },
	{ "READ sg 0, Y, set", &flush_inv_req, 0, REARM_ONE, "REG SEND_IMM", 0x10000005 },

	/* the key was re-armed by other means, or by more than one request */
	{ "READ ok, Y, set, no chain", &read_inv_req, 0, REARM_NONE, "WRITE INV SEND_IMM",
	  0x20000005 },
	{ "READ failed, Y, set, no chain", &read_inv_req, -EIO, REARM_NONE, "INV SEND_IMM",
	  0x20280005 },
	{ "WRITE, Y, no chain", &write_req, 0, REARM_NONE, "SEND_IMM", 0x10000005 },
	{ "READ ok, Y, set, chain of 2", &read_inv_req, 0, REARM_TWO,
	  "WRITE LINV REG INV SEND_IMM", 0x20000005 },
	{ "READ failed, Y, set, chain of 2", &read_inv_req, -EIO, REARM_TWO,
	  "INV LINV REG SEND_IMM", 0x20280005 },
	{ "WRITE, Y, chain of 2", &write_req, 0, REARM_TWO, "LINV REG SEND_IMM", 0x10000005 },
};

static void check_each(const struct cell *c, const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		bool last = !wr->next;

		if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV)
			continue;
		cr_assert_eq(wr->wr_id, WR_ID, "%s: %s", c->name, op_name(wr));
		/* The new key goes inline; data and what has no bytes do not. */
		cr_assert_eq(wr->send_flags,
			     last && wr->num_sge ? IBV_SEND_INLINE : 0,
			     "%s: %s", c->name, op_name(wr));
		if (wr->opcode == IBV_WR_RDMA_WRITE) {
			cr_assert_eq(wr->num_sge, 1, "%s", c->name);
			cr_assert_eq(wr->sg_list->addr, CHUNK_ADDR, "%s", c->name);
			cr_assert_eq(wr->sg_list->length, 4096, "%s", c->name);
			cr_assert_eq(wr->wr.rdma.remote_addr, CLIENT_ADDR, "%s", c->name);
			cr_assert_eq(wr->wr.rdma.rkey, CLIENT_KEY, "%s", c->name);
		} else if (wr->opcode == IBV_WR_SEND_WITH_INV) {
			cr_assert_eq(wr->invalidate_rkey, CLIENT_KEY, "%s", c->name);
			cr_assert_eq(wr->num_sge, 0, "%s", c->name);
		} else if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
			cr_assert_eq(wr->num_sge, 1, "%s", c->name);
			cr_assert_eq(wr->sg_list->addr, (uintptr_t)rkey_rsp_buf, "%s", c->name);
			cr_assert_eq(wr->sg_list->length, 8, "%s", c->name);
		} else {
			cr_assert_eq(wr->num_sge, 0, "%s", c->name);
			cr_assert_eq(wr->wr.rdma.remote_addr, 0, "%s", c->name);
			cr_assert_eq(wr->wr.rdma.rkey, 0, "%s", c->name);
		}
	}
}

Test(rtrs_wr, p07_p08_p09_response_every_cell)
{
	for_each_case(c, cells) {
		struct ibv_send_wr rearm[2] = { { .opcode = IBV_WR_LOCAL_INV },
						{ .opcode = IBV_WR_BIND_MW } };
		struct rtrs_rsp rsp = { .msg_id = 5, .status = c->status, .req = c->req,
			.data = { CHUNK_ADDR, 4096, 1 },
			.new_rkey = c->rearm != NO_RKEY,
			.rkey_rsp = { (uintptr_t)rkey_rsp_buf, 8, 2 } };
		struct ibv_send_wr *head;
		struct rtrs_wr_rsp w;
		char text[128];

		rearm[0].next = &rearm[1];
		if (c->rearm == REARM_ONE)
			rsp.rearm = &rearm[1];
		else if (c->rearm == REARM_TWO)
			rsp.rearm = &rearm[0];
		memset(&w, 0xa5, sizeof(w));
		head = rtrs_wr_response(&w, WR_ID, &rsp);
		chain_text(head, text, sizeof(text));
		cr_assert_str_eq(text, c->chain, "%s: \"%s\", expected \"%s\"", c->name, text,
				 c->chain);
		cr_assert_eq(be32toh(chain_last(head)->imm_data), c->imm, "%s", c->name);
		check_each(c, head);
	}
}

Test(rtrs_wr, response_rearm_ignored_without_new_rkey)
{
	struct ibv_send_wr rearm = { .opcode = IBV_WR_BIND_MW };
	struct rtrs_rsp rsp = { .msg_id = 0x7ffff, .req = &write_req, .rearm = &rearm };
	struct rtrs_wr_rsp w;
	struct ibv_send_wr *head = rtrs_wr_response(&w, WR_ID, &rsp);

	cr_assert_null(head->next);
	cr_assert_eq(w.n, 1);
	cr_assert_eq(head->send_flags, 0);
	cr_assert_eq(head->opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	cr_assert_eq(be32toh(head->imm_data), 0x1007ffff);
}

/* With a digest each answer has a message, with and without keys. */
Test(rtrs_wr, response_with_digest)
{
	struct rtrs_msg_rsp msg;

	for (unsigned keys = 0; keys < 2; keys++) {
		struct rtrs_rsp rsp = { .msg_id = 5, .req = &write_req, .new_rkey = keys,
					.digest = true,
					.rkey_rsp = { (uintptr_t)&msg, sizeof(msg), 2 } };
		struct rtrs_wr_rsp w;
		struct ibv_send_wr *head = rtrs_wr_response(&w, WR_ID, &rsp);

		cr_assert_null(head->next);
		cr_assert_eq(head->opcode, IBV_WR_SEND_WITH_IMM);
		cr_assert_eq(head->send_flags, IBV_SEND_INLINE);
		cr_assert_eq(head->sg_list->length, 12);
		cr_assert_eq(be32toh(head->imm_data), 0x10000005);
		cr_assert_eq(rtrs_rsp_imm(&rsp), head->imm_data);
	}
}

static const struct request_case {
	const char *name;
	struct rtrs_req req;
	uint32_t buf_id, data_len;	/* data_len 0: no data SGE */
	uint64_t remote_addr;
	uint32_t imm;
	int num_sge;
} requests[] = {
	{ "WRITE 4096", { .dir = RTRS_DIR_WRITE, .data_len = 4096, .usr_len = 32 }, 5, 4096,
	  CHUNK_ADDR, 0x00281020, 2 },
	{ "READ 4096", { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32, .has_desc = true },
	  5, 0, CHUNK_ADDR + 4096, 0x00281020, 1 },
	{ "FLUSH", { .dir = RTRS_DIR_READ, .usr_len = 32 }, 5, 0, CHUNK_ADDR, 0x00280020, 1 },
	{ "SESS_INFO", { .dir = RTRS_DIR_READ, .data_len = 36, .usr_len = 36, .has_desc = true }, 7,
	  0, CHUNK_ADDR + 36, 0x00380048, 1 },
	{ "OPEN", { .dir = RTRS_DIR_READ, .data_len = 56, .usr_len = 264, .has_desc = true }, 7, 0,
	  CHUNK_ADDR + 56, 0x00380140, 1 },
	{ "CLOSE", { .dir = RTRS_DIR_WRITE, .usr_len = 8 }, 9, 0, CHUNK_ADDR, 0x00480008, 1 },
};

Test(rtrs_wr, request)
{
	const struct rtrs_rbuf chunk = { CHUNK_ADDR, 0x1234 };
	struct rtrs_geom g;

	cr_assert_eq(rtrs_geom_init(&g, 512, 126976, 4096), 0);
	for_each_case(c, requests) {
		struct ibv_sge data = { 0x5000, c->data_len, 7 }, hdr = { 0x9000, 36, 8 };
		struct rtrs_wr_req w;

		memset(&w, 0xa5, sizeof(w));
		rtrs_wr_request(&w, WR_ID, true, &g, c->buf_id, &chunk, &c->req,
				c->data_len ? &data : NULL, &hdr);
		cr_assert_null(w.wr.next, "%s", c->name);
		cr_assert_eq(w.wr.wr_id, WR_ID, "%s", c->name);
		cr_assert_eq(w.wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM, "%s", c->name);
		cr_assert_eq(w.wr.send_flags,
			     IBV_SEND_SIGNALED | (c->data_len ? 0 : IBV_SEND_INLINE), "%s",
			     c->name);
		cr_assert_eq(be32toh(w.wr.imm_data), c->imm, "%s", c->name);
		cr_assert_eq(w.wr.wr.rdma.remote_addr, c->remote_addr, "%s", c->name);
		cr_assert_eq(w.wr.wr.rdma.rkey, 0x1234, "%s", c->name);
		cr_assert_eq(w.wr.num_sge, c->num_sge, "%s", c->name);
		cr_assert_eq(w.wr.sg_list[c->num_sge - 1].addr, 0x9000, "%s", c->name);
		if (c->data_len)
			cr_assert_eq(w.wr.sg_list[0].addr, 0x5000, "%s", c->name);
	}
}

Test(rtrs_wr, request_unsignaled)
{
	const struct rtrs_rbuf chunk = { CHUNK_ADDR, 0x1234 };
	struct ibv_sge hdr = { 0x9000, 36, 8 };
	struct rtrs_wr_req w;
	struct rtrs_geom g;

	cr_assert_eq(rtrs_geom_init(&g, 512, 126976, 4096), 0);
	rtrs_wr_request(&w, WR_ID, false, &g, 0, &chunk, &flush_req, NULL, &hdr);
	cr_assert_eq(w.wr.send_flags, IBV_SEND_INLINE);
}

Test(rtrs_wr, heartbeat)
{
	static const struct {
		enum rtrs_imm_type type;
		uint32_t imm;
	} table[] = { { RTRS_HB_MSG_IMM, 0x80000000 }, { RTRS_HB_ACK_IMM, 0x90000000 } };

	for_each_case(c, table) {
		struct ibv_send_wr wr;

		memset(&wr, 0xa5, sizeof(wr));
		rtrs_wr_heartbeat(&wr, WR_ID, c->type);
		cr_assert_eq(wr.wr_id, WR_ID);
		cr_assert_eq(wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
		cr_assert_eq(wr.num_sge, 0);
		cr_assert_eq(wr.send_flags, 0);
		cr_assert_null(wr.next);
		cr_assert_eq(be32toh(wr.imm_data), c->imm);
	}
}
