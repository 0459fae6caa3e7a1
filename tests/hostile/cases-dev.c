/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, sharing and requests in numbers: what takes more than one message. */
#include <errno.h>
#include <string.h>

#include "hostile.h"
#include "rtrs-imm.h"

static void open_twice_is_one_handle(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	uint32_t id = p->dev.device_id;

	expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RO), 0);
	expect(p->dev.device_id == id);
	good_io(p);
}

static void second_writer(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW), *other = hpath_new();

	hpath_up(other);
	expect_outcome(hpath_open(other, "disk0", RNBD_ACCESS_RW), -EPERM);
	expect_outcome(hpath_open(other, "disk0", RNBD_ACCESS_RO), 0);
	good_io(p);
}

static void third_writer(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW), *other = hpath_new();
	struct hpath *third = hpath_new();

	hpath_up(other);
	hpath_up(third);
	expect_outcome(hpath_open(other, "disk0", RNBD_ACCESS_MIGRATION), 0);
	expect_outcome(hpath_open(third, "disk0", RNBD_ACCESS_MIGRATION), -EPERM);
	expect_outcome(hpath_open(third, "disk0", RNBD_ACCESS_RW), -EPERM);
	good_io(p);
	good_io(other);
}

static int close_device(struct hpath *p)
{
	struct rnbd_msg_close m;
	struct hreq r = { .usr = &m, .usr_len = sizeof(m) };

	rnbd_close_encode(&m, p->dev.device_id);
	return hreq_do(p, &r);
}

static void io_after_close(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	struct rnbd_io io = { .device_id = p->dev.device_id, .op = RNBD_OP_READ, .bi_size = 512 };

	expect_outcome(close_device(p), 0);
	expect_outcome(hpath_io(p, 1, 3, &io, NULL), -ENOTCONN);
	expect_outcome(close_device(p), 0);
	expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RW), 0);
	good_io(p);
}

/* Device ids are per session: those of others open nothing. */
static void device_of_another_session(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW), *other = hpath_new();
	struct rnbd_io io = { .device_id = p->dev.device_id, .op = RNBD_OP_READ, .bi_size = 512 };

	hpath_up(other);
	expect_outcome(hpath_io(other, 1, 3, &io, NULL), -ENOTCONN);
}

/* A WRITE that is not the owner's: the key of one session is used on the connection of another. */
static void key_of_another_session(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW), *other = hpath_new();
	uint8_t garbage[512];

	memset(garbage, 0xff, sizeof(garbage));
	hpath_up(other);
	hpath_write(other, 1, garbage, sizeof(garbage), p->rbufs[3].addr, p->rbufs[3].rkey, false,
		    0);
	/* it may be a key of the other's own table, but never one for this place */
	hpath_wait_closed(other);
	good_io(p);
}

static struct rnbd_msg_io read_msg;

static struct hreq big_read(const struct hpath *p, uint32_t buf_id)
{
	const struct rnbd_io io = { .device_id = p->dev.device_id, .op = RNBD_OP_READ,
				    .bi_size = 131072 };

	rnbd_io_encode(&read_msg, &io);
	return (struct hreq){ .cid = 1, .buf_id = buf_id, .is_read = true, .data_len = io.bi_size,
			      .usr = &read_msg, .usr_len = sizeof(read_msg) };
}

/* Allowed: the first may be answered before the second arrives; then both are. */
static void one_chunk_twice(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	struct hreq r = big_read(p, 5);

	for (unsigned i = 0; i < 8; i++)
		hreq_post(p, &r);
	HWAIT(p->answers[5].n == 8 || hpath_any_closed(p));
}

static void one_chunk_on_two_connections(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	struct hreq r = big_read(p, 5);

	for (unsigned i = 0; i < 8; i++) {
		r.cid = i & 1;
		hreq_post(p, &r);
	}
	HWAIT(p->answers[5].n == 8 || hpath_any_closed(p));
}

static void every_chunk_at_once(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	struct hreq r = big_read(p, 0);

	for (r.buf_id = 0; r.buf_id < p->geom.queue_depth; r.buf_id++)
		hreq_post(p, &r);
	for (r.buf_id = 0; r.buf_id < p->geom.queue_depth; r.buf_id++)
		expect_outcome(hpath_wait_answer(p, r.buf_id), 0);
	good_io(p);
}

static void many_heartbeats(void)
{
	const unsigned n = 700;		/* more than the server keeps receives */
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	for (unsigned i = 0; i < n; i++) {
		hpath_write(p, 0, NULL, 0, 0, 0, true,
			    (uint32_t)RTRS_HB_MSG_IMM << RTRS_IMM_PAYL_BITS);
		hpump(0);
	}
	HWAIT(p->hb_acks == n);
	good_io(p);
}

static void heartbeat_on_connection_1(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	hpath_write(p, 1, NULL, 0, 0, 0, true, (uint32_t)RTRS_HB_MSG_IMM << RTRS_IMM_PAYL_BITS);
	hpath_wait_closed(p);
}

static void unasked_heartbeat_answer(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	hpath_write(p, 0, NULL, 0, 0, 0, true, (uint32_t)RTRS_HB_ACK_IMM << RTRS_IMM_PAYL_BITS);
	good_io(p);
}

static void empty_send(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	hpath_send(p, 1, NULL, 0);
	hpath_wait_closed(p);
}

static void send_with_payload(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	hpath_send(p, 1, "RKEY_RSP", 8);
	hpath_wait_closed(p);
}

static void send_with_invalidate(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&p->cons[1],
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .invalidate_rkey = p->rbufs[0].rkey };

	expect(!fab_post_send(p->cons[1].conn, &wr));
	hpath_wait_closed(p);
}

/* Nobody is told; it is the client's own memory. */
static void write_without_immediate(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	hpath_write(p, 1, "x", 1, p->rbufs[9].addr, p->rbufs[9].rkey, false, 0);
	good_io(p);
}

static const struct dev_row {
	const char *name;
	void (*run)(void);
} dev_rows[] = {
	{ "OPEN twice is one handle", open_twice_is_one_handle },
	{ "second writer", second_writer },
	{ "third writer", third_writer },
	{ "IO after CLOSE", io_after_close },
	{ "device of another session", device_of_another_session },
	{ "key of another session", key_of_another_session },
	{ "one chunk twice", one_chunk_twice },
	{ "one chunk on two connections", one_chunk_on_two_connections },
	{ "every chunk at once", every_chunk_at_once },
	{ "many heartbeats", many_heartbeats },
	{ "heartbeat on connection 1", heartbeat_on_connection_1 },
	{ "unasked heartbeat answer", unasked_heartbeat_answer },
	{ "empty SEND", empty_send },
	{ "SEND with payload", send_with_payload },
	{ "SEND_WITH_INV", send_with_invalidate },
	{ "write without immediate", write_without_immediate },
};

static void dev_run(const void *arg)
{
	((const struct dev_row *)arg)->run();
}

const struct hgroup dev_cases = HGROUP("dev", dev_rows, dev_run);
