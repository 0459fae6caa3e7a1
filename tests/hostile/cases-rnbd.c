/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are wrong on the level of RNBD (doc/protocol.md 8): each is answered with an
 * errno, and the path lives on. */
#include <errno.h>
#include <string.h>

#include "hostile.h"

#define CHUNK_ID 7u

enum kind { IO, OPEN, SESS_INFO, CLOSE, OTHER };

#define RD true
#define WR false
#define SECTORS (8u << 11)		/* disk0 and ro0 of the server under test: 8 MiB */

static const struct rnbd_row {
	const char *name;
	enum kind kind;
	int want;
	bool is_read;
	uint32_t data_len;
	/* IO */
	uint32_t rw, bi_size;
	uint64_t sector;
	uint32_t device;		/* added to the right one */
	/* OPEN */
	const char *export_name;
	uint8_t mode;
	/* any */
	uint16_t type;			/* OTHER */
	uint16_t usr_len;		/* 0: all of the message */
	bool on_ro;			/* the device is open read-only */
	bool before_open;
} rnbd_rows[] = {
	{ "READ", IO, 0, RD, 4096, 0, 4096 },
	{ "WRITE FUA", IO, 0, WR, 4096, 0x201, 4096 },
	{ "WRITE PREFLUSH NOUNMAP", IO, 0, WR, 512, 0xc01, 512 },
	{ "IO before OPEN", IO, -ENOTCONN, RD, 512, 0, 512, .before_open = true },
	{ "FLUSH before OPEN", IO, -ENOTCONN, RD, 0, 2, 0, .before_open = true },
	{ "unknown device", IO, -ENOTCONN, RD, 512, 0, 512, .device = 1 },
	{ "device max", IO, -ENOTCONN, WR, 512, 1, 512, .device = UINT32_MAX },
	{ "device 2^31", IO, -ENOTCONN, WR, 512, 1, 512, .device = 1u << 31 },
	{ "p18 bi_size less than the data", IO, -EINVAL, WR, 1024, 1, 512 },
	{ "p18 bi_size more than the data", IO, -EINVAL, WR, 512, 1, 1024 },
	{ "bi_size max", IO, -EINVAL, RD, 512, 0, UINT32_MAX },
	{ "bi_size 0 with data", IO, -EINVAL, RD, 512, 0, 0 },
	{ "READ without room", IO, -EINVAL, RD, 0, 0, 512 },
	{ "WRITE without data", IO, -EINVAL, WR, 0, 1, 512 },
	{ "READ of nothing", IO, 0, RD, 0, 0, 0 },
	{ "WRITE of nothing", IO, 0, WR, 0, 1, 0 },
	{ "READ of 511", IO, -EINVAL, RD, 511, 0, 511 },
	{ "WRITE of 1", IO, -EINVAL, WR, 1, 1, 1 },
	{ "READ as WRITE", IO, -EINVAL, WR, 512, 0, 512 },
	{ "WRITE as READ", IO, -EINVAL, RD, 512, 1, 512 },
	{ "DISCARD as READ", IO, -EINVAL, RD, 512, 3, 512 },
	{ "WRITE_ZEROES as READ", IO, -EINVAL, RD, 0, 5, 512 },
	{ "p21 SECURE_ERASE", IO, -EOPNOTSUPP, WR, 0, 4, 512 },
	{ "op 6", IO, -EOPNOTSUPP, RD, 512, 6, 512 },
	{ "op 255", IO, -EOPNOTSUPP, WR, 512, 255, 512 },
	{ "flag 12", IO, 0, WR, 512, 0x1001, 512 },
	{ "flag 31", IO, 0, RD, 512, 0x80000000, 512 },
	{ "p17 FLUSH as the kernel sends it", IO, 0, RD, 0, 0x302, 0, UINT64_MAX },
	{ "FLUSH as WRITE", IO, 0, WR, 0, 2, 0 },
	{ "FLUSH with a size", IO, 0, RD, 0, 2, 12345 },
	{ "FLUSH that wants data", IO, -EINVAL, RD, 4096, 2, 4096 },
	{ "FLUSH with data", IO, -EINVAL, WR, 4096, 2, 4096 },
	{ "READ of the last sector", IO, 0, RD, 512, 0, 512, SECTORS - 1 },
	{ "READ past the end", IO, -EIO, RD, 512, 0, 512, SECTORS },
	{ "READ over the end", IO, -EIO, RD, 1024, 0, 1024, SECTORS - 1 },
	{ "READ of sector max", IO, -EIO, RD, 512, 0, 512, UINT64_MAX },
	{ "READ that wraps", IO, -EIO, RD, 1024, 0, 1024, UINT64_MAX },
	{ "READ that wraps in bytes", IO, -EIO, RD, 512, 0, 512, 1ull << 55 },
	{ "WRITE past the end", IO, -EIO, WR, 512, 1, 512, SECTORS },
	{ "WRITE over the end", IO, -EIO, WR, 1024, 1, 1024, SECTORS - 1 },
	{ "WRITE that wraps", IO, -EIO, WR, 1024, 1, 1024, UINT64_MAX },
	{ "WRITE that wraps in bytes", IO, -EIO, WR, 512, 1, 512, (1ull << 55) + 1 },
	{ "DISCARD over the end", IO, -EIO, WR, 0, 3, 1 << 20, SECTORS - 1 },
	{ "DISCARD of 4 GiB", IO, -EIO, WR, 0, 3, UINT32_MAX & ~511u },
	{ "WRITE_ZEROES over the end", IO, -EIO, WR, 0, 5, 1 << 20, SECTORS - 1 },
	{ "WRITE_ZEROES that wraps", IO, -EIO, WR, 0, 5, 1024, UINT64_MAX },
	{ "WRITE on a read-only handle", IO, -EPERM, WR, 512, 1, 512, .on_ro = true },
	{ "DISCARD on a read-only handle", IO, -EPERM, WR, 0, 3, 512, .on_ro = true },
	{ "WRITE_ZEROES on a read-only handle", IO, -EPERM, WR, 0, 5, 512, .on_ro = true },
	{ "READ on a read-only handle", IO, 0, RD, 512, 0, 512, .on_ro = true },
	{ "FLUSH on a read-only handle", IO, 0, RD, 0, 2, 0, .on_ro = true },
	{ "IO of 24 bytes", IO, 0, RD, 512, 0, 512, .usr_len = 24 },
	{ "IO of 23 bytes", IO, -EINVAL, RD, 512, 0, 512, .usr_len = 23 },

	{ "OPEN again", OPEN, 0, RD, 56, .export_name = "disk0", .mode = 1 },
	{ "OPEN unknown", OPEN, -ENOENT, RD, 56, .export_name = "nothing", .mode = 1 },
	{ "OPEN of nothing", OPEN, -EINVAL, RD, 56, .export_name = "", .mode = 1 },
	{ "OPEN with ..", OPEN, -EINVAL, RD, 56, .export_name = "../etc/passwd" },
	{ "OPEN with .. inside", OPEN, -EINVAL, RD, 56, .export_name = "a/../disk0" },
	{ "OPEN of a path", OPEN, -ENOENT, RD, 56, .export_name = "/etc/passwd" },
	{ "OPEN mode 3", OPEN, -EINVAL, RD, 56, .export_name = "disk0", .mode = 3 },
	{ "OPEN mode max", OPEN, -EINVAL, RD, 56, .export_name = "disk0", .mode = 255 },
	{ "OPEN rw of a read-only export", OPEN, -EROFS, RD, 56, .export_name = "ro0", .mode = 1 },
	{ "OPEN migration of a read-only export", OPEN, -EROFS, RD, 56, .export_name = "ro0",
	  .mode = 2 },
	{ "p36 OPEN with room for 55 bytes", OPEN, -EINVAL, RD, 55, .export_name = "disk0",
	  .mode = 1 },
	{ "OPEN with no room", OPEN, -EINVAL, RD, 0, .export_name = "disk0", .mode = 1 },
	{ "OPEN as WRITE", OPEN, -EINVAL, WR, 0, .export_name = "disk0", .mode = 1 },
	{ "OPEN with much room", OPEN, 0, RD, 8192, .export_name = "disk0", .mode = 1 },
	{ "OPEN one byte short", OPEN, -EINVAL, RD, 56, .export_name = "disk0", .mode = 1,
	  .usr_len = 263 },
	{ "OPEN of 4 bytes", OPEN, -EINVAL, RD, 56, .export_name = "disk0", .usr_len = 4 },

	{ "SESS_INFO again", SESS_INFO, 0, RD, 36 },
	{ "p36 SESS_INFO with room for 35 bytes", SESS_INFO, -EINVAL, RD, 35 },
	{ "SESS_INFO with no room", SESS_INFO, -EINVAL, RD, 0 },
	{ "SESS_INFO as WRITE", SESS_INFO, -EINVAL, WR, 0 },
	{ "SESS_INFO with much room", SESS_INFO, 0, RD, 65536 },
	{ "SESS_INFO one byte short", SESS_INFO, -EINVAL, RD, 36, .usr_len = 35 },

	{ "CLOSE unknown", CLOSE, 0, WR, 0, .device = 77 },
	{ "CLOSE max", CLOSE, 0, WR, 0, .device = UINT32_MAX },
	{ "CLOSE one byte short", CLOSE, -EINVAL, WR, 0, .usr_len = 7 },
	{ "CLOSE that wants data", CLOSE, -EINVAL, RD, 4096, .device = 77 },

	{ "type SESS_INFO_RSP", OTHER, -EINVAL, RD, 36, .type = 1 },
	{ "type OPEN_RSP", OTHER, -EINVAL, RD, 56, .type = 3 },
	{ "type 6", OTHER, -EINVAL, WR, 0, .type = 6 },
	{ "type max", OTHER, -EINVAL, RD, 4096, .type = 0xffff },
	{ "half a type", OTHER, -EINVAL, WR, 0, .type = 0, .usr_len = 1 },
	{ "type of 3 bytes", OTHER, -EINVAL, WR, 0, .type = 4, .usr_len = 3 },
};

/* Write the message of @row to @buf; its length. */
static uint32_t build(const struct hpath *p, const struct rnbd_row *row, uint8_t *buf)
{
	const struct rnbd_sess_info info = { .ver = 2 };
	uint32_t device = p->dev.device_id + row->device;
	struct rnbd_msg_open *open = (void *)buf;
	struct rnbd_msg_io *io = (void *)buf;

	switch (row->kind) {
	case IO:
		rnbd_io_encode(io, &(struct rnbd_io){ .device_id = device, .sector = row->sector,
						      .bi_size = row->bi_size });
		io->rw = le32_put(row->rw);
		return sizeof(*io);
	case OPEN:
		expect(!rnbd_open_encode(open, row->export_name, RNBD_ACCESS_RO));
		open->access_mode = row->mode;
		return sizeof(*open);
	case SESS_INFO:
		rnbd_sess_info_encode((void *)buf, RNBD_MSG_SESS_INFO, &info);
		return sizeof(struct rnbd_msg_sess_info);
	case CLOSE:
		rnbd_close_encode((void *)buf, device);
		return sizeof(struct rnbd_msg_close);
	case OTHER:
		break;
	}
	memset(buf, 0, 264);
	buf[0] = (uint8_t)row->type;
	buf[1] = (uint8_t)(row->type >> 8);
	return 264;
}

/* What stands behind an answer's message comes from nobody's memory. */
static void expect_zeroes(const struct hpath *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (p->result[i])
			die("byte %zu of the answer is %#x: not of the message", i, p->result[i]);
	}
}

static void spoil_chunk(struct hpath *p)
{
	struct rnbd_io io = { .device_id = p->dev.device_id, .op = RNBD_OP_WRITE,
			      .bi_size = 131072 };

	expect_outcome(hpath_io(p, 1, CHUNK_ID, &io, NULL), 0);
}

static void rnbd_run(const void *arg)
{
	const struct rnbd_row *row = arg;
	struct hpath *p;
	uint8_t usr[RTRS_USR_MAX];
	struct hreq r = { .cid = row->kind == IO ? 1 : 0, .buf_id = CHUNK_ID, .usr = usr,
			  .is_read = row->is_read, .data_len = row->data_len };

	if (row->before_open) {
		p = hpath_new();
		hpath_up(p);
	} else {
		p = hpath_ready(row->on_ro ? "ro0" : "disk0",
				row->on_ro ? RNBD_ACCESS_RO : RNBD_ACCESS_RW);
	}
	if (!row->before_open && !row->on_ro)
		spoil_chunk(p);
	memset(p->result, 0xa5, HRESULT_LEN);
	r.usr_len = build(p, row, usr);
	if (row->usr_len)
		r.usr_len = row->usr_len;
	expect_outcome(hreq_do(p, &r), row->want);
	if (row->kind == OPEN && !row->want)
		expect_zeroes(p, sizeof(struct rnbd_msg_open_rsp), row->data_len);
	if (row->kind == SESS_INFO && !row->want)
		expect_zeroes(p, sizeof(struct rnbd_msg_sess_info), row->data_len);
	/* An error sends no data. */
	for (size_t i = row->want ? 0 : row->data_len; i < row->data_len + 4096; i++)
		expect(p->result[i] == 0xa5);
	/* the path lives, and the same chunk works */
	expect_outcome(hpath_sess_info(p), 0);
	if (!row->before_open && !row->on_ro)
		good_io(p);
}

const struct hgroup rnbd_cases = HGROUP("rnbd", rnbd_rows, rnbd_run);
