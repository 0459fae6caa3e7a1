/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the corpora: valid messages for fuzz-rtrs-msg, fuzz-rtrs-req and fuzz-rnbd-msg, scripts
 * for fuzz-tcp-stream, fuzz-ctl, fuzz-nbd, fuzz-auth and fuzz-tls-stream, answers for
 * fuzz-rtrsctl, one a file.  `make fuzz-corpus` runs it on the source tree after a change of a
 * message or of a target's input. */
#include <errno.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "rnbd-ext.h"
#include "rnbd-msg.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"

static const char *dir;

/* @head: what the target takes in front of the message, little-endian bytes. */
static void save(const char *target, const char *name, const void *head, size_t head_len,
		 const void *msg, size_t len)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, target);
	if (mkdir(path, 0777) && errno != EEXIST) {
		perror(path);
		exit(1);
	}
	snprintf(path, sizeof(path), "%s/%s/%s", dir, target, name);
	f = fopen(path, "wb");
	if (!f || fwrite(head, 1, head_len, f) != head_len || fwrite(msg, 1, len, f) != len ||
	    fclose(f)) {
		perror(path);
		exit(1);
	}
}

/* which, queue depth 512 (or 16), max_io_size 126976 */
static void save_msg(const char *name, unsigned which, unsigned depth, const void *msg, size_t len)
{
	const uint8_t head[] = { (uint8_t)which, (uint8_t)depth, (uint8_t)(depth >> 8), 0x00, 0xf0,
				 0x01, 0x00 };

	save("rtrs-msg", name, head, sizeof(head), msg, len);
}

static void setup_messages(void)
{
	struct rtrs_conn_req req = { .cid = 1, .cid_num = 5, .recon_cnt = 1,
				     .flags = RTRS_CONN_REQ_FIRST_CONN };
	struct rtrs_conn_rsp rsp = { .queue_depth = 512, .max_io_size = 126976,
				     .max_hdr_size = 4096,
				     .new_rkey = true };
	struct rtrs_region regions[16];
	union {
		struct rtrs_msg_conn_req req;
		struct rtrs_msg_conn_rsp rsp;
		struct rtrs_msg_info_req info;
		struct rtrs_msg_rkey_rsp rkey;
		struct rtrs_msg_info_rsp info_rsp;
		uint8_t bytes[8 + 16 * 16];
	} m;

	memset(req.sess_uuid, 0x11, sizeof(req.sess_uuid));
	memset(req.paths_uuid, 0x22, sizeof(req.paths_uuid));
	rtrs_conn_req_encode(&m.req, &req);
	save_msg("conn-req", 0, 512, &m, sizeof(m.req));
	req.flags |= RTRS_CONN_REQ_HEARS;
	rtrs_conn_req_encode(&m.req, &req);
	save_msg("conn-req-hears", 0, 512, &m, sizeof(m.req));
	rtrs_conn_rsp_encode(&m.rsp, &rsp);
	save_msg("conn-rsp", 1, 512, &m, sizeof(m.rsp));
	rsp.status = -ENXIO;
	rtrs_conn_rsp_encode(&m.rsp, &rsp);
	save_msg("conn-rsp-reject", 2, 512, &m, sizeof(m.rsp));
	rsp.refusal = RTRS_REFUSES_SESSIONS;
	rtrs_conn_rsp_encode(&m.rsp, &rsp);
	save_msg("conn-rsp-reason", 2, 512, &m, sizeof(m.rsp));
	rtrs_info_req_encode(&m.info, "session-1");
	save_msg("info-req", 3, 512, &m, sizeof(m.info));
	rtrs_info_req_hear(&m.info);
	save_msg("info-req-hears", 3, 512, &m, sizeof(m.info));
	rtrs_info_refusal_encode(&m.info_rsp, RTRS_REFUSES_NAME);
	save_msg("info-rsp-refusal", 4, 512, &m, rtrs_info_rsp_len(0));
	regions[0] = (struct rtrs_region){ 0x7f0000000000, 0x1234, 512 * 131072 };
	rtrs_info_rsp_encode(&m.info_rsp, regions, 1);
	save_msg("info-rsp-1", 4, 512, &m, rtrs_info_rsp_len(1));
	for (unsigned i = 0; i < 16; i++)
		regions[i] = (struct rtrs_region){ 0x1000000 * i, i, 131072 };
	rtrs_info_rsp_encode(&m.info_rsp, regions, 16);
	save_msg("info-rsp-16", 4, 16, &m, rtrs_info_rsp_len(16));
	rtrs_rkey_rsp_encode(&m.rkey, 5, 0x1235);
	save_msg("rkey-rsp", 5, 5, &m, sizeof(m.rkey));
}

static void save_req(const char *name, const struct rtrs_req *req)
{
	uint8_t buf[RTRS_HDR_MAX] = { 0 };
	uint32_t hdr_len = (uint32_t)rtrs_req_encode(req, buf) - req->usr_len;
	uint32_t data_len = req->dir == RTRS_DIR_WRITE ? req->data_len : 0;
	struct {
		le32 off, byte_len;
		uint8_t nedits;
	} __attribute__((packed)) head = {
		le32_put(req->data_len + req->usr_len),
		le32_put(data_len + req->usr_len + hdr_len),
		0,
	};

	save("rtrs-req", name, &head, sizeof(head), buf + req->usr_len, hdr_len);
}

static void requests(void)
{
	struct rtrs_req req = { .dir = RTRS_DIR_READ, .data_len = 4096, .usr_len = 32,
		.has_desc = true, .need_inval = true, .desc = { 0x1000, 0xabcd, 4096 } };

	save_req("read", &req);
	save_req("flush", &(struct rtrs_req){ .dir = RTRS_DIR_READ, .usr_len = 32 });
	save_req("write",
		 &(struct rtrs_req){ .dir = RTRS_DIR_WRITE, .data_len = 512, .usr_len = 32 });
	save_req("close", &(struct rtrs_req){ .dir = RTRS_DIR_WRITE, .usr_len = 8 });
	req.data_len = req.desc.len = 12288;
	save_req("read-largest", &req);
}

static void save_rnbd(const char *name, bool is_read, uint32_t data_len, bool answer,
		      const void *msg, size_t len)
{
	struct {
		uint8_t is_read;
		le32 data_len;
		uint8_t answer;
	} __attribute__((packed)) head = { is_read, le32_put(data_len), answer };

	save("rnbd-msg", name, &head, sizeof(head), msg, len);
}

static void rnbd_messages(void)
{
	static const struct {
		const char *name;
		struct rnbd_io io;
		bool is_read, data;
	} ios[] = {
		{ "io-read", { 0, RNBD_OP_READ, RNBD_F_SYNC, 2048, 4096, 0, 0 }, true, true },
		{ "io-write", { 0, RNBD_OP_WRITE, RNBD_F_FUA, 2048, 4096, 0, 0 }, false, true },
		{ "io-flush", { 0, RNBD_OP_FLUSH, 0x300, RNBD_FLUSH_SECTOR, 0, 0, 0 }, true,
		  false },
		{ "io-discard", { 1, RNBD_OP_DISCARD, 0, 8, 65536, 0, 0 }, false, false },
		{ "io-zeroes", { 1, RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP, 8, 512, 0, 0 }, false,
		  false },
		{ "io-tagged", { 1, RNBD_OP_WRITE, 0, 8, 512, 0, 0x80000001 }, false, true },
		{ "io-preflush", { 1, RNBD_OP_WRITE, RNBD_F_PREFLUSH, 8, 512, 4, 0 }, false, true },
	};
	struct rnbd_sess_info info = { .ver = 2, .ext = { .valid = true, .features = RNBD_EXT_ALL,
		.instance = 7, .host = 0x123456 } };
	struct rnbd_dev_info dev = { .nsectors = 2048, .logical_block_size = 512,
		.physical_block_size = 4096, .max_hw_sectors = 248, .writeback = true };
	struct rnbd_msg_sess_info sess;
	struct rnbd_msg_open_rsp open_rsp;
	struct rnbd_msg_close close_msg;
	struct rnbd_msg_open open;
	struct rnbd_msg_list list;
	struct rnbd_list_writer names;
	uint8_t list_rsp[RNBD_LIST_ROOM_MIN];
	struct rnbd_extents_writer extents;
	uint8_t extents_rsp[64];
	struct rnbd_msg_io io;

	rnbd_sess_info_encode(&sess, RNBD_MSG_SESS_INFO, &info);
	save_rnbd("sess-info", true, 36, false, &sess, sizeof(sess));
	rnbd_sess_info_encode(&sess, RNBD_MSG_SESS_INFO_RSP, &info);
	save_rnbd("sess-info-rsp", true, 36, true, &sess, sizeof(sess));
	rnbd_open_encode(&open, "disk0", RNBD_ACCESS_RW);
	save_rnbd("open", true, 56, false, &open, sizeof(open));
	rnbd_open_rsp_encode(&open_rsp, &dev);
	save_rnbd("open-rsp", true, 56, true, &open_rsp, sizeof(open_rsp));
	rnbd_close_encode(&close_msg, 1);
	save_rnbd("close", false, 0, false, &close_msg, sizeof(close_msg));
	rnbd_list_encode(&list, 2);
	save_rnbd("list", true, RNBD_LIST_ROOM, false, &list, sizeof(list));
	rnbd_list_begin(&names, list_rsp, sizeof(list_rsp));
	rnbd_list_add(&names, "disk0");
	rnbd_list_add(&names, "disk1");
	rnbd_list_end(&names, 7);
	save_rnbd("list-rsp", true, RNBD_LIST_ROOM, true, list_rsp, names.used);
	rnbd_io_encode(&io,
		       &(struct rnbd_io){ .op = RNBD_OP_EXTENTS, .sector = 8, .bi_size = 1 << 20 });
	save_rnbd("io-extents", true, RNBD_EXTENTS_ROOM, false, &io, sizeof(io));
	rnbd_extents_begin(&extents, extents_rsp, sizeof(extents_rsp));
	rnbd_extents_add(&extents, 65536, 0);
	rnbd_extents_add(&extents, 512, RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO);
	rnbd_extents_add(&extents, 4096, RNBD_EXTENT_ZERO);
	rnbd_extents_end(&extents);
	save_rnbd("extents", true, 1 << 20, true, extents_rsp, sizeof(extents_rsp));
	for (unsigned i = 0; i < ARRAY_SIZE(ios); i++) {
		rnbd_io_encode(&io, &ios[i].io);
		save_rnbd(ios[i].name, ios[i].is_read, ios[i].data ? ios[i].io.bi_size : 0, false,
			  &io, sizeof(io));
	}
}

/* Scripts as fuzz-tcp-stream.c reads them. */
static void tcp_streams(void)
{
	static const uint8_t write_imm[] = { 4, 0, 0, 5, 0, 1, 0, 0, 100, 0, 7, 3, 8 };
	static const uint8_t write_then_imm[] = { 4, 0, 0, 4, 0, 2, 0xff, 3, 1, 0, 0, 0, 5, 0, 1, 0,
						  0, 0, 0, 9, 3, 1, 3, 8 };
	static const uint8_t sends[] = { 4, 200, 4, 50, 0, 1, 0, 0, 0, 0, 200, 0, 0, 3, 1, 0, 2, 0,
					 0, 0, 0, 50, 0, 3, 3, 8 };
	static const uint8_t too_long[] = { 4, 10, 0, 1, 0, 0, 0, 0, 11, 0, 0, 3, 8 };
	static const uint8_t out_of_range[] = { 4, 0, 0, 5, 0, 1, 1, 0, 0, 4, 0, 3, 8 };
	static const uint8_t in_front[] = { 0, 4, 0, 1, 0xff, 0xff, 2, 0, 0, 3, 8 };
	static const uint8_t no_right[] = { 4, 0, 0, 5, 0, 0, 0, 0, 1, 0, 0, 3, 8 };
	static const uint8_t no_receive[] = { 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 8 };
	static const uint8_t inv[] = { 4, 0, 0, 3, 0, 1, 0, 0, 0, 0, 0, 3, 8 };
	static const uint8_t revoked_midway[] = { 4, 0, 1, 5, 0, 1, 0, 0, 0, 2, 0, 2, 4, 1, 2, 3, 4,
						  3, 8, 5, 0, 9, 3, 8 };
	static const uint8_t rekeyed[] = { 4, 0, 5, 0, 9, 0, 5, 0, 1, 0, 0, 0, 2, 1, 3, 8 };
	static const uint8_t in_pieces[] = { 4, 0, 2, 3, 5, 0, 0, 3, 8, 2, 21, 0, 0, 0, 0, 0, 0, 0,
					     42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 8 };
	/* Bound, written, invalidated from either end, written in vain. */
	static const uint8_t window[] = { 4, 0, 7, 0, 0, 5, 0, 3, 0, 0, 8, 0, 7, 3, 8, 7, 0,
					  0, 5, 0, 3, 0, 0, 8, 0, 7, 3, 8 };
	static const uint8_t window_inv[] = { 4, 0, 4, 9, 7, 5, 0, 4, 0, 3, 0, 0, 8, 0, 7, 0, 3, 0,
					      3, 0, 0, 3, 0, 0, 3, 8, 7, 0, 0, 3, 0, 3, 0, 0, 0, 0,
					      0, 0, 3, 0, 3, 0, 0, 0, 0, 0, 3, 8 };
	static const uint8_t window_inv_midway[] = { 4, 0, 7, 0, 1, 5, 0, 3, 0, 0, 64, 0, 7, 2, 4,
						     1, 2, 3, 4, 3, 8, 7, 0, 2, 4, 5, 6, 7, 8, 3,
						     8 };
	static const uint8_t disconnect[] = { 4, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0, 6, 3, 8 };

	save("tcp-stream", "write-imm", "", 0, write_imm, sizeof(write_imm));
	save("tcp-stream", "write-then-imm", "", 0, write_then_imm, sizeof(write_then_imm));
	save("tcp-stream", "sends", "", 0, sends, sizeof(sends));
	save("tcp-stream", "too-long", "", 0, too_long, sizeof(too_long));
	save("tcp-stream", "out-of-range", "", 0, out_of_range, sizeof(out_of_range));
	save("tcp-stream", "in-front", "", 0, in_front, sizeof(in_front));
	save("tcp-stream", "no-right", "", 0, no_right, sizeof(no_right));
	save("tcp-stream", "no-receive", "", 0, no_receive, sizeof(no_receive));
	save("tcp-stream", "inv", "", 0, inv, sizeof(inv));
	save("tcp-stream", "revoked-midway", "", 0, revoked_midway, sizeof(revoked_midway));
	save("tcp-stream", "rekeyed", "", 0, rekeyed, sizeof(rekeyed));
	save("tcp-stream", "in-pieces", "", 0, in_pieces, sizeof(in_pieces));
	save("tcp-stream", "disconnect", "", 0, disconnect, sizeof(disconnect));
	save("tcp-stream", "window", "", 0, window, sizeof(window));
	save("tcp-stream", "window-inv", "", 0, window_inv, sizeof(window_inv));
	save("tcp-stream", "window-inv-midway", "", 0, window_inv_midway,
	     sizeof(window_inv_midway));
}

/* Scripts as fuzz-ctl.c reads them. */
static void ctl_scripts(void)
{
	static const uint8_t echo[] = { 1, 0, 0, 3, 0, 3, 0, 4, 0, 1, 1, 1, 0, 3, 0 };
	static const uint8_t two_lines_in_pieces[] = "\0\0\x15{\"command\":\"echo\",\"t\3\0\0\0\x0e"
		"ext\":\"\xc3\xa9\"}\n{}\n\3\0";
	static const uint8_t late[] = { 1, 0, 1, 1, 0, 0, 3, 0, 3, 0, 1, 1, 0, 3, 1, 7, 0, 3, 0, 5,
					0 };
	static const uint8_t late_and_gone[] = { 1, 0, 1, 3, 0, 3, 0, 6, 0, 3, 0, 3, 0, 7, 0, 3,
						 0 };
	static const uint8_t big[] = { 1, 0, 2, 1, 0, 0, 3, 0, 3, 0, 4, 0, 99, 3, 0, 4, 0, 200, 3,
				       0 };
	static const uint8_t too_long[] = { 1, 0, 4, 2, 0, 14, 3, 0, 2, 0, 14, 3, 0, 3, 0 };
	static const uint8_t longest[] = { 2, 0, 14, 0, 0, 225, [6 ... 230] = ' ', 1, 0, 0, 3, 0, 3,
					   0 };
	static const uint8_t refused[] = { 1, 0, 5, 1, 0, 6, 1, 0, 7, 1, 0, 8, 1, 0, 9, 1, 0, 10, 1,
					   0, 11 };
	static const uint8_t no_json[] = { 1, 0, 3, 1, 0, 12, 1, 0, 0, 1, 1, 13, 3, 0, 3, 0 };
	static const uint8_t idle[] = { 1, 0, 0, 3, 0, 3, 0, 2, 1, 0, 3, 1, 8, 0, 120, 3, 0, 3, 0,
					1, 0, 0 };
	static const uint8_t ends[] = { 1, 0, 1, 1, 1, 0, 1, 2, 2, 3, 0, 3, 0, 9, 0, 3, 0, 7, 0 };
	uint8_t many[2 * 18 + 2];

	for (unsigned i = 0; i < sizeof(many); i += 2) {
		many[i] = i % 12 ? 5 : 3;
		many[i + 1] = (uint8_t)(i / 2);
	}
	save("ctl", "echo", "", 0, echo, sizeof(echo));
	save("ctl", "two-lines-in-pieces", "", 0, two_lines_in_pieces,
	     sizeof(two_lines_in_pieces) - 1);
	save("ctl", "late", "", 0, late, sizeof(late));
	save("ctl", "late-and-gone", "", 0, late_and_gone, sizeof(late_and_gone));
	save("ctl", "big", "", 0, big, sizeof(big));
	save("ctl", "too-long", "", 0, too_long, sizeof(too_long));
	save("ctl", "longest", "", 0, longest, sizeof(longest));
	save("ctl", "refused", "", 0, refused, sizeof(refused));
	save("ctl", "no-json", "", 0, no_json, sizeof(no_json));
	save("ctl", "idle", "", 0, idle, sizeof(idle));
	save("ctl", "ends", "", 0, ends, sizeof(ends));
	save("ctl", "many", "", 0, many, sizeof(many));
}

/* What programs answer, twice. */
static void ctl_answers(void)
{
	static const char stats[] =
		"{\"program\":\"rtrs-server\",\"now_ns\":1,\"memory\":4096,"
		"\"exports\":[{\"name\":\"disk0\",\"size\":1048576,"
		"\"mode\":\"rw\",\"stats\":{\"read\":{\"count\":3,\"bytes\":12288,\"errors\":0,"
		"\"p50_ns\":1000,"
		"\"p99_ns\":90000,\"log2_ns\":[0,1,2]}}}],"
		"\"sessions\":[{\"name\":\"a\",\"devices\":[{\"export\":\"disk0\"}],"
		"\"paths\":[{\"name\":\"p\",\"state\":\"up\","
		"\"src_addr\":\"10.0.0.1\",\"transport\":\"tcp\"}]}],\"ok\":true}\n";
	static const char hostile[] =
		"{\"ok\":true,\"program\":[],\"exports\":[1,"
		"{\"name\":\"\\u001b[2J\",\"size\":-1,\"stats\":[]},[{}]],"
		"\"\\u001bx_ns\":1e99,\"sessions\":{\"a\":[null,[]]},"
		"\"s\":[{\"s\":[{\"name\":{}}]}]}\n";
	static const char nbd[] =
		"{\"ok\":true,\"program\":\"rtrs-nbd\",\"now_ns\":9,\"clients\":[1,[],{},"
		"{\"name\":\"client 1 of \\u001b[2J\",\"peer\":\"\\u001b\",\"cipher\":7,"
		"\"export\":\"\\u0007\",\"mode\":[],\"key_age_ns\":\"old\",\"up_ns\":-1,"
		"\"reads\":5,\"read_bytes\":1e9,\"others\":-3},"
		"{\"name\":\" of \",\"export\":{}}]}\n";
	static const char explained[] =
		"{\"ok\":true,\"program\":\"rtrs-server\",\"export\":\"\\u001b[2J\",\"client\":7,"
		"\"checks\":[{\"check\":\"key\",\"verdict\":\"refuses\",\"text\":\"no\\u0007\"},[],"
		"{\"check\":\"\\u001b\",\"verdict\":\"depends\",\"text\":{}}],"
		"\"may_open\":false,\"last_refusal\":{\"ago_ns\":-1,\"from\":\"\\u009b\","
		"\"identity\":\"psk:\\u001b\",\"reason\":[]}}\n";
	static const char refused[] = "{\"ok\":false,\"error\":\"no such path\"}\n";
	static const char no_object[] = "[true]\n";
	const struct {
		const char *name, *first, *second;
	} pairs[] = {
		{ "stats", stats, stats },
		{ "hostile", hostile, stats },
		{ "hostile-later", stats, hostile },
		{ "nbd-clients", nbd, nbd },
		{ "explained", explained, stats },
		{ "refused", refused, no_object },
		{ "cut-off", "{\"ok\":true", "" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++) {
		size_t n = strlen(pairs[i].first), m = strlen(pairs[i].second);
		uint8_t buf[2048] = { (uint8_t)n, (uint8_t)(n >> 8) };

		must(2 + n + m <= sizeof(buf));
		memcpy(buf + 2, pairs[i].first, n);
		memcpy(buf + 2 + n, pairs[i].second, m);
		save("rtrsctl", pairs[i].name, "", 0, buf, 2 + n + m);
	}
}

/* Scripts of fuzz-nbd.c. */
static void save_nbd(const char *name, const uint8_t *script, size_t len)
{
	save("nbd", name, NULL, 0, script, len);
}
#define SAVE_NBD(name, ...)                                                                        \
	save_nbd(name, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void save_nbd_all(void)
{
	/* action, client, ... ; requests: 2, client, type, flags, offset, length */
	SAVE_NBD("simple", 1, 0, 0, 2, 0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 2,
		 0, 4, 0, 9, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 9, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0,
		 0);
	SAVE_NBD("structured", 1, 0, 5, 2, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 4, 0, 0, 0, 0, 1,
		 0, 0, 4, 0, 9);
	SAVE_NBD("extended", 1, 1, 6, 2, 1, 1, 32, 0, 0, 0, 0, 0, 16, 0, 2, 1, 7, 8, 0, 0, 0, 0, 0,
		 0, 8, 2, 1, 6, 2, 0, 0, 0, 0, 0, 16, 0, 2, 1, 7, 32, 0, 0, 0, 0, 12, 0, 0, 0, 1,
		 12, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 1, 4, 1, 9);
	SAVE_NBD("status-payload-too-long", 1, 0, 6, 2, 0, 7, 32, 0, 0, 0, 0, 0, 1, 0, 3, 0, 5);
	SAVE_NBD("by-name", 1, 0, 8, 2, 0, 4, 1, 0, 0, 0, 0, 0, 2, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 2,
		 0);
	SAVE_NBD("options", 0, 0, 4, 0, 0, 0, 3, 10, 0, 3, 0, 10, 0, 5, 0, 10, 0, 6, 10, 0, 0, 0, 4,
		 'd', 'i', 's', 'k', 0, 0, 10, 0, 8, 0, 10, 0, 9, 12, 0, 0, 0, 4, 'd', 'i', 's',
		 'k', 0, 0, 0, 0, 10, 0, 2, 0);
	SAVE_NBD("held", 1, 0, 0, 1, 1, 0, 8, 0, 1, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0,
		 0, 0, 0, 0, 16, 0, 7, 0, 1, 6, 0, 9, 0, 7, 0, 128);
	SAVE_NBD("large", 1, 0, 0, 11, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 0, 1, 0, 0, 0, 0,
		 0, 0, 192, 0, 11, 0, 200, 2, 0, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 0, 1, 0, 0, 0, 0,
		 0, 0, 176, 0, 11, 0, 20, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 11, 0, 255, 4, 0, 9);
	SAVE_NBD("hungry", 1, 0, 16, 1, 1, 16, 1, 2, 16, 2, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 2,
		 1, 0, 0, 0, 0, 0, 0, 255, 255, 255, 2, 2, 1, 0, 0, 0, 0, 0, 255, 255, 255, 5, 0,
		 100, 5, 0, 100);
}

/* What somebody between two ends does: see fuzz-auth.c. */
static void auth_scripts(void)
{
	/* What protects client and server. */
	static const uint8_t tcp[] = { 2, 2 }, tls[] = { 6, 6 }, rdma[] = { 0, 0 };
	static const uint8_t relay[] = { 6, 10 }, proxy[] = { 1, 2 }, bridge[] = { 0, 2 };
	static const uint8_t honest[] = { 0, 0, 1, 1, 0, 2, 1, 3 };
	static const uint8_t replayed[] = { 0, 0, 1, 1, 0, 2, 12, 0, 0, 0, 0, 2, 0, 4, 1, 5 };
	static const uint8_t reflected[] = { 1, 0, 0, 0, 0, 1, 1, 1, 1, 2 };
	static const uint8_t changed[] = { 4, 0, 40, 1, 1, 1, 5, 1, 8, 1, 0, 2 };
	static const uint8_t cut[] = { 6, 0, 199, 0, 0, 7, 1, 40 };
	static const uint8_t spliced[] = { 0, 0, 1, 1, 12, 0, 10, 3, 40, 0, 11, 1, 8, 2 };
	static const uint8_t raw[] = { 9, 0, 40, 0x04, 0x81, 2, 0, 0, 0, 0, 0, 8, 0, 4, 1, 0x81, 2,
				       0 };

	save("auth", "honest", tcp, 2, honest, sizeof(honest));
	save("auth", "tls", tls, 2, honest, sizeof(honest));
	save("auth", "rdma", rdma, 2, honest, sizeof(honest));
	save("auth", "relay", relay, 2, honest, sizeof(honest));
	save("auth", "proxy", proxy, 2, honest, sizeof(honest));
	save("auth", "bridge", bridge, 2, honest, sizeof(honest));
	save("auth", "replayed", tcp, 2, replayed, sizeof(replayed));
	save("auth", "reflected", tcp, 2, reflected, sizeof(reflected));
	save("auth", "changed", tcp, 2, changed, sizeof(changed));
	save("auth", "cut", tcp, 2, cut, sizeof(cut));
	save("auth", "spliced", tcp, 2, spliced, sizeof(spliced));
	save("auth", "raw", tcp, 2, raw, sizeof(raw));
}

/* What somebody on the wire of TLS does: see fuzz-tls-stream.c.  0 three times is a handshake. */
static void tls_scripts(void)
{
#define SAVE_TLS(name, ...)                                                                        \
	do {                                                                                       \
		static const uint8_t script[] = { __VA_ARGS__ };                                   \
		save("tls-stream", name, NULL, 0, script, sizeof(script));                         \
	} while (0)
#define SHAKEN 0, 0, 0, 1, 0, 0, 0, 0
	SAVE_TLS("honest", 0, SHAKEN, 1, 9, 0, 1, 0, 40, 1, 5, 0, 0, 13, 7, 0, 13, 0, 70, 0, 11, 0);
	SAVE_TLS("active", 1, SHAKEN, 1, 9, 0, 0, 13, 7, 0, 0, 16, 0);
	SAVE_TLS("chacha", 4, SHAKEN, 1, 9, 0, 0, 13, 0, 78, 0);
	SAVE_TLS("exchange", 12, SHAKEN, 1, 9, 0, 0, 13, 7, 0, 0);
	SAVE_TLS("exchange-active", 13, SHAKEN, 1, 9, 0, 0, 13, 7, 0, 0);
	SAVE_TLS("key-updates", 0, SHAKEN, 9, 0, 1, 9, 0, 0, 9, 1, 1, 8, 0, 0, 13, 3, 0, 0, 13, 4,
		 0, 0);
	SAVE_TLS("cut", 0, SHAKEN, 1, 99, 0, 3, 4, 0, 12, 3, 1, 0, 12, 3, 20, 0, 12, 14, 12);
	SAVE_TLS("repeated", 0, SHAKEN, 1, 9, 0, 1, 8, 0, 2, 5, 255, 2, 12, 2, 12);
	SAVE_TLS("repeated-hello", 0, 0, 5, 0, 2, 12, 0, 0);
	SAVE_TLS("swapped", 0, SHAKEN, 1, 9, 0, 1, 8, 0, 6, 2, 2, 12);
	SAVE_TLS("lost", 0, SHAKEN, 1, 9, 0, 1, 8, 0, 4, 2, 12);
	SAVE_TLS("changed", 1, SHAKEN, 1, 9, 0, 8, 7, 0, 1, 2, 12);
	SAVE_TLS("changed-hello", 0, 17, 0, 12, 8, 9, 0, 1, 0, 0, 0);
	SAVE_TLS("alert", 0, SHAKEN, 10, 2, 80, 1, 9, 0, 0);
	SAVE_TLS("warning", 0, SHAKEN, 10, 1, 90, 1, 9, 0, 0);
	SAVE_TLS("clear-behind", 0, SHAKEN, 15, 12, 7, 5, 23, 3, 3, 0, 1, 12);
	SAVE_TLS("clear", 2, 15, 12, 13, 9, 0, 12, 7, 24, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12);
	SAVE_TLS("clear-refused", 0, 15, 12, 12);
	SAVE_TLS("plain-answer", 3, 7, 24, 18, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'R',
		 'T', 'R', 'S', 't', 'c', 'p', 0, 12, 12);
	/* To a side that requires TLS: "no TLS here", and "accepted". */
	SAVE_TLS("plain-accept", 1, 7, 24, 18, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'R',
		 'T', 'R', 'S', 't', 'c', 'p', 0, 12, 7, 24, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		 0, 0, 0, 'R', 'T', 'R', 'S', 't', 'c', 'p', 0, 12, 12);
	SAVE_TLS("ends", 0, SHAKEN, 1, 9, 0, 11, 1, 4, 0, 0);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 1;
	}
	dir = argv[1];
	setup_messages();
	requests();
	rnbd_messages();
	auth_scripts();
	tls_scripts();
	tcp_streams();
	ctl_scripts();
	ctl_answers();
	save_nbd_all();
	return 0;
}
