/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are wrong on the level of RTRS (doc/protocol.md 3.1 to 3.3).  Each costs the path;
 * the valid rows show that the others fail for what is wrong in them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hostile.h"
#include "rtrs-imm.h"

#define DEPTH 100u			/* of the server under test: no power of two */
#define CHUNK_ID 3u

enum base { READ, WRITE, FLUSH };

static const struct req_row {
	const char *name;
	enum base base;
	struct hedit edit;
	int want;
	uint32_t data_len;		/* 0: 4096 */
	uint32_t buf_id;		/* 0: CHUNK_ID */
	bool on_con0, no_desc, need_inval;
} req_rows[] = {
	{ "valid READ", READ, { 0 }, 0 },
	{ "valid WRITE", WRITE, { 0 }, 0 },
	{ "valid FLUSH", FLUSH, { 0 }, 0 },
	{ "valid READ on connection 0", READ, { 0 }, 0, .on_con0 = true },
	{ "unknown flags in READ", READ, { HSET_FLAGS, .flags = 0xfffe }, 0 },
	{ "NEED_INVAL without descriptor", FLUSH, { HSET_FLAGS, .flags = 1 }, 0 },

	{ "immediate IO_RSP", READ, { HSET_IMM_TYPE, .imm_type = 1 }, HCLOSED },
	{ "immediate IO_RSP_W_INV", READ, { HSET_IMM_TYPE, .imm_type = 2 }, HCLOSED },
	{ "immediate type 3", READ, { HSET_IMM_TYPE, .imm_type = 3 }, HCLOSED },
	{ "immediate type 7", WRITE, { HSET_IMM_TYPE, .imm_type = 7 }, HCLOSED },
	{ "immediate type 10", READ, { HSET_IMM_TYPE, .imm_type = 10 }, HCLOSED },
	{ "immediate type 15", WRITE, { HSET_IMM_TYPE, .imm_type = 15 }, HCLOSED },
	{ "chunk = depth", READ, { HSET_BUF_ID, .buf_id = DEPTH }, HCLOSED },
	{ "chunk max", WRITE, { HSET_BUF_ID, .buf_id = 127 }, HCLOSED },
	{ "another chunk than written", READ, { HSET_BUF_ID, .buf_id = CHUNK_ID + 1 }, HCLOSED },
	{ "off = chunk size", READ, { HSET_OFF, .off = 131072 + 4096 }, HCLOSED },
	{ "off max", WRITE, { HSET_OFF, .off = (1 << 21) - 1 }, HCLOSED },
	{ "off 0", WRITE, { HSET_OFF, .off = 0 }, HCLOSED },
	{ "off + 1", READ, { HSET_OFF, .off = 4096 + 33 }, HCLOSED },
	{ "3 bytes for the header", WRITE, { HSET_OFF, .off = 131072 + 4096 - 3 }, HCLOSED },

	{ "type 0", READ, { HSET_TYPE, .type = 0 }, HCLOSED },
	{ "type 1", WRITE, { HSET_TYPE, .type = 1 }, HCLOSED },
	{ "type RKEY_RSP", READ, { HSET_TYPE, .type = 4 }, HCLOSED },
	{ "type max", WRITE, { HSET_TYPE, .type = 0xffff }, HCLOSED },
	{ "WRITE called READ", WRITE, { HSET_TYPE, .type = 3 }, HCLOSED },
	{ "READ called WRITE", READ, { HSET_TYPE, .type = 2 }, HCLOSED },
	{ "p14 usr_len off + 1", FLUSH, { HSET_USR_LEN, .usr_len = 33 }, HCLOSED },
	{ "usr_len max", FLUSH, { HSET_USR_LEN, .usr_len = 0xffff }, HCLOSED },
	{ "usr_len 513", WRITE, { HSET_USR_LEN, .usr_len = 513 }, HCLOSED },
	{ "usr_len max with data", WRITE, { HSET_USR_LEN, .usr_len = 0xffff }, HCLOSED,
	  .data_len = 126976 },
	{ "usr_len 0 in READ", READ, { HSET_USR_LEN, .usr_len = 0 }, HCLOSED },
	{ "sg_cnt 0 with data", READ, { HSET_SG_CNT, .sg_cnt = 0 }, HCLOSED },
	{ "sg_cnt 0 with data, no descriptor", READ, { 0 }, HCLOSED, .no_desc = true },
	{ "p14 sg_cnt 2", READ, { HSET_SG_CNT, .sg_cnt = 2 }, HCLOSED },
	{ "p14 sg_cnt 2 with room", READ, { HSET_SG_CNT | HSET_WRITE_LEN, .sg_cnt = 2,
					.write_len = 32 + 8 + 32 }, HCLOSED },
	{ "sg_cnt max", READ, { HSET_SG_CNT, .sg_cnt = 0xffff }, HCLOSED },
	{ "sg_cnt 1 without data", FLUSH, { HSET_SG_CNT | HSET_WRITE_LEN, .sg_cnt = 1,
					    .write_len = 32 + 8 + 16 }, HCLOSED },
	{ "descriptor of 0 bytes", READ, { HSET_DESC_LEN, .desc_len = 0 }, HCLOSED },
	{ "p19 descriptor one short", READ, { HSET_DESC_LEN, .desc_len = 4095 }, HCLOSED },
	{ "p19 descriptor one long", READ, { HSET_DESC_LEN, .desc_len = 4097 }, HCLOSED },
	{ "descriptor of 4 GiB", READ, { HSET_DESC_LEN, .desc_len = UINT32_MAX }, HCLOSED },
	{ "descriptor with a bad key", READ, { HSET_DESC_KEY, .desc_key = 0xdead0000 }, HCLOSED },
	{ "p20 descriptor to nowhere", READ, { HSET_DESC_ADDR, .desc_addr = 4096 }, HCLOSED },
	{ "p20 descriptor that wraps", READ, { HSET_DESC_ADDR, .desc_addr = UINT64_MAX - 10 },
	  HCLOSED },
	{ "p13 NEED_INVAL for a key that is no window", READ, { 0 }, HCLOSED, .need_inval = true },

	{ "nothing written", READ, { HSET_WRITE_LEN, .write_len = 0 }, HCLOSED },
	{ "READ without its descriptor", READ, { HSET_WRITE_LEN, .write_len = 40 }, HCLOSED },
	{ "READ one byte long", READ, { HSET_WRITE_LEN, .write_len = 57 }, HCLOSED },
	{ "WRITE without its header", WRITE, { HSET_WRITE_LEN, .write_len = 4096 + 32 }, HCLOSED },
	{ "WRITE one byte short", WRITE, { HSET_WRITE_LEN, .write_len = 4096 + 35 }, HCLOSED },
	{ "WRITE one byte long", WRITE, { HSET_WRITE_LEN, .write_len = 4096 + 37 }, HCLOSED },
	{ "largest WRITE", WRITE, { 0 }, 0, .data_len = 131072 },
	{ "more than max_io_size", WRITE, { 0 }, HCLOSED, .data_len = 131072 + 512 },
	{ "READ of more than max_io_size", READ, { 0 }, HCLOSED, .data_len = 131072 + 512 },
	{ "into the next chunk", WRITE, { HSET_WRITE_LEN, .write_len = 200000 }, HCLOSED },
	{ "past the last chunk", WRITE, { HSET_WRITE_LEN, .write_len = 200000 }, HCLOSED,
	  .buf_id = DEPTH - 1 },
	{ "past the last chunk by one", WRITE, { HSET_WRITE_LEN, .write_len = 131072 + 4097 },
	  HCLOSED, .buf_id = DEPTH - 1 },
	{ "far past", WRITE, { HSET_ADDR, .addr = 1ull << 32 }, HCLOSED },
	{ "in front of the chunks", WRITE, { HSET_ADDR, .addr = 0 - (1ull << 30) }, HCLOSED },
	{ "address that wraps", WRITE, { HSET_ADDR, .addr = 1ull << 63 }, HCLOSED },
	{ "misplaced by 4", READ, { HSET_ADDR, .addr = 4 }, HCLOSED },
	{ "key of another generation", WRITE, { HSET_RKEY, .rkey = 1 }, HCLOSED },
	{ "key of another region", WRITE, { HSET_RKEY, .rkey = 0x100 }, HCLOSED },
	{ "key of a far region", WRITE, { HSET_RKEY, .rkey = 0xffff0000 }, HCLOSED },
};

static void req_run(const void *arg)
{
	const struct req_row *row = arg;
	struct rnbd_io io = { .op = row->base == READ ? RNBD_OP_READ :
				    row->base == WRITE ? RNBD_OP_WRITE : RNBD_OP_FLUSH };
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	unsigned before = hlog_count("path down: ");
	struct rnbd_msg_io m;
	struct hreq r = {
		.cid = row->on_con0 ? 0 : 1,
		.buf_id = row->buf_id ? row->buf_id : CHUNK_ID,
		.is_read = row->base != WRITE,
		.no_desc = row->no_desc,
		.need_inval = row->need_inval,
		.data_len = row->base == FLUSH ? 0 : row->data_len ? row->data_len : 4096,
		.usr = &m,
		.usr_len = sizeof(m),
		.edit = row->edit,
	};

	if (p->geom.queue_depth != DEPTH || p->geom.max_io_size != 131072)
		die("the server must run with --queue-depth=%u --max-io-size=131072", DEPTH);
	io.device_id = p->dev.device_id;
	io.bi_size = r.data_len;
	rnbd_io_encode(&m, &io);
	expect_outcome(hreq_do(p, &r), row->want);
	if (row->want == HCLOSED) {
		hpath_wait_closed(p);
		expect(!p->answers[r.buf_id].n);
		hlog_expect_one("path down: ", before);
	} else {
		good_io(p);
	}
}

const struct hgroup req_cases = HGROUP("req", req_rows, req_run);
