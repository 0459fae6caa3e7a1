/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that hold something and do not let go: others are served all the while.  The well-behaved
 * client runs in a process of its own while the hostile one sits still. */
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "raw.h"
#include "rtrs-imm.h"

static void expect_others_served(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	expect(pid >= 0);
	if (!pid) {
		kit_forget();
		good_client();
		fflush(stdout);
		_exit(0);
	}
	expect(waitpid(pid, &status, 0) == pid);
	if (status)
		die("meanwhile others are not served");
}

/* As many large READs as there are chunks, on every connection, and nobody reads the answers. */
static void takes_no_answers(void)
{
	struct hpath *p = hpath_new();
	struct rnbd_msg_io m;
	struct rnbd_io io = { .op = RNBD_OP_READ, .bi_size = 131072 };

	if (!over_tcp())
		skip();		/* who is forked from a user of an RDMA device cannot use any */
	p->cid_num = HCONS_MAX;
	hpath_up(p);
	expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RW), 0);
	io.device_id = p->dev.device_id;
	rnbd_io_encode(&m, &io);
	for (unsigned i = 0; i < p->geom.queue_depth; i++) {
		const struct hreq r = { .cid = 1 + i % (HCONS_MAX - 1), .buf_id = i,
					.is_read = true, .data_len = io.bi_size, .usr = &m,
					.usr_len = sizeof(m) };

		hreq_post(p, &r);
	}
	expect_others_served();
	expect_others_served();
	/* and when it goes on, all is there */
	for (unsigned i = 0; i < p->geom.queue_depth; i++)
		expect_outcome(hpath_wait_answer(p, i), 0);
}

/* It sends the head of a WRITE for every path it has and never the rest. */
static void stops_inside_writes(void)
{
	struct tcp_frame f = { .op = TCP_FRAME_RDMA_WRITE_WITH_IMM, .length = 131072 };
	static uint8_t buf[TCP_FRAME_HDR_LEN + 60000];
	struct rtrs_region chunks;

	for (unsigned i = 0; i < 20; i++) {
		int fd = raw_connect();

		raw_handshake(fd);
		raw_info_named(fd, i, &chunks);
		f.addr = chunks.addr;
		f.rkey = chunks.key;
		tcp_frame_encode(buf, &f);
		raw_send_some(fd, buf, sizeof(buf));
	}
	expect_others_served();
}

static void silent_strangers(void)
{
	for (unsigned i = 0; i < 400; i++)
		raw_connect();
	expect_others_served();
}

static void half_handshakes(void)
{
	uint8_t buf[RAW_FRAME_MAX];
	size_t len = raw_connect_frame(buf);

	for (unsigned i = 0; i < 400; i++)
		raw_send_some(raw_connect(), buf, i % len);
	expect_others_served();
}

/* Connections that were accepted and never polled: ACCEPT waits in the socket. */
static void stays_in_setup(void)
{
	for (unsigned i = 0; i < 16; i++)
		raw_handshake(raw_connect());
	expect_others_served();
}

/* Heartbeats by the thousand whose answers nobody reads. */
static void floods_with_heartbeats(void)
{
	struct tcp_frame f = { .op = TCP_FRAME_RDMA_WRITE_WITH_IMM,
			       .imm = htobe32((uint32_t)RTRS_HB_MSG_IMM << RTRS_IMM_PAYL_BITS) };
	uint8_t buf[TCP_FRAME_HDR_LEN];
	struct rtrs_region chunks;
	int fd = raw_connect();

	raw_handshake(fd);
	raw_info(fd, &chunks);
	tcp_frame_encode(buf, &f);
	for (unsigned i = 0; i < 20000; i++) {
		if (!raw_try_send(fd, buf, sizeof(buf)))
			break;
	}
	expect_others_served();
}

static const struct meanwhile_row {
	const char *name;
	void (*run)(void);
} meanwhile_rows[] = {
	{ "it takes no answers", takes_no_answers },
	{ "it stops inside WRITEs", stops_inside_writes },
	{ "400 strangers are silent", silent_strangers },
	{ "400 handshakes are not finished", half_handshakes },
	{ "16 paths stay in set-up", stays_in_setup },
	{ "it floods with heartbeats", floods_with_heartbeats },
};

static void meanwhile_run(const void *arg)
{
	((const struct meanwhile_row *)arg)->run();
}

const struct hgroup meanwhile_cases = HGROUP("meanwhile", meanwhile_rows, meanwhile_run);
