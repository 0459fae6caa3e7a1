/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD decoders, as the server (messages) and the client (answers) call them.  Input: one byte
 * direction, 32 bits data_len, one byte "as an answer", the message. */
#include <errno.h>

#include "fuzz.h"
#include "rnbd-ext.h"
#include "rnbd-msg.h"

static void sess_info(const uint8_t *buf, size_t len, enum rnbd_msg_type type)
{
	struct rnbd_sess_info info, again;
	struct rnbd_msg_sess_info m;

	if (rnbd_sess_info_decode(buf, len, &info))
		return;
	must(info.ext.valid || (!info.ext.features && !info.ext.instance && !info.ext.host));
	rnbd_sess_info_encode(&m, type, &info);
	must(!rnbd_sess_info_decode(&m, sizeof(m), &again));
	must(info.ver == again.ver && info.ext.valid == again.ext.valid);
	must(info.ext.features == again.ext.features);
	must(!memcmp(info.ext.boot_id, again.ext.boot_id, sizeof(info.ext.boot_id)));
	must(info.ext.instance == again.ext.instance && info.ext.host == again.ext.host);
}

static void open_msg(const uint8_t *buf, size_t len)
{
	struct rnbd_open open, again;
	struct rnbd_msg_open m;

	if (rnbd_open_decode(buf, len, &open))
		return;
	must(open.name[0] && memchr(open.name, '\0', sizeof(open.name)));
	must(!rnbd_open_encode(&m, open.name, open.mode));
	must(!rnbd_open_decode(&m, sizeof(m), &again));
	must(open.mode == again.mode && !strcmp(open.name, again.name));
}

static void open_rsp(const uint8_t *buf, size_t len)
{
	struct rnbd_dev_info info;

	if (rnbd_open_rsp_decode(buf, len, &info))
		return;
	must(is_pow2(info.logical_block_size) && info.logical_block_size >= RNBD_SECTOR_SIZE);
	must(info.nsectors <= INT64_MAX / RNBD_SECTOR_SIZE);
}

/* A server's answer comes out of the client as it went in, name for name. */
static void list_rsp(const uint8_t *buf, size_t len)
{
	char name[RNBD_NAME_MAX], again[RNBD_NAME_MAX];
	uint8_t room[RNBD_LIST_ROOM_MIN];
	struct rnbd_list_reader r, r2;
	struct rnbd_list_writer w;

	if (rnbd_list_rsp_decode(buf, len, &r))
		return;
	must(r.n || !r.left);
	for (uint32_t i = 0; i < r.n && !rnbd_list_rsp_name(&r, name); i++) {
		must(*name && memchr(name, '\0', sizeof(name)) && r.at <= r.end);
		rnbd_list_begin(&w, room, sizeof(room));
		must(rnbd_list_add(&w, name));
		rnbd_list_end(&w, r.left);
		must(!rnbd_list_rsp_decode(room, sizeof(room), &r2) && r2.n == 1 &&
		     r2.left == r.left);
		must(!rnbd_list_rsp_name(&r2, again) && !strcmp(name, again));
	}
}

/* What a server answers about @asked bytes comes out as it went in. */
static void extents(const uint8_t *buf, size_t len, uint32_t asked)
{
	uint8_t room[RNBD_EXTENTS_ROOM_MIN];
	struct rnbd_extents_writer w;
	int n = rnbd_extents_decode(buf, len, asked);
	uint64_t sum = 0;

	must(n == -EINVAL || n > 0);
	for (int i = 0; i < n; i++) {
		struct rnbd_extent e = rnbd_extents_get(buf, (unsigned)i), again;

		sum += e.len;
		rnbd_extents_begin(&w, room, sizeof(room));
		must(rnbd_extents_add(&w, e.len, e.what));
		rnbd_extents_end(&w);
		must(rnbd_extents_decode(room, sizeof(room), e.len) == 1);
		again = rnbd_extents_get(room, 0);
		must(again.len == e.len && again.what == e.what);
	}
	must(sum <= asked);
}

static void io(const uint8_t *buf, size_t len, uint32_t data_len, bool is_read)
{
	struct rnbd_io io, again;
	struct rnbd_msg_io m;
	int ret = rnbd_io_decode(buf, len, data_len, is_read, &io);

	must(!ret || ret == -EINVAL || ret == -EOPNOTSUPP);
	if (ret)
		return;
	must(io.op != RNBD_OP_SECURE_ERASE &&
	     (io.op <= RNBD_OP_WRITE_ZEROES || io.op == RNBD_OP_EXTENTS));
	must(!(io.flags & ~RNBD_F_ALL) && io.bi_size % RNBD_SECTOR_SIZE == 0);
	must(!data_len || data_len == io.bi_size || io.op == RNBD_OP_EXTENTS);
	must(io.op != RNBD_OP_EXTENTS || (io.bi_size && data_len >= RNBD_EXTENTS_ROOM_MIN));
	must(io.op != RNBD_OP_FLUSH || (!io.sector && !io.bi_size));
	must(io.op != RNBD_OP_READ || is_read);
	rnbd_io_encode(&m, &io);
	must(!rnbd_io_decode(&m, sizeof(m), data_len, is_read, &again));
	must(io.op == again.op && io.flags == again.flags && io.sector == again.sector &&
	     io.bi_size == again.bi_size && io.device_id == again.device_id &&
	     io.tag == again.tag && io.tag == rnbd_io_tag(buf, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	bool is_read = fuzz_take(&in, 1) & 1;
	uint32_t data_len = (uint32_t)fuzz_take(&in, 4);
	bool answer = fuzz_take(&in, 1) & 1;
	uint32_t device_id, first;
	uint8_t *buf = fuzz_rest(&in);

	if (answer) {
		sess_info(buf, in.left, RNBD_MSG_SESS_INFO_RSP);
		open_rsp(buf, in.left);
		list_rsp(buf, in.left);
		extents(buf, in.left, data_len);
	}
	switch (rnbd_msg_type(buf, in.left)) {
	case RNBD_MSG_SESS_INFO:
		sess_info(buf, in.left, RNBD_MSG_SESS_INFO);
		break;
	case RNBD_MSG_OPEN:
		open_msg(buf, in.left);
		break;
	case RNBD_MSG_IO:
		io(buf, in.left, data_len, is_read);
		break;
	case RNBD_MSG_CLOSE:
		must(!rnbd_close_decode(buf, in.left, &device_id) == (in.left >= 8));
		break;
	case RNBD_MSG_LIST:
		must(!rnbd_list_decode(buf, in.left, &first) == (in.left >= 8));
		break;
	default:
		break;
	}
	free(buf);
	return 0;
}
