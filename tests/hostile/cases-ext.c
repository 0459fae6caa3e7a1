/* SPDX-License-Identifier: BSD-3-Clause */
/* Our extension of RNBD (rnbd-ext.h): what it is asked with, what nobody gets who has not asked for
 * it, and answers with too little room; and clients that are lost with all chunks in flight. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "hostile.h"
#include "rnbd-ext.h"
#include "tcp-frame.h"

/* A message on connection 0, with chunk 0. */
static int say(struct hpath *p, bool is_read, const void *usr, uint32_t usr_len, uint32_t data_len)
{
	const struct hreq r = { .is_read = is_read, .data_len = data_len, .usr = usr,
				.usr_len = usr_len, .data = p->result };

	return hreq_do(p, &r);
}

/* The answer to @info in its place. */
static void sess_info(struct hpath *p, struct rnbd_sess_info *info)
{
	struct rnbd_msg_sess_info m;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, info);
	expect_outcome(say(p, true, &m, sizeof(m), sizeof(m)), 0);
	expect(!rnbd_sess_info_decode(p->result, sizeof(m), info));
}

/* A client that asks for @features. */
static struct hpath *asker(uint32_t features)
{
	struct rnbd_sess_info info = { .ver = 2, .ext = { .valid = true, .features = features } };
	struct hpath *p = hpath_new();

	hpath_up(p);
	sess_info(p, &info);
	return p;
}

static void asked_for(void)
{
	struct hpath *p = hpath_new();
	struct rnbd_sess_info info = { .ver = 9 };
	struct rnbd_ext first;

	hpath_up(p);
	sess_info(p, &info);
	expect_eq(info.ver, RNBD_PROTO_VER_MAJOR);
	expect(!info.ext.valid && !info.ext.instance);
	info = (struct rnbd_sess_info){ .ver = 1, .ext = { .valid = true } };
	sess_info(p, &info);
	expect(info.ver == 1 && info.ext.valid && info.ext.instance);
	expect_eq(info.ext.features, RNBD_EXT_ALL);
	first = info.ext;
	info.ext = (struct rnbd_ext){ .valid = true };
	sess_info(p, &info);
	expect(!memcmp(first.boot_id, info.ext.boot_id, sizeof(first.boot_id)));
	expect_eq(info.ext.instance, first.instance);
}

/* Ask for the names from @first on. */
static int list(struct hpath *p, uint32_t first, uint32_t room)
{
	struct rnbd_msg_list m;

	rnbd_list_encode(&m, first);
	memset(p->result, 0xa5, 4096);
	return say(p, true, &m, sizeof(m), room);
}

/* Of three exports the answer has @n, and @left do not fit; behind the names is nothing. */
static void expect_list(struct hpath *p, uint32_t first, uint32_t room, unsigned n, unsigned left)
{
	static const char *const names[] = { "disk0", "ro0", "good" };
	struct rnbd_list_reader r;
	char name[RNBD_NAME_MAX];

	expect_outcome(list(p, first, room), 0);
	expect(!rnbd_list_rsp_decode(p->result, room, &r));
	expect_eq(r.n, n);
	expect_eq(r.left, left);
	for (unsigned i = 0; i < n; i++) {
		expect(!rnbd_list_rsp_name(&r, name));
		expect(!strcmp(name, names[first + i]));
	}
	for (; r.at < r.end; r.at++)
		expect_eq(*r.at, 0);
}

static void lists(void)
{
	struct hpath *p = hpath_new();
	struct rnbd_msg_list m;

	hpath_up(p);
	expect_outcome(list(p, 0, 4096), -EINVAL);	/* it has not said that it can */
	p = asker(RNBD_EXT_LIST);
	expect_list(p, 0, 4096, 3, 0);
	expect_list(p, 2, RNBD_LIST_ROOM_MIN, 1, 0);
	expect_list(p, 3, 4096, 0, 0);
	expect_list(p, UINT32_MAX, 4096, 0, 0);
	/* too little room, or none; cut off */
	expect_outcome(list(p, 0, RNBD_LIST_ROOM_MIN - 1), -EINVAL);
	rnbd_list_encode(&m, 0);
	expect_outcome(say(p, false, &m, sizeof(m), 0), -EINVAL);
	expect_outcome(say(p, true, &m, sizeof(m) - 1, 4096), -EINVAL);
}

/* Data to the server means nothing, and data from there is zero, as much as fits a request. */
static void probes(void)
{
	struct hpath *p = hpath_new();
	uint32_t full = 131072;
	struct rnbd_msg_probe m;

	rnbd_probe_encode(&m);
	hpath_up(p);
	expect_outcome(say(p, true, &m, sizeof(m), 4096), -EINVAL);
	p = asker(RNBD_EXT_PROBE);
	memset(p->result, 0xa5, full);
	expect_outcome(say(p, false, &m, sizeof(m), full), 0);
	expect_outcome(say(p, true, &m, sizeof(m), full), 0);
	for (uint32_t i = 0; i < full; i++)
		expect_eq(p->result[i], 0);
	expect_outcome(say(p, true, &m, sizeof(m), 0), 0);
}

/* Ask what @len bytes from @off on are, of a device with @id. */
static int extents(struct hpath *p, uint32_t id, uint64_t off, uint32_t len, uint32_t room)
{
	const struct rnbd_io io = { .device_id = id, .op = RNBD_OP_EXTENTS,
				    .sector = off / RNBD_SECTOR_SIZE, .bi_size = len };
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	memset(p->result, 0xa5, 4096);
	return say(p, true, &m, sizeof(m), room);
}

/* Holes around 4 KiB of data; and it is a question, which changes nothing. */
static void asks_for_extents(void)
{
	const uint32_t len = 1 << 20, at = 65536, hole = RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO;
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	uint32_t id = p->dev.device_id;
	struct rnbd_io io = { .device_id = id, .op = RNBD_OP_DISCARD, .bi_size = len };
	int n;

	expect_outcome(extents(p, id, 0, len, 4096), -EOPNOTSUPP);
	hpath_close(p);
	p = asker(RNBD_EXT_EXTENTS);
	expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RW), 0);
	io.device_id = id = p->dev.device_id;
	expect_outcome(hpath_io(p, 1, 1, &io, NULL), 0);
	io = (struct rnbd_io){ id, RNBD_OP_WRITE, 0, at / RNBD_SECTOR_SIZE, 4096, 0, 0 };
	expect_outcome(hpath_io(p, 1, 1, &io, NULL), 0);
	expect_outcome(extents(p, id, 0, len, 4096), 0);
	n = rnbd_extents_decode(p->result, 4096, len);
	expect_eq(n, 3);
	for (int i = 0; i < n; i++)
		expect_eq(rnbd_extents_get(p->result, i).what, i == 1 ? 0 : hole);
	expect_eq(rnbd_extents_get(p->result, 0).len, at);
	expect_eq(rnbd_extents_get(p->result, 1).len, 4096);
	for (unsigned i = 32; i < 4096; i++)	/* nothing of what was there */
		expect_eq(p->result[i], 0);
	expect_outcome(extents(p, id, 0, len, RNBD_EXTENTS_ROOM_MIN), 0);
	expect_eq(rnbd_extents_decode(p->result, RNBD_EXTENTS_ROOM_MIN, len), 1);
	/* beyond the end; of nothing; without room; not open */
	expect_outcome(extents(p, id, p->dev.nsectors * RNBD_SECTOR_SIZE - 512, 1024, 4096), -EIO);
	expect_outcome(extents(p, id, 0, 0, 4096), -EINVAL);
	expect_outcome(extents(p, id, 0, 512, RNBD_EXTENTS_ROOM_MIN - 1), -EINVAL);
	expect_outcome(extents(p, id + 1, 0, 512, 4096), -ENOTCONN);
	io.op = RNBD_OP_READ;
	expect_outcome(hpath_io(p, 1, 1, &io, NULL), 0);
	expect(p->result[0] == 0x5a && p->result[4095] == 0x5a);
}

/* Lost with a WRITE of each chunk in flight, again and again.  What is there at the end is what was
 * written last, never an older copy that was still on its way. */
static void churn(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	unsigned depth = p->geom.queue_depth, lives = 30;
	static uint8_t data[4096];
	struct rnbd_msg_io m;

	for (unsigned life = 1; life <= lives; life++) {
		for (unsigned i = 0; i < depth; i++) {
			const struct rnbd_io io = { p->dev.device_id, RNBD_OP_WRITE,
						    i % 16 ? 0 : RNBD_F_FUA, i * 8, 4096, 0, 0 };
			const struct hreq r = { .cid = (i + life) % 2, .buf_id = i, .usr = &m,
						.usr_len = sizeof(m), .data_len = sizeof(data),
						.data = data };

			rnbd_io_encode(&m, &io);
			memset(data, (int)(life * 31 + i), sizeof(data));
			hreq_post(p, &r);
		}
		if (life % 3 || life == lives)	/* some answered, some not even arrived */
			expect_outcome(hpath_wait_answer(p, life % depth), 0);
		if (life == lives)
			break;
		hpath_reset(p);
		p->recon_cnt++;
		hpath_up(p);
		expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RW), 0);
	}
	for (unsigned i = 0; i < depth; i++) {
		const struct rnbd_io io = { p->dev.device_id, RNBD_OP_READ, 0, i * 8, 4096, 0, 0 };

		expect_outcome(hpath_wait_answer(p, i), 0);
		expect_outcome(hpath_io(p, 1, i, &io, NULL), 0);
		for (unsigned at = 0; at < 4096; at++)
			expect_eq(p->result[at], (uint8_t)(lives * 31 + i));
	}
}

/* The end of a stream right behind a whole frame, in one segment: one event tells of both. */
static void end_behind_a_frame(void)
{
	const struct tcp_frame f = { .op = TCP_FRAME_RDMA_WRITE };
	struct hpath *p = hpath_new();
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	int fd;

	if (!over_tcp())
		skip();
	hpath_up(p);
	fd = fab_conn_fd(p->cons[1].conn);
	tcp_frame_encode(hdr, &f);
	expect_eq(send(fd, hdr, sizeof(hdr), MSG_MORE), sizeof(hdr));
	expect_eq(shutdown(fd, SHUT_WR), 0);
	hpath_wait_closed(p);		/* heartbeats go on, so nothing else ends it */
}

static const struct ext_row {
	const char *name;
	void (*run)(void);
} ext_rows[] = {
	{ "SESS_INFO asks for the extension", asked_for },
	{ "LIST", lists },
	{ "PROBE", probes },
	{ "EXTENTS", asks_for_extents },
	{ "lost with every chunk in flight", churn },
	{ "end behind a whole frame", end_behind_a_frame },
};

static void ext_run(const void *arg)
{
	((const struct ext_row *)arg)->run();
}

const struct hgroup ext_cases = HGROUP("ext", ext_rows, ext_run);
