/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes seeds of fuzz-rtrs-msg, fuzz-rtrs-req and fuzz-rnbd-msg: valid messages, one a file, with
 * what the target takes in front of each.  `make fuzz-corpus` runs it on the source tree after a
 * change of a message.  The seeds of other targets are scripts, of bytes that the head of the
 * target explains: od -An -tu1 shows one, and printf makes one. */
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
	return 0;
}
