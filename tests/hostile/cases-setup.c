/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong set-ups: connection requests (doc/protocol.md 1.7), their order, INFO_REQ (2.4). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hostile.h"
#include "rtrs-imm.h"

/* ---- CONN_REQ of a first connection ---- */

/* @len bytes of a valid message, @width bytes at @at replaced. */
static const struct conn_row {
	const char *name;
	size_t len, at, width;
	uint64_t value;
	int want;
	/* fine where the CM pads private data with zeros, as RDMA's does */
	bool padded_ok;
} conn_rows[] = {
	{ "valid", 56, 0, 0, 0, 0 },
	{ "nothing", 0, 0, 0, 0, -ECONNRESET },
	{ "one byte", 1, 0, 0, 0, -ECONNRESET },
	{ "one byte short", 55, 0, 0, 0, -ECONNRESET, .padded_ok = true },
	{ "cma bytes", 56, 0, 2, 0xffff, 0 },
	{ "magic 0", 56, 2, 2, 0, -ECONNRESET },
	{ "magic swapped", 56, 2, 2, 0xbd1b, -ECONNRESET },
	{ "version 0", 56, 4, 2, 0, -ECONNRESET },
	{ "version 1.255", 56, 4, 2, 0x1ff, -ECONNRESET },
	{ "version 2.255", 56, 4, 2, 0x2ff, 0 },
	{ "version 3", 56, 4, 2, 0x300, -ECONNRESET },
	{ "cid = cid_num", 56, 6, 2, 2, -ECONNRESET },
	{ "cid max", 56, 6, 2, 0xffff, -ECONNRESET },
	{ "cid_num 0", 56, 8, 2, 0, -ECONNRESET },
	{ "cid_num 4096", 56, 8, 2, 4096, 0 },
	{ "cid_num 4097", 56, 8, 2, 4097, -ECONNRESET },
	{ "cid_num max", 56, 8, 2, 0xffff, -ECONNRESET },
	{ "recon_cnt max", 56, 10, 2, 0xffff, 0 },
	{ "p27 not first_conn of an unknown session", 56, 44, 1, 0, -ENXIO },
	{ "unknown flags", 56, 44, 1, 0xff, 0 },
	{ "p24 garbage in reserved", 56, 48, 8, UINT64_MAX, 0 },
};

static void conn_run(const void *arg)
{
	const struct conn_row *row = arg;
	struct hpath *p = hpath_new();
	struct rtrs_msg_conn_req m;

	hpath_conn_req(p, 0, &m);
	for (size_t i = 0; i < row->width; i++)
		((uint8_t *)&m)[row->at + i] = (uint8_t)(row->value >> 8 * i);
	expect_outcome(hpath_connect_with(p, 0, &m, row->len),
		       row->padded_ok && !over_tcp() ? 0 : row->want);
}

const struct hgroup conn_cases = HGROUP("conn", conn_rows, conn_run);

/* ---- several connections ---- */

static void last_connection_first(void)
{
	struct hpath *p = hpath_new();

	p->cid_num = 3;
	expect_outcome(hpath_connect(p, 2), 0);
	expect_outcome(hpath_connect(p, 0), 0);
	expect_outcome(hpath_connect(p, 1), 0);
	expect_outcome(hpath_info(p), 0);
	expect_outcome(hpath_open(p, "disk0", RNBD_ACCESS_RW), 0);
	good_io(p);
}

static void cid_taken(void)
{
	struct hpath *p = hpath_new(), *twin = hpath_new();

	memcpy(twin->sess_uuid, p->sess_uuid, RTRS_UUID_LEN);
	memcpy(twin->paths_uuid, p->paths_uuid, RTRS_UUID_LEN);
	expect_outcome(hpath_connect(p, 0), 0);
	expect_outcome(hpath_connect(twin, 0), -ECONNRESET);
	/* it costs the intruder his connection, not the path */
	expect_outcome(hpath_connect(p, 1), 0);
	expect_outcome(hpath_info(p), 0);
}

static void cid_num_differs(void)
{
	struct hpath *p = hpath_new();

	expect_outcome(hpath_connect(p, 0), 0);
	p->cid_num = 3;
	expect_outcome(hpath_connect(p, 1), -ECONNRESET);
	p->cid_num = 1;
	expect_outcome(hpath_connect(p, 2), -ECONNRESET);
}

static void same_addresses(void)
{
	struct hpath *p = hpath_new(), *second = hpath_new();

	memcpy(second->paths_uuid, p->paths_uuid, RTRS_UUID_LEN);
	hpath_up(p);
	expect_outcome(hpath_connect(second, 0), -EEXIST);
	expect_outcome(hpath_sess_info(p), 0);
}

static void path_uuid_of_another_session(void)
{
	struct hpath *p = hpath_new(), *other = hpath_new();

	memcpy(other->sess_uuid, p->sess_uuid, RTRS_UUID_LEN);
	hpath_up(p);
	hpath_up(other);
	expect_outcome(hpath_sess_info(p), 0);
	expect_outcome(hpath_sess_info(other), 0);
}

static void later_connections_without_first_conn(void)
{
	struct rtrs_msg_conn_req m;
	struct hpath *p = hpath_new();

	expect_outcome(hpath_connect(p, 0), 0);
	hpath_conn_req(p, 1, &m);
	m.flags = 0;
	expect_outcome(hpath_connect_with(p, 1, &m, sizeof(m)), 0);
	expect_outcome(hpath_info(p), 0);
}

/* One host cannot take all the room there is for set-ups. */
static void many_half_open_paths(void)
{
	struct hpath *paths[150];
	unsigned n = 0;
	int status;

	do {
		expect(n < ARRAY_SIZE(paths));
		paths[n] = hpath_new();
		status = hpath_connect(paths[n++], 0);
	} while (!status);
	expect_outcome(status, -ENOMEM);
	/* Whoever comes after this case is from the same host: there is room when the server has
	 * heard. */
	while (n--)
		hpath_close(paths[n]);
}

static void missing_connection(void)
{
	struct hpath *p = hpath_new();

	p->cid_num = 3;
	expect_outcome(hpath_connect(p, 0), 0);
	expect_outcome(hpath_connect(p, 2), 0);
	expect_outcome(hpath_info(p), HCLOSED);
	hpath_wait_closed(p);
}

static void one_of_4096(void)
{
	struct hpath *p = hpath_new();

	p->cid_num = RTRS_MAX_CONS;
	expect_outcome(hpath_connect(p, 0), 0);
	expect_outcome(hpath_info(p), HCLOSED);
}

/* ---- INFO at the wrong time or place ---- */

static void info_twice_at_once(void)
{
	struct rtrs_msg_info_req m;
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	hpath_post_info_recv(p);
	rtrs_info_req_encode(&m, p->name);
	hpath_send(p, 0, &m, sizeof(m));
	hpath_send(p, 0, &m, sizeof(m));
	hpath_wait_closed(p);
}

static void info_again_in_service(void)
{
	struct rtrs_msg_info_req m;
	struct hpath *p = hpath_new();

	hpath_up(p);
	rtrs_info_req_encode(&m, p->name);
	hpath_send(p, 0, &m, sizeof(m));
	hpath_wait_closed(p);
}

static void info_on_connection_1(void)
{
	struct rtrs_msg_info_req m;
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	rtrs_info_req_encode(&m, p->name);
	hpath_send(p, 1, &m, sizeof(m));
	hpath_wait_closed(p);
	expect(!p->info_done);
}

static void request_instead_of_info(void)
{
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	hpath_write(p, 0, NULL, 0, 0, 0, true, RTRS_IO_REQ_IMM << RTRS_IMM_PAYL_BITS);
	hpath_wait_closed(p);
}

static void heartbeat_instead_of_info(void)
{
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	hpath_write(p, 0, NULL, 0, 0, 0, true, (uint32_t)RTRS_HB_MSG_IMM << RTRS_IMM_PAYL_BITS);
	hpath_wait_closed(p);
	expect(!p->hb_acks);
}

static void request_before_info(void)
{
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	hpath_write(p, 1, NULL, 0, 0, 0, true, RTRS_IO_REQ_IMM << RTRS_IMM_PAYL_BITS);
	hpath_wait_closed(p);
}

static void name_without_an_end(void)
{
	struct rtrs_msg_info_req m;
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	hpath_post_info_recv(p);
	rtrs_info_req_encode(&m, p->name);
	memset(m.pathname, 'x', sizeof(m.pathname));
	memset(m.reserved, 'y', sizeof(m.reserved));
	hpath_send(p, 0, &m, sizeof(m));
	expect_outcome(hpath_wait_info(p), 0);
}

static void name_of_a_living_session(void)
{
	struct hpath *p = hpath_new(), *thief = hpath_new();

	hpath_up(p);
	memcpy(thief->name, p->name, sizeof(p->name));
	hpath_connect_all(thief);
	expect_outcome(hpath_info(thief), HCLOSED);
	expect_outcome(hpath_sess_info(p), 0);
}

/* From another address; over tcp any of loopback's will do. */
static struct hpath *elsewhere_with_uuid_of(const struct hpath *p, const char *name)
{
	struct hpath *thief = hpath_new();
	char err[256];

	if (!over_tcp())
		skip();
	expect(!fab_addr_parse("127.0.0.77", hrun.server.provider, 0, &thief->src, err,
			       sizeof(err)));
	memcpy(thief->paths_uuid, p->paths_uuid, RTRS_UUID_LEN);
	snprintf(thief->name, sizeof(thief->name), "%s", name);
	return thief;
}

/* Where the chunks lie in the server's memory, which is far above, is not the client's to know. */
static void no_address_of_the_server(void)
{
	struct hpath *p = hpath_new();

	hpath_up(p);
	for (unsigned i = 0; i < p->geom.queue_depth; i++)
		expect(p->rbufs[i].addr < 1ull << 46);
}

/* doc/promises.md, "Session identifiers": who has the identifier and the name is in the session,
 * its device, opened by another for itself alone, included. */
static void known_uuid_and_name(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW), *thief, *third = hpath_new();
	struct rnbd_io io = { .device_id = p->dev.device_id, .op = RNBD_OP_READ,
			      .flags = RNBD_F_SYNC,
			      .bi_size = 512 };
	uint8_t mine[512], theirs[512];

	hpath_up(third);
	expect_outcome(hpath_sess_info(third), 0);
	expect_outcome(hpath_open(third, "disk0", RNBD_ACCESS_RW), -EPERM);

	thief = elsewhere_with_uuid_of(p, p->name);
	hpath_up(thief);
	memset(mine, 0x31, sizeof(mine));
	io.op = RNBD_OP_WRITE;
	expect_outcome(hpath_io(p, 1, 1, &io, mine), 0);
	io.op = RNBD_OP_READ;
	expect_outcome(hpath_io(thief, 1, 1, &io, NULL), 0);
	expect(!memcmp(thief->result, mine, sizeof(mine)));
	memset(theirs, 0x32, sizeof(theirs));
	io.op = RNBD_OP_WRITE;
	expect_outcome(hpath_io(thief, 1, 2, &io, theirs), 0);
	io.op = RNBD_OP_READ;
	expect_outcome(hpath_io(p, 1, 2, &io, NULL), 0);
	expect(!memcmp(p->result, theirs, sizeof(theirs)));
}

static void known_uuid_without_the_name(void)
{
	struct hpath *p = hpath_ready("disk0", RNBD_ACCESS_RW), *thief;

	thief = elsewhere_with_uuid_of(p, "guessed");
	hpath_connect_all(thief);
	expect_outcome(hpath_info(thief), HCLOSED);
	expect_outcome(hpath_sess_info(p), 0);
}

static const struct order_row {
	const char *name;
	void (*run)(void);
} order_rows[] = {
	{ "last connection first", last_connection_first },
	{ "connection number taken", cid_taken },
	{ "cid_num differs", cid_num_differs },
	{ "p25 second path between the same addresses", same_addresses },
	{ "path uuid of another session", path_uuid_of_another_session },
	{ "first_conn only on connection 0", later_connections_without_first_conn },
	{ "many paths in set-up", many_half_open_paths },
	{ "p29 INFO_REQ with a connection missing", missing_connection },
	{ "INFO_REQ with 4095 connections missing", one_of_4096 },
	{ "INFO_REQ twice at once", info_twice_at_once },
	{ "INFO_REQ again in service", info_again_in_service },
	{ "INFO_REQ on connection 1", info_on_connection_1 },
	{ "request instead of INFO_REQ", request_instead_of_info },
	{ "heartbeat instead of INFO_REQ", heartbeat_instead_of_info },
	{ "request before INFO_REQ", request_before_info },
	{ "session name without an end", name_without_an_end },
	{ "session name of a living session", name_of_a_living_session },
	{ "no address of the server", no_address_of_the_server },
	{ "known session uuid and name", known_uuid_and_name },
	{ "known session uuid without the name", known_uuid_without_the_name },
};

static void order_run(const void *arg)
{
	((const struct order_row *)arg)->run();
}

const struct hgroup order_cases = HGROUP("order", order_rows, order_run);

/* ---- INFO_REQ ---- */

static const struct conn_row info_rows[] = {
	{ "valid", 272, 0, 0, 0, 0 },
	{ "empty", 0, 0, 0, 0, HCLOSED },
	{ "one byte short", 271, 0, 0, 0, HCLOSED },
	{ "one byte long", 273, 0, 0, 0, HCLOSED },
	{ "huge", 1 << 20, 0, 0, 0, HCLOSED },
	{ "type INFO_RSP", 272, 0, 2, 1, HCLOSED },
	{ "type max", 272, 0, 2, 0xffff, HCLOSED },
	{ "name empty", 272, 2, 1, 0, HCLOSED },
	{ "name with /", 272, 3, 1, '/', HCLOSED },
	{ "name with .", 272, 3, 1, '.', HCLOSED },
	{ "name with a newline", 272, 3, 1, '\n', 0 },
	{ "name not ASCII", 272, 3, 4, 0xfffefdff, 0 },
	{ "p24 garbage in reserved", 272, 260, 8, UINT64_MAX, 0 },
};

static void info_run(const void *arg)
{
	const struct conn_row *row = arg;
	static uint8_t buf[1 << 20];
	struct hpath *p = hpath_new();

	hpath_connect_all(p);
	hpath_post_info_recv(p);
	rtrs_info_req_encode((void *)buf, p->name);
	for (size_t i = 0; i < row->width; i++)
		buf[row->at + i] = (uint8_t)(row->value >> 8 * i);
	hpath_send(p, 0, buf, row->len);
	expect_outcome(hpath_wait_info(p), row->want);
	if (row->want == HCLOSED)
		hpath_wait_closed(p);
}

const struct hgroup info_cases = HGROUP("info", info_rows, info_run);
