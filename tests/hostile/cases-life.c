/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that vanish, that come back, and that say nothing (doc/decisions.md D14).
 *
 * A case that vanishes returns at the chosen step: its process ends and the kernel closes its
 * sockets.  A case that comes back keeps the sockets of its former life open and silent. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"
#include "raw.h"
#include "rtrs-hb.h"
#include "rtrs-imm.h"

/* ---- vanish ---- */

static void after_tcp_connect(void)
{
	raw_connect();
}

static void in_a_header(void)
{
	uint8_t buf[RAW_FRAME_MAX];

	raw_connect_frame(buf);
	raw_send(raw_connect(), buf, 11);
}

static void in_the_private_data(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	size_t len = raw_connect_frame(buf);

	raw_send(raw_connect(), buf, len - 1);
}

static void before_the_accept(void)
{
	uint8_t buf[RAW_FRAME_MAX];

	raw_send(raw_connect(), buf, raw_connect_frame(buf));
}

static void after_the_accept(void)
{
	raw_handshake(raw_connect());
}

static void in_info_req(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	int fd = raw_connect();

	raw_handshake(fd);
	raw_send(fd, buf, raw_info_frame(buf, 0) / 2);
}

static void before_info_rsp(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	int fd = raw_connect();

	raw_handshake(fd);
	raw_send(fd, buf, raw_info_frame(buf, 0));
}

static void in_service(void)
{
	struct rtrs_region chunks;
	int fd = raw_connect();

	raw_handshake(fd);
	raw_info(fd, &chunks);
}

static void in_a_write(void)
{
	struct tcp_frame f = { .op = TCP_FRAME_RDMA_WRITE_WITH_IMM, .length = 131072 };
	static uint8_t buf[TCP_FRAME_HDR_LEN + 5000];
	struct rtrs_region chunks;
	int fd = raw_connect();

	raw_handshake(fd);
	raw_info(fd, &chunks);
	f.addr = chunks.addr;
	f.rkey = chunks.key;
	tcp_frame_encode(buf, &f);
	raw_send(fd, buf, sizeof(buf));
}

/* A reset instead of an end. */
static void by_reset(void)
{
	struct linger now = { .l_onoff = 1 };
	struct rtrs_region chunks;
	int fd = raw_connect();

	raw_handshake(fd);
	raw_info(fd, &chunks);
	expect(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	close(fd);
}

/* It sends no more but goes on listening. */
static void half_closed(void)
{
	struct rtrs_region chunks;
	int fd = raw_connect();

	raw_handshake(fd);
	raw_info(fd, &chunks);
	expect(!shutdown(fd, SHUT_WR));
	raw_expect_end(fd);
}

static void one_connection_of_three(void)
{
	struct hpath *p = hpath_new();

	p->cid_num = 3;
	hpath_connect_all(p);
	fab_disconnect(p->cons[1].conn);
	hpath_wait_closed(p);
}

static void one_connection_in_service(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW);

	fab_disconnect(p->cons[1].conn);
	hpath_wait_closed(p);
}

static void post_all(struct hpath *p, enum rnbd_io_op op)
{
	struct rnbd_io io = { .device_id = p->dev.device_id, .op = op, .bi_size = 131072,
			      .flags = op == RNBD_OP_WRITE ? RNBD_F_FUA : 0 };
	unsigned n = op == RNBD_OP_WRITE ? 50 : p->geom.queue_depth;
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	for (unsigned i = 0; i < n; i++) {
		const struct hreq r = { .cid = 1, .buf_id = i, .is_read = op == RNBD_OP_READ,
					.data_len = io.bi_size, .usr = &m, .usr_len = sizeof(m) };

		hreq_post(p, &r);
	}
}

static void with_reads_in_flight(void)
{
	post_all(hpath_ready("disk0", RNBD_ACCESS_RW), RNBD_OP_READ);
}

static void with_writes_in_flight(void)
{
	post_all(hpath_ready("disk0", RNBD_ACCESS_RW), RNBD_OP_WRITE);
}

/* One byte at a time is slow and right. */
static void dribble(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	struct rtrs_region chunks;
	int fd = raw_connect();
	size_t len = raw_connect_frame(buf);

	for (size_t i = 0; i < len; i++)
		raw_send(fd, buf + i, 1);
	raw_expect_accept(fd);
	len = raw_info_frame(buf, 0);
	for (size_t i = 0; i < len; i++)
		raw_send(fd, buf + i, 1);
	raw_expect_info(fd, &chunks);
	expect(chunks.len);
}

static const struct life_row {
	const char *name;
	void (*run)(void);
} vanish_rows[] = {
	{ "after connect", after_tcp_connect },
	{ "in a header", in_a_header },
	{ "in the private data", in_the_private_data },
	{ "before ACCEPT", before_the_accept },
	{ "after ACCEPT", after_the_accept },
	{ "in INFO_REQ", in_info_req },
	{ "before INFO_RSP", before_info_rsp },
	{ "in service", in_service },
	{ "in a WRITE", in_a_write },
	{ "by reset", by_reset },
	{ "half closed", half_closed },
	{ "one connection of three in set-up", one_connection_of_three },
	{ "one connection in service", one_connection_in_service },
	{ "with READs in flight", with_reads_in_flight },
	{ "with WRITEs in flight", with_writes_in_flight },
	{ "no: byte by byte", dribble },
};

static void life_run(const void *arg)
{
	((const struct life_row *)arg)->run();
}

const struct hgroup vanish_cases = HGROUP("vanish", vanish_rows, life_run);

/* ---- come back ---- */

#define COMEBACK_CONS 4

enum reached { CONS, INFO_SENT, UP, DEVICE_OPEN, IO_IN_FLIGHT };

/* How far the former life came: @ncons connections, or one of the later steps.  @close: it hangs up
 * before the new one begins; else its sockets stay open and silent.  @same_try: the new life counts
 * its attempts from the start, as a program that was started again does. */
static const struct comeback_row {
	const char *name;
	enum reached reached;
	unsigned ncons;
	bool close, same_try;
} comeback_rows[] = {
	{ "after connection 0 of 4", CONS, 1 },
	{ "after connection 1 of 4", CONS, 2 },
	{ "after connection 3 of 4", CONS, 4 },
	{ "after connection 0 of 4, hung up", CONS, 1, .close = true },
	{ "after connection 3 of 4, hung up", CONS, 4, .close = true },
	{ "after INFO_REQ", INFO_SENT, 4 },
	{ "after INFO_REQ, hung up", INFO_SENT, 4, .close = true },
	{ "in service", UP, 4 },
	{ "in service, hung up", UP, 4, .close = true },
	{ "in service, first attempt", UP, 4, .same_try = true },
	{ "in service, hung up, first attempt", UP, 4, .close = true, .same_try = true },
	{ "with a device", DEVICE_OPEN, 4 },
	{ "with a device, hung up", DEVICE_OPEN, 4, .close = true },
	{ "with IO in flight", IO_IN_FLIGHT, 4 },
	{ "with IO in flight, hung up", IO_IN_FLIGHT, 4, .close = true },
};

static void former_life(struct hpath *p, const struct comeback_row *row)
{
	struct rtrs_msg_info_req m;

	for (unsigned cid = 0; cid < row->ncons; cid++)
		expect_outcome(hpath_connect(p, cid), 0);
	if (row->reached == INFO_SENT) {
		rtrs_info_req_encode(&m, p->name);
		hpath_post_info_recv(p);
		hpath_send(p, 0, &m, sizeof(m));
	}
	if (row->reached >= UP)
		expect_outcome(hpath_info(p), 0);
	if (row->reached >= DEVICE_OPEN) {
		expect_outcome(hpath_sess_info(p), 0);
		expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RW), 0);
	}
	if (row->reached == IO_IN_FLIGHT)
		post_all(p, RNBD_OP_WRITE);
}

static void comeback_run(const void *arg)
{
	const struct comeback_row *row = arg;
	struct hpath *p = hpath_new(), *again = hpath_new();
	uint64_t start;

	p->cid_num = again->cid_num = COMEBACK_CONS;
	memcpy(again->sess_uuid, p->sess_uuid, RTRS_UUID_LEN);
	memcpy(again->paths_uuid, p->paths_uuid, RTRS_UUID_LEN);
	memcpy(again->name, p->name, sizeof(p->name));
	again->recon_cnt = (uint16_t)(p->recon_cnt + !row->same_try);
	former_life(p, row);
	for (unsigned cid = 0; row->close && cid < row->ncons; cid++)
		fab_disconnect(p->cons[cid].conn);

	start = hnow_ms();
	hpath_up(again);
	expect_outcome(hpath_sess_info(again), 0);
	expect_outcome(hpath_open(again, "disk0", RNBD_ACCESS_RW), 0);
	good_io(again);
	/* "well under one second", by the clock of a healthy machine (doc/decisions.md D14) */
	if (hnow_ms() - start > hrun.timeout_ms / 5)
		die("back after %llu ms", (unsigned long long)(hnow_ms() - start));
	hpath_wait_closed(p);
}

const struct hgroup comeback_cases = HGROUP("comeback", comeback_rows, comeback_run);

/* ---- silence; run at once, because each takes the server's time-out.  That of paths in set-up is
 * in tests/sim/test-sim-srv.c, by another clock ---- */

static void expect_end_within(int fd, unsigned seconds)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint8_t buf[1024];
	ssize_t n = 1;

	while (n > 0) {
		if (poll(&pfd, 1, (int)seconds * 1000) != 1)
			die("no end after %u s", seconds);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	}
}

static void silent_stranger(void)
{
	expect_end_within(raw_connect(), 20);
}

static void silent_in_a_header(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	int fd = raw_connect();

	raw_connect_frame(buf);
	raw_send(fd, buf, 20);
	expect_end_within(fd, 20);
}

/* A byte a second must not keep a stranger alive. */
static void trickle(void)
{
	struct pollfd pfd = { .events = POLLIN };
	uint8_t buf[RAW_FRAME_MAX];

	raw_connect_frame(buf);
	pfd.fd = raw_connect();
	for (unsigned i = 0; i < 30; i++) {
		if (send(pfd.fd, buf + i, 1, MSG_NOSIGNAL) != 1 || poll(&pfd, 1, 1000) == 1)
			return;
	}
	die("a stranger lives after 30 s");
}

static void silent_before_info(void)
{
	int fd = raw_connect();

	raw_handshake(fd);
	expect_end_within(fd, 60);
}

static void silent_in_info(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	int fd = raw_connect();

	raw_handshake(fd);
	raw_send(fd, buf, raw_info_frame(buf, 0) - 1);
	expect_end_within(fd, 60);
}

static void heartbeats_unanswered(void)
{
	struct hpath *p = hpath_new();
	uint64_t start = hnow_ms();

	p->mute = true;
	hpath_up(p);
	while (!hpath_any_closed(p)) {
		if (!hpump(start + 60000))
			die("a mute client lives after 60 s");
	}
	/* doc/protocol.md 5: 2.25 to 3 s after the last reception. */
	if (hnow_ms() - start < (RTRS_HB_MISSED_OWN_MAX + 1) * RTRS_HB_INTERVAL_OWN_MS)
		die("cut after %llu ms", (unsigned long long)(hnow_ms() - start));
}

static const struct life_row slow_rows[] = {
	{ "stranger", silent_stranger },
	{ "in a header", silent_in_a_header },
	{ "a byte a second", trickle },
	{ "before INFO_REQ", silent_before_info },
	{ "in INFO_REQ", silent_in_info },
	{ "heartbeats unanswered", heartbeats_unanswered },
};

const struct hgroup slow_cases = {
	.name = "silence", .rows = slow_rows, .n = ARRAY_SIZE(slow_rows),
	.size = sizeof(slow_rows[0]), .run = life_run, .slow = true,
};
