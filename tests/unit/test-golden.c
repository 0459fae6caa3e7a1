/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that client and server of two kernels exchanged (tests/golden): our decoders find in
 * them what was meant, and our encoders make the same bytes of it.  Only bytes that the kernel does
 * not fill are left out: padding and reserved bytes of RNBD's messages (doc/protocol.md 8), the
 * rest of a name's field, and addresses of empty writes (3.4). */
#include <errno.h>

#include "unit.h"

#include "rnbd-msg.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"

#define CHUNK 131072u
#define HDR 4096u
#define DEPTH 16u

/* always_invalidate, and the kernel: the name of a file below tests/golden */
static const char *const modes[] = { "y_6_12", "n_6_12", "y_7_3", "n_7_3" };

#define NAME_MAX_LEN 63
#define MESSAGES 160

enum golden_op { CM, SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM, OPS };
static const char *const op_names[OPS] = { "CM", "SEND", "SEND_WITH_IMM", "SEND_WITH_INV",
					   "RDMA_WRITE", "RDMA_WRITE_WITH_IMM" };

static struct golden {
	char name[NAME_MAX_LEN + 1];	/* with the mode behind it */
	enum golden_op op;		/* CM: private data */
	uint8_t *bytes;			/* an allocation as long as they are */
	size_t len;
	/* where it was written, under which key; without data both mean nothing */
	uint64_t addr, rkey;
	uint64_t chunk;			/* of a request: address of its chunk */
	uint64_t imm, inv;		/* immediate; key that is invalidated */
} golden[MESSAGES];

static unsigned ngolden;

/* ---- the files ---- */

/* "NAME OP FIELD=VALUE...", with values in hexadecimal. */
static void read_head(char *line, const char *mode)
{
	struct golden *g = &golden[ngolden++];
	const struct {
		const char *name;
		uint64_t *value;
	} fields[] = { { "addr", &g->addr }, { "chunk", &g->chunk }, { "rkey", &g->rkey },
		       { "imm", &g->imm }, { "inv", &g->inv } };
	char *rest = line, *word = strsep(&rest, " "), *value;

	snprintf(g->name, sizeof(g->name), "%s_%s", word, mode);
	word = strsep(&rest, " ");
	while (g->op < OPS && strcmp(op_names[g->op], word))
		g->op++;
	cr_assert_lt(g->op, OPS, "%s: %s", g->name, word);
	while ((word = strsep(&rest, " ")) != NULL) {
		bool known = false;

		value = strchr(word, '=');
		cr_assert_not_null(value, "%s: %s", g->name, word);
		*value++ = '\0';
		for_each_case(f, fields) {
			if (strcmp(word, f->name))
				continue;
			*f->value = strtoull(value, NULL, 16);
			known = true;
		}
		cr_assert(known, "%s: %s", g->name, word);
	}
}

/* Bytes in hexadecimal, or BYTE*COUNT. */
static void read_bytes(struct golden *g, const char *line)
{
	size_t digits = strspn(line, "0123456789abcdef"), n = digits / 2;
	const char *count = line[digits] == '*' ? line + digits + 1 : NULL;

	cr_assert(digits && digits % 2 == 0 && (count ? digits == 2 : !line[digits]), "%s: %s",
		  g->name, line);
	if (count)
		n = strtoul(count, NULL, 10);
	g->bytes = realloc(g->bytes, g->len + n);
	cr_assert_not_null(g->bytes);
	for (size_t i = 0; i < n; i++) {
		const char *two = count ? line : line + 2 * i;
		char digit[] = { two[0], two[1], '\0' };

		g->bytes[g->len++] = (uint8_t)strtoul(digit, NULL, 16);
	}
}

static void read_all(void)
{
	const char *top = getenv("srcdir");

	for_each_case(mode, modes) {
		char path[512], line[256];
		FILE *f;

		snprintf(path, sizeof(path), "%s/tests/golden/%s", top ? top : ".", *mode);
		f = fopen(path, "r");
		cr_assert_not_null(f, "%s", path);
		while (fgets(line, sizeof(line), f)) {
			line[strcspn(line, "\n")] = '\0';
			cr_assert_lt(ngolden, MESSAGES);
			if (*line == ' ' && ngolden)
				read_bytes(&golden[ngolden - 1], line + 1);
			else if (*line != '#')
				read_head(line, *mode);
		}
		fclose(f);
	}
}

static void free_all(void)
{
	for_each_case(g, golden)
		free(g->bytes);
}

TestSuite(golden, .init = read_all, .fini = free_all);

static bool new_rkeys(const char *mode)
{
	return *mode == 'y';
}

static bool is_7_3(const char *name)
{
	return !strcmp(name + strlen(name) - 4, "_7_3");
}

/* True if @name is @kind, in any mode. */
static bool is_kind(const char *name, const char *kind)
{
	size_t len = strlen(kind);

	return !strncmp(name, kind, len) && (!strncmp(name + len, "_y_", 3) ||
					     !strncmp(name + len, "_n_", 3));
}

static const struct golden *find(const char *name, const char *mode)
{
	char full[NAME_MAX_LEN + 1];

	snprintf(full, sizeof(full), "%s_%s", name, mode);
	for_each_case(g, golden) {
		if (!strcmp(g->name, full))
			return g;
	}
	cr_assert_fail("nothing recorded as %s", full);
	return NULL;
}

static void setup_geom(struct rtrs_geom *g)
{
	cr_assert_eq(rtrs_geom_init(g, DEPTH, CHUNK - HDR, HDR), 0);
}

/* ---- setting up a path ---- */

static void check_conn_req(const struct golden *g, unsigned cid, bool first_conn,
			   struct rtrs_conn_req *req)
{
	struct rtrs_msg_conn_req m;
	const char *why = NULL;

	cr_assert_eq(g->len, sizeof(m));
	cr_assert_eq(rtrs_conn_req_decode(g->bytes, g->len, req, &why), 0, "%s: %s", g->name, why);
	cr_assert_eq(req->cid, cid);
	cr_assert_eq(req->cid_num, 2);
	cr_assert_eq(req->recon_cnt, 1);
	cr_assert_eq(req->flags, first_conn ? RTRS_CONN_REQ_FIRST_CONN : 0);
	rtrs_conn_req_encode(&m, req);
	expect_bytes(&m, g->bytes, sizeof(m), g->name);
}

Test(golden, conn_req)
{
	struct rtrs_conn_req a, b;

	for_each_case(mode, modes) {
		check_conn_req(find("conn_req_0", *mode), 0, true, &a);
		check_conn_req(find("conn_req_1", *mode), 1, true, &b);
		expect_bytes(b.sess_uuid, a.sess_uuid, RTRS_UUID_LEN, "sess_uuid");
		expect_bytes(b.paths_uuid, a.paths_uuid, RTRS_UUID_LEN, "paths_uuid");
		if (new_rkeys(*mode))
			check_conn_req(find("conn_req_rejected", *mode), 0, false, &a);
	}
}

static void check_conn_rsp(const struct golden *g, bool rejected, const struct rtrs_conn_rsp *want)
{
	struct rtrs_conn_rsp rsp;
	struct rtrs_msg_conn_rsp m;
	const char *why = NULL;

	cr_assert_eq(g->len, sizeof(m));
	cr_assert_eq(rtrs_conn_rsp_decode(g->bytes, g->len, rejected, &rsp, &why), 0, "%s: %s",
		     g->name, why);
	cr_assert_eq(rsp.status, want->status);
	cr_assert_eq(rsp.queue_depth, want->queue_depth);
	cr_assert_eq(rsp.max_io_size, want->max_io_size);
	cr_assert_eq(rsp.max_hdr_size, want->max_hdr_size);
	cr_assert_eq(rsp.new_rkey, want->new_rkey);
	rtrs_conn_rsp_encode(&m, want);
	expect_bytes(&m, g->bytes, sizeof(m), g->name);
}

Test(golden, conn_rsp)
{
	struct rtrs_conn_rsp rsp = { .queue_depth = DEPTH, .max_io_size = CHUNK - HDR,
				     .max_hdr_size = HDR };
	const struct rtrs_conn_rsp rej = { .status = -ENXIO };

	for_each_case(mode, modes) {
		rsp.new_rkey = new_rkeys(*mode);
		check_conn_rsp(find("conn_rsp_0", *mode), false, &rsp);
		check_conn_rsp(find("conn_rsp_1", *mode), false, &rsp);
		if (new_rkeys(*mode))
			check_conn_rsp(find("conn_rej", *mode), true, &rej);
	}
}

Test(golden, info_req)
{
	for_each_case(mode, modes) {
		const struct golden *g = find("info_req", *mode);
		struct rtrs_msg_info_req m;
		char name[RTRS_NAME_MAX];
		const char *why = NULL;

		cr_assert_eq(g->op, SEND);
		cr_assert_eq(g->len, sizeof(m));
		cr_assert_eq(rtrs_info_req_decode(g->bytes, g->len, name, &why), 0, "%s", why);
		cr_assert_str_eq(name, "golden");
		rtrs_info_req_encode(&m, name);
		expect_bytes(&m, g->bytes, sizeof(m), g->name);
	}
}

/* One region for each chunk with always_invalidate=Y, one for all with N. */
Test(golden, info_rsp)
{
	for_each_case(mode, modes) {
		const struct golden *g = find("info_rsp", *mode);
		unsigned n = new_rkeys(*mode) ? DEPTH : 1;
		struct rtrs_region regions[DEPTH];
		struct rtrs_rbuf rbufs[DEPTH];
		struct rtrs_geom geom;
		struct rtrs_msg_info_rsp *m = malloc(rtrs_info_rsp_len(n));
		const char *why = NULL;

		setup_geom(&geom);
		cr_assert_not_null(m);
		cr_assert_eq(g->op, SEND);
		cr_assert_eq(g->len, rtrs_info_rsp_len(n));
		cr_assert_eq(rtrs_info_rsp_decode(g->bytes, g->len, &geom, rbufs, &why), 0, "%s",
			     why);
		for (unsigned i = 0; i < n; i++)
			regions[i] = (struct rtrs_region){ rbufs[i].addr, rbufs[i].rkey,
							   CHUNK * (DEPTH / n) };
		rtrs_info_rsp_encode(m, regions, n);
		expect_bytes(m, g->bytes, g->len, g->name);
		free(m);
		/* The first request goes to where this says. */
		cr_assert_eq(find("sess_info", *mode)->chunk, rbufs[0].addr);
		cr_assert_eq(find("sess_info", *mode)->rkey, rbufs[0].rkey);
	}
}

/* ---- requests ---- */

/* Encode the RNBD message of the request @name again from what the decoder says; returns its length
 * and marks in @mask the bytes that the kernel leaves as they were. */
typedef size_t recode_fn(const char *name, const struct rtrs_req *req, uint8_t *out, uint8_t *mask);

static size_t recode_sess_info(const char *name, const struct rtrs_req *req, uint8_t *out,
			       uint8_t *mask)
{
	struct rnbd_sess_info info;

	cr_assert_eq(rnbd_sess_info_decode(req->usr, req->usr_len, &info), 0, "%s", name);
	cr_assert_eq(info.ver, 2);
	cr_assert_not(info.ext.valid);
	rnbd_sess_info_encode((struct rnbd_msg_sess_info *)out, RNBD_MSG_SESS_INFO, &info);
	memset(mask + offsetof(struct rnbd_msg_sess_info, reserved), 1, 31);
	return sizeof(struct rnbd_msg_sess_info);
}

static size_t recode_open(const char *name, const struct rtrs_req *req, uint8_t *out, uint8_t *mask)
{
	size_t end = offsetof(struct rnbd_msg_open, dev_name);
	struct rnbd_open open;

	cr_assert_eq(rnbd_open_decode(req->usr, req->usr_len, &open), 0, "%s", name);
	cr_assert_eq(open.mode, RNBD_ACCESS_RW);
	cr_assert_str_eq(open.name, is_kind(name, "open") ? "/dev/loop0" : "/dev/missing");
	cr_assert_eq(rnbd_open_encode((struct rnbd_msg_open *)out, open.name, open.mode), 0);
	mask[offsetof(struct rnbd_msg_open, flags)] = 1;
	end += strlen(open.name) + 1;
	memset(mask + end, 1, sizeof(struct rnbd_msg_open) - end);
	return sizeof(struct rnbd_msg_open);
}

static size_t recode_io(const char *name, const struct rtrs_req *req, uint8_t *out, uint8_t *mask)
{
	static const struct {
		const char *name;
		struct rnbd_io io;
		bool is_read;
		uint32_t flags, more_7_3;
	} ios[] = {
		{ "read", { .op = RNBD_OP_READ, .sector = 2048, .bi_size = 4096 }, true,
		  RNBD_F_SYNC, 0 },
		{ "write", { .op = RNBD_OP_WRITE, .sector = 2048, .bi_size = 4096 }, false,
		  RNBD_F_SYNC, 0 },
		{ "flush", { .op = RNBD_OP_FLUSH }, true, RNBD_F_SYNC | RNBD_F_FUA,
		  RNBD_F_PREFLUSH },
		{ "discard", { .op = RNBD_OP_DISCARD, .sector = 2048, .bi_size = 65536 }, false,
		  RNBD_F_SYNC, 0 },
		/* blkdiscard -z */
		{ "write_zeroes", { .op = RNBD_OP_WRITE_ZEROES, .sector = 4096, .bi_size = 65536 },
		  false, RNBD_F_SYNC, RNBD_F_NOUNMAP },
	};
	struct rnbd_io io;
	bool found = false;

	for_each_case(c, ios) {
		uint32_t flags = c->flags | (is_7_3(name) ? c->more_7_3 : 0);

		if (!is_kind(name, c->name))
			continue;
		found = true;
		cr_assert_eq(req->dir == RTRS_DIR_READ, c->is_read, "%s", name);
		cr_assert_eq(rnbd_io_decode(req->usr, req->usr_len, req->data_len, c->is_read, &io),
			     0);
		cr_assert_eq(io.op, c->io.op, "%s", name);
		cr_assert_eq(io.flags, flags, "%s: flags %x", name, io.flags);
		cr_assert_eq(io.sector, c->io.sector, "%s", name);
		cr_assert_eq(io.bi_size, c->io.bi_size, "%s", name);
		cr_assert_eq(io.device_id, 0u);
		if (io.op == RNBD_OP_FLUSH)
			io.sector = RNBD_FLUSH_SECTOR;
	}
	cr_assert(found, "%s", name);
	rnbd_io_encode((struct rnbd_msg_io *)out, &io);
	memset(mask + offsetof(struct rnbd_msg_io, tag), 1, 6);	/* padding of the kernel */
	return sizeof(struct rnbd_msg_io);
}

static size_t recode_close(const char *name, const struct rtrs_req *req, uint8_t *out,
			   uint8_t *mask)
{
	uint32_t id;

	(void)mask;
	cr_assert_eq(rnbd_close_decode(req->usr, req->usr_len, &id), 0, "%s", name);
	cr_assert_eq(id, 0u);
	rnbd_close_encode((struct rnbd_msg_close *)out, id);
	return sizeof(struct rnbd_msg_close);
}

static const struct request {
	const char *name;
	recode_fn *recode;
	enum rtrs_dir dir;
	uint32_t data_len;
	int status;		/* of its answer */
} requests[] = {
	{ "sess_info", recode_sess_info, RTRS_DIR_READ, 36, 0 },
	{ "open_missing", recode_open, RTRS_DIR_READ, 56, -ENOENT },
	{ "open", recode_open, RTRS_DIR_READ, 56, 0 },
	{ "write", recode_io, RTRS_DIR_WRITE, 4096, 0 },
	{ "read", recode_io, RTRS_DIR_READ, 4096, 0 },
	{ "flush", recode_io, RTRS_DIR_READ, 0, 0 },
	{ "discard", recode_io, RTRS_DIR_WRITE, 0, 0 },
	{ "write_zeroes", recode_io, RTRS_DIR_WRITE, 0, 0 },
	{ "close", recode_close, RTRS_DIR_WRITE, 0, 0 },
};

/* The request as the server finds it in its chunk. */
static void decode(const struct golden *g, const struct request *r, uint8_t *chunk,
		   struct rtrs_req *req, uint32_t *buf_id)
{
	uint32_t at = (uint32_t)(g->addr - g->chunk), off, start, len;
	uint32_t byte_len = (uint32_t)g->len;
	struct rtrs_geom geom;
	const char *why = NULL;

	setup_geom(&geom);
	cr_assert_eq(g->op, RDMA_WRITE_WITH_IMM);
	cr_assert_leq(at + byte_len, CHUNK, "%s", g->name);
	memset(chunk, 0xa5, CHUNK);
	memcpy(chunk + at, g->bytes, g->len);
	cr_assert_eq(rtrs_imm_type(htobe32((uint32_t)g->imm)), (unsigned)RTRS_IO_REQ_IMM);
	rtrs_imm_io_req_split(&geom, rtrs_imm_payload(htobe32((uint32_t)g->imm)), buf_id, &off);
	cr_assert_eq(*buf_id, 0u);
	cr_assert_eq(rtrs_req_extent(&geom, chunk, off, byte_len, &start, &len, &why), 0, "%s: %s",
		     g->name, why);
	cr_assert_eq(rtrs_req_decode(&geom, chunk + start, start, len, off, byte_len, req, &why), 0,
		     "%s: %s", g->name, why);
	cr_assert_eq(req->dir, r->dir, "%s", g->name);
	cr_assert_eq(req->data_len, r->data_len, "%s", g->name);
	cr_assert_eq(req->has_desc, r->dir == RTRS_DIR_READ && r->data_len, "%s", g->name);
	cr_assert_eq(req->need_inval, req->has_desc, "%s", g->name);
}

static void check_request(const struct golden *g, const struct request *r, uint8_t *chunk)
{
	const struct rtrs_rbuf rbuf = { .addr = g->chunk, .rkey = g->rkey };
	uint8_t out[RTRS_HDR_MAX], mask[RTRS_HDR_MAX] = { 0 };
	struct ibv_sge data = { .addr = 1, .length = r->data_len }, hdr = { .addr = 2 };
	struct rtrs_geom geom;
	struct rtrs_req req;
	struct rtrs_wr_req w;
	uint32_t buf_id;
	size_t usr_len, before = r->dir == RTRS_DIR_WRITE ? r->data_len : 0;
	bool source;

	setup_geom(&geom);
	decode(g, r, chunk, &req, &buf_id);
	usr_len = r->recode(g->name, &req, out, mask);
	mask[2] = mask[3] = 1;		/* padding of RNBD's header */
	cr_assert_eq(usr_len, req.usr_len, "%s", g->name);
	hdr.length = (uint32_t)rtrs_req_encode(&req, out);
	cr_assert_eq(before + hdr.length, g->len, "%s", g->name);
	for (size_t i = 0; i < hdr.length; i++)
		cr_assert(mask[i] || out[i] == g->bytes[before + i],
			  "%s: byte %zu is %02x, expected %02x", g->name, before + i, out[i],
			  g->bytes[before + i]);

	source = r->dir == RTRS_DIR_WRITE && r->data_len;
	rtrs_wr_request(&w, 1, true, &geom, buf_id, &rbuf, &req, source ? &data : NULL, &hdr);
	cr_assert_eq(w.wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	cr_assert_eq(w.wr.imm_data, htobe32((uint32_t)g->imm), "%s", g->name);
	cr_assert_eq(w.wr.wr.rdma.remote_addr, g->addr, "%s", g->name);
	cr_assert_eq(w.wr.wr.rdma.rkey, g->rkey);
	cr_assert_eq(w.wr.num_sge, source ? 2 : 1);
}

Test(golden, requests)
{
	uint8_t *chunk = malloc(CHUNK);

	cr_assert_not_null(chunk);
	for_each_case(mode, modes) {
		for_each_case(r, requests)
			check_request(find(r->name, *mode), r, chunk);
	}
	free(chunk);
}

/* ---- answers ---- */

static const enum ibv_wr_opcode opcodes[] = {
	[SEND_WITH_IMM] = IBV_WR_SEND_WITH_IMM, [SEND_WITH_INV] = IBV_WR_SEND_WITH_INV,
	[RDMA_WRITE] = IBV_WR_RDMA_WRITE, [RDMA_WRITE_WITH_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
};

static const struct golden *part_of(const struct request *r, const char *part, const char *mode)
{
	char name[48];

	snprintf(name, sizeof(name), "%s_%s", r->name, part);
	return find(name, mode);
}

/* The last message: number, status, and the next key. */
static void check_final(const struct golden *g, const struct request *r, bool new_rkey,
			uint32_t *rkey)
{
	struct rtrs_msg_rkey_rsp m;
	struct rtrs_geom geom;
	uint32_t msg_id;
	const char *why = NULL;
	int status;

	setup_geom(&geom);
	rtrs_imm_io_rsp_split(rtrs_imm_payload(htobe32((uint32_t)g->imm)), &msg_id, &status);
	cr_assert_eq(msg_id, 0u, "%s", g->name);
	cr_assert_eq(status, r->status, "%s", g->name);
	cr_assert_eq(g->op, new_rkey ? SEND_WITH_IMM : RDMA_WRITE_WITH_IMM, "%s", g->name);
	cr_assert_eq(g->len, new_rkey ? sizeof(m) : 0u, "%s", g->name);
	if (!new_rkey)
		return;
	cr_assert_eq(rtrs_rkey_rsp_decode(g->bytes, g->len, &geom, msg_id, rkey, &why), 0, "%s: %s",
		     g->name, why);
	rtrs_rkey_rsp_encode(&m, 0, *rkey);
	expect_bytes(&m, g->bytes, sizeof(m), g->name);
}

static void check_answer(const struct request *r, const char *mode, uint8_t *chunk)
{
	const struct golden *want[3], *answer = part_of(r, "answer", mode);
	bool new_rkey = new_rkeys(mode);
	struct rtrs_req req;
	struct rtrs_rsp rsp = { .status = r->status, .new_rkey = new_rkey, .req = &req };
	struct rtrs_wr_rsp w;
	struct ibv_send_wr *wr;
	uint32_t buf_id, rkey = 0;
	unsigned n = 0;

	decode(find(r->name, mode), r, chunk, &req, &buf_id);
	check_final(answer, r, new_rkey, &rkey);
	if (req.has_desc && !r->status)
		want[n++] = part_of(r, "data", mode);
	if (req.has_desc)
		want[n++] = part_of(r, "inv", mode);
	want[n++] = answer;
	rsp.data.length = req.data_len;
	rsp.rkey_rsp.length = sizeof(struct rtrs_msg_rkey_rsp);
	wr = rtrs_wr_response(&w, 1, &rsp);
	for (unsigned i = 0; i < n; i++, wr = wr->next) {
		const struct golden *g = want[i];

		cr_assert_not_null(wr, "%s", g->name);
		cr_assert_eq(wr->opcode, opcodes[g->op], "%s", g->name);
		cr_assert_eq(wr->num_sge ? wr->sg_list->length : 0, g->len, "%s", g->name);
		if (g->op == RDMA_WRITE) {
			cr_assert_eq(wr->wr.rdma.remote_addr, g->addr, "%s", g->name);
			cr_assert_eq(wr->wr.rdma.rkey, g->rkey, "%s", g->name);
		} else if (g->op == SEND_WITH_INV) {
			cr_assert_eq(wr->invalidate_rkey, g->inv, "%s", g->name);
		} else {
			cr_assert_eq(wr->imm_data, htobe32((uint32_t)g->imm), "%s", g->name);
		}
	}
	cr_assert_null(wr, "%s: more than was recorded", r->name);
}

Test(golden, answers)
{
	uint8_t *chunk = malloc(CHUNK);
	uint32_t rkey = 0;

	cr_assert_not_null(chunk);
	for_each_case(mode, modes) {
		for_each_case(r, requests)
			check_answer(r, *mode, chunk);
		if (!new_rkeys(*mode))
			continue;
		/* The next request uses the key that the answer before has brought. */
		check_final(find("sess_info_answer", *mode), &requests[0], true, &rkey);
		cr_assert_eq(rkey, find("open_missing", *mode)->rkey);
	}
	free(chunk);
}

Test(golden, bodies_of_answers)
{
	for_each_case(mode, modes) {
		const struct golden *g = find("sess_info_data", *mode);
		struct rnbd_sess_info sess;
		struct rnbd_msg_sess_info sess_msg;
		struct rnbd_dev_info dev;
		struct rnbd_msg_open_rsp open_msg;

		cr_assert_eq(rnbd_sess_info_decode(g->bytes, g->len, &sess), 0);
		cr_assert_eq(sess.ver, 2);
		cr_assert_not(sess.ext.valid);
		rnbd_sess_info_encode(&sess_msg, RNBD_MSG_SESS_INFO_RSP, &sess);
		cr_assert_eq(g->len, sizeof(sess_msg));
		/* Bytes 2 and 3 are padding, those from 5 on reserved. */
		expect_bytes(&sess_msg, g->bytes, 2, g->name);
		cr_assert_eq(sess_msg.ver, g->bytes[4]);

		g = find("open_data", *mode);
		cr_assert_eq(rnbd_open_rsp_decode(g->bytes, g->len, &dev), 0);
		cr_assert_eq(dev.device_id, 0u);
		cr_assert_eq(dev.nsectors, (64u << 20) / 512);
		cr_assert_eq(dev.logical_block_size, 512);
		cr_assert_eq(dev.secure_discard, 0);
		cr_assert(dev.max_discard_sectors && dev.max_write_zeroes_sectors && dev.writeback);
		rnbd_open_rsp_encode(&open_msg, &dev);
		cr_assert_eq(g->len, sizeof(open_msg));
		expect_bytes(&open_msg, g->bytes, 2, g->name);
		expect_bytes(&open_msg.device_id, g->bytes + 4, 46 - 4, g->name);
	}
}

/* ---- heartbeats ---- */

Test(golden, heartbeats)
{
	static const struct {
		const char *name;
		enum rtrs_imm_type type;
	} beats[] = {
		{ "hb_clt", RTRS_HB_MSG_IMM }, { "hb_srv", RTRS_HB_MSG_IMM },
		{ "hb_ack_clt", RTRS_HB_ACK_IMM }, { "hb_ack_srv", RTRS_HB_ACK_IMM },
	};

	for_each_case(mode, modes) {
		for_each_case(b, beats) {
			const struct golden *g = find(b->name, *mode);
			struct ibv_send_wr wr;

			rtrs_wr_heartbeat(&wr, 1, b->type);
			cr_assert_eq(wr.opcode, opcodes[g->op], "%s", g->name);
			cr_assert_eq(wr.imm_data, htobe32((uint32_t)g->imm), "%s", g->name);
			cr_assert_eq(wr.num_sge, 0);
			cr_assert_eq(g->len, 0u, "%s", g->name);
		}
	}
}
