/* SPDX-License-Identifier: BSD-3-Clause */
/* The NBD engine: what clients send becomes requests, in turns and within bounds, and replies; and
 * what clients do that nobody should. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

TestSuite(server, .init = by_hand_begin, .fini = by_hand_end);

/* ---- requests and replies ---- */

Test(server, write_and_read)
{
	static uint8_t data[9000], got[9000];
	int fd = serve("disk");

	memset(data, 7, sizeof(data));
	ask(fd, NBD_CMD_WRITE, 1, 100, sizeof(data));
	say(fd, data, sizeof(data));
	expect_reply(fd, 1, 0);
	ask(fd, NBD_CMD_READ, 2, 100, sizeof(data));
	expect_reply(fd, 2, 0);
	cr_assert_eq(hear(fd, got, sizeof(got)), (ssize_t)sizeof(got));
	expect_bytes(got, data, sizeof(got), "data");
	leave(fd);
}

/* The first bytes are a request, and the handle is closed with the connection. */
Test(server, serves_without_negotiation)
{
	uint8_t got[16];
	int fd = rig_serve(&rig);

	rig_run(&rig);
	cr_assert_eq(hear(fd, got, sizeof(got)), 0);
	rig.disk[100] = 5;
	ask(fd, NBD_CMD_READ, 1, 100, 1);
	expect_reply(fd, 1, 0);
	cr_assert_eq(hear(fd, got, sizeof(got)), 1);
	cr_assert_eq(got[0], 5);
	ask(fd, NBD_CMD_READ, 2, RIG_DISK, 1);
	expect_reply(fd, 2, NBD_EINVAL);
	cr_assert_eq(rig.nopen, 1);
	leave(fd);
	cr_assert_eq(rig.nopen, 0);
}

/* A client that cannot be watched is refused: its socket is closed, and its handle. */
Test(server, client_that_cannot_be_watched)
{
	int fd, kernel;

	rig_watch_error = -ENOMEM;
	fd = rig_connect(&rig);
	kernel = rig_serve(&rig);
	rig_watch_error = 0;
	expect_end(fd);
	expect_end(kernel);
	cr_assert_eq(rig.nopen, 0);
	close(fd);
	close(kernel);
}

/* A backend that has grown says so to the engine, and nothing to the client. */
Test(server, looks_at_the_size_again)
{
	int fd = serve("disk");

	ask(fd, NBD_CMD_TRIM, 1, RIG_DISK, 4096);
	expect_reply(fd, 1, NBD_EINVAL);
	rig.more = 4096;
	ask(fd, NBD_CMD_TRIM, 2, RIG_DISK, 4096);
	expect_reply(fd, 2, NBD_EINVAL);
	nbd_server_look(rig.server);
	ask(fd, NBD_CMD_TRIM, 3, RIG_DISK, 4096);
	expect_reply(fd, 3, 0);
	leave(fd);
}

/* The backend hears of an error that lasts when its reply is in the socket, and of nothing else. */
Test(server, tells_of_errors_that_were_sent)
{
	static uint8_t got[256 << 10];
	int fd = serve("large");

	ask(fd, NBD_CMD_FLUSH, 1, 1, 0);
	expect_reply(fd, 1, NBD_EINVAL);
	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 2, 0, 0);
	ask(fd, NBD_CMD_FLUSH, 3, 0, 0);
	ask(fd, NBD_CMD_FLUSH, 4, 0, 0);
	rig_run(&rig);
	rig.held[0]->error = NBD_IO_LASTS;
	rig_finish(&rig, 2, 0);
	expect_reply(fd, 4, 0);
	rig_finish(&rig, 1, -EIO);
	expect_reply(fd, 3, NBD_EIO);
	cr_assert_eq(rig.ntold, 0);
	rig_finish(&rig, 0, -EIO);
	expect_reply(fd, 2, NBD_EIO);
	cr_assert_eq(rig.ntold, 1);
	/* Behind a reply that the socket does not take. */
	ask(fd, NBD_CMD_READ, 5, 0, 64u << 20);
	ask(fd, NBD_CMD_FLUSH, 6, 0, 0);
	rig_run(&rig);
	rig.held[1]->error = NBD_IO_LASTS;
	rig_finish(&rig, 0, 0);
	rig_finish(&rig, 0, -EIO);
	cr_assert_gt(recv(fd, got, sizeof(got), 0), 0);
	rig_run(&rig);
	cr_assert_eq(rig.ntold, 1);
	close(fd);
	rig_run(&rig);
	cr_assert_eq(rig.ntold, 1, "nobody has the reply");
}

/* A WRITE larger than a block of input, a byte at a time in front and in one piece behind. */
Test(server, large_write_in_pieces)
{
	static uint8_t data[300 << 10];
	struct nbd_msg_request m = request(NBD_CMD_WRITE, 1, 0, sizeof(data));
	int fd = serve("disk");

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i % 251);
	for (size_t i = 0; i < sizeof(m); i++)
		say(fd, (uint8_t *)&m + i, 1);
	for (size_t i = 0, n; i < sizeof(data); i += n) {
		n = i < 100 ? 1 : MIN(sizeof(data) - i, (size_t)20000);
		say(fd, data + i, n);
	}
	expect_reply(fd, 1, 0);
	expect_bytes(rig.disk, data, sizeof(data), "disk");
	leave(fd);
}

/* A reply that the socket takes in many parts. */
Test(server, large_read_in_pieces)
{
	static uint8_t got[RIG_DISK];
	int fd = serve("disk");

	for (size_t i = 0; i < RIG_DISK; i++)
		rig.disk[i] = (uint8_t)(i % 251);
	ask(fd, NBD_CMD_READ, 1, 0, RIG_DISK);
	expect_reply(fd, 1, 0);
	cr_assert_eq(hear(fd, got, sizeof(got)), RIG_DISK);
	expect_bytes(got, rig.disk, RIG_DISK, "data");
	leave(fd);
}

/* Many WRITEs in one piece, whose places in the blocks of input are all different. */
Test(server, writes_share_blocks)
{
	static uint8_t stream[200 << 10];
	unsigned n = 0;
	size_t len = 0;
	int fd = serve("disk");

	for (; len + 28 + 3000 <= sizeof(stream); n++) {
		struct nbd_msg_request m = request(NBD_CMD_WRITE, n, n * 3000u, 3000);

		memcpy(stream + len, &m, sizeof(m));
		memset(stream + len + sizeof(m), (int)(n + 1), 3000);
		len += sizeof(m) + 3000;
	}
	for (size_t at = 0, k; at < len; at += k) {
		k = MIN(len - at, (size_t)50001);
		say(fd, stream + at, k);
	}
	for (unsigned i = 0; i < n; i++) {
		expect_reply(fd, i, 0);
		cr_assert_eq(rig.disk[i * 3000u], (uint8_t)(i + 1));
		cr_assert_eq(rig.disk[i * 3000u + 2999], (uint8_t)(i + 1));
	}
	leave(fd);
}

Test(server, replies_in_any_order)
{
	int fd = serve("disk");

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	ask(fd, NBD_CMD_TRIM, 2, 0, 4096);
	ask(fd, NBD_CMD_WRITE_ZEROES, 3, 0, 4096);
	cr_assert_eq(rig.nheld, 3);
	rig_finish(&rig, 2, -ENOSPC);
	expect_reply(fd, 3, NBD_ENOSPC);
	rig_finish(&rig, 0, -EIO);
	expect_reply(fd, 1, NBD_EIO);
	rig_finish(&rig, 0, 0);
	expect_reply(fd, 2, 0);
	leave(fd);
}

Test(server, wrong_requests_have_errors)
{
	static const struct {
		uint16_t type;
		uint64_t off;
		uint32_t len, error;
	} cases[] = {
		{ NBD_CMD_READ, RIG_DISK, 1, NBD_EINVAL },
		{ NBD_CMD_READ, UINT64_MAX, 2, NBD_EINVAL },
		{ NBD_CMD_READ, 0, 0, NBD_EINVAL },
		{ NBD_CMD_TRIM, RIG_DISK - 1, 2, NBD_EINVAL },
		{ NBD_CMD_WRITE_ZEROES, RIG_DISK - 1, 2, NBD_ENOSPC },
		{ NBD_CMD_FLUSH, 1, 0, NBD_EINVAL },
		{ NBD_CMD_BLOCK_STATUS, 0, 4096, NBD_EINVAL },	/* without a context */
		{ 99, 0, 0, NBD_EINVAL },
	};
	int fd = serve("disk");
	char data[] = { 'a', 'b' };

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		ask(fd, cases[i].type, i, cases[i].off, cases[i].len);
		expect_reply(fd, i, cases[i].error);
	}
	/* Its data is dropped, and the next request found behind it. */
	ask(fd, NBD_CMD_WRITE, 100, RIG_DISK - 1, 2);
	say(fd, data, 1);
	cr_assert_eq(recv(fd, data, 1, 0), -1, "a reply in front of the last byte");
	say(fd, data, 1);
	expect_reply(fd, 100, NBD_ENOSPC);
	ask(fd, NBD_CMD_FLUSH, 101, 0, 0);
	expect_reply(fd, 101, 0);
	cr_assert_eq(rig.nstarted, 1);
	leave(fd);
}

/* ---- turns and bounds ---- */

/* A backend that answers a READ without data shows no other client's bytes: neither those that the
 * other client wrote nor those that it read, while it is there and when it is gone. */
Test(server, connections_share_no_bytes)
{
	static uint8_t data[100000], got[100000];
	static const uint8_t zeroes[100000];
	int other = serve("disk"), fd = serve("disk");

	memset(data, 0xa5, sizeof(data));
	memset(rig.disk, 0x5a, RIG_DISK);
	ask(other, NBD_CMD_WRITE, 1, 0, sizeof(data));
	say(other, data, sizeof(data));
	expect_reply(other, 1, 0);
	ask(other, NBD_CMD_READ, 2, 4096, sizeof(got));
	expect_reply(other, 2, 0);
	cr_assert_eq(hear(other, got, sizeof(got)), (ssize_t)sizeof(got));
	rig.mode = RIG_PLACES_NOTHING;
	for (unsigned i = 0; i < 2; i++) {
		ask(fd, NBD_CMD_READ, 3, 0, sizeof(got));
		expect_reply(fd, 3, 0);
		cr_assert_eq(hear(fd, got, sizeof(got)), (ssize_t)sizeof(got));
		expect_bytes(got, zeroes, sizeof(got), "data");
		if (i == 0) {
			leave(fd);
			leave(other);
			fd = serve("disk");
		}
	}
	leave(fd);
}

/* Memory that a client has used and does not use any more goes back. */
Test(server, memory_of_an_idle_client)
{
	static uint8_t got[RIG_DISK];
	int fd = serve("disk");

	ask(fd, NBD_CMD_READ, 1, 0, RIG_DISK);
	expect_reply(fd, 1, 0);
	hear(fd, got, sizeof(got));
	cr_assert_geq(rig.server->mem.kept, RIG_DISK);
	rig_pass_time(&rig, 10000);
	cr_assert_geq(rig.server->mem.kept, RIG_DISK, "used in these 10 s");
	rig_pass_time(&rig, 10000);
	cr_assert_eq(rig.server->mem.kept, 0);
	leave(fd);
}

static void ask_many(int fd, unsigned n, uint32_t len)
{
	static struct nbd_msg_request m[4096];

	for (unsigned i = 0; i < n; i++)
		m[i] = request(NBD_CMD_READ, i, 0, len);
	cr_assert_eq(send(fd, m, n * sizeof(m[0]), MSG_NOSIGNAL), (ssize_t)(n * sizeof(m[0])));
}

Test(server, greedy_takes_turns)
{
	struct nbd_msg_request m = request(NBD_CMD_READ, 1, 4096, 512);
	int greedy = serve("disk"), other = serve("disk");
	unsigned i = 0;

	rig.mode = RIG_HOLDS;
	ask_many(greedy, 128, 4096);
	cr_assert_eq(send(other, &m, sizeof(m), 0), (ssize_t)sizeof(m));
	rig_run(&rig);
	cr_assert_eq(rig.nheld, 129);
	while (rig.held[i]->len != 512)
		i++;
	cr_assert_leq(i, 32, "the other client's request is number %u", i);
	leave(greedy);
	leave(other);
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
}

Test(server, requests_in_flight_are_bounded)
{
	static char got[4096];
	int fd = serve("disk");

	rig.mode = RIG_HOLDS;
	ask_many(fd, 1000, 512);
	rig_run(&rig);
	cr_assert_eq(rig.nheld, 256);
	rig.mode = RIG_ANSWERS;
	while (rig.nheld) {
		rig_finish(&rig, 0, 0);
		while (recv(fd, got, sizeof(got), 0) > 0)
			rig_run(&rig);
	}
	cr_assert_eq(rig.nstarted, 1000);
	leave(fd);
}

/* Three clients read 64 MiB each where there is memory for four such pieces, and for the input. */
Test(server, memory_is_bounded)
{
	int fd[5];

	rig.mode = RIG_HOLDS;
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = serve("large");
		ask(fd[i], NBD_CMD_READ, i, 0, 64u << 20);
	}
	cr_assert_eq(rig.nheld, 3, "%u in flight", rig.nheld);
	leave(fd[0]);
	rig_finish(&rig, 0, 0);
	cr_assert_eq(rig.nheld, 3, "memory that came back is used");
	for (unsigned i = 1; i < ARRAY_SIZE(fd); i++)
		leave(fd[i]);
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
}

/* @n clients come one after the other, and each asks for 64 MiB in requests of @len bytes.  Then
 * the next one asks for as much as an input block and a small request take. */
static void greedy_ones_leave_memory(unsigned n, uint32_t len)
{
	unsigned before;
	int fd[8], last;

	rig.mode = RIG_HOLDS;
	rig.server->mem.limit = NBD_SERVER_MEMORY_MIN;
	for (unsigned i = 0; i < n; i++) {
		before = rig.nheld;
		fd[i] = serve("large");
		for (unsigned k = 0; k < NBD_CONN_MEMORY / len; k++)
			ask(fd[i], NBD_CMD_READ, k, 0, len);
		cr_assert_gt(rig.nheld, before, "client %u of %u with %u", i, n, len);
	}
	cr_assert_lt(rig.nheld, NBD_CONN_MEMORY / len, "%u in flight", rig.nheld);
	before = rig.nheld;
	last = serve("large");
	ask(last, NBD_CMD_READ, 1, 0, 65536);
	cr_assert_eq(rig.nheld, before + 1, "no memory after %u clients with %u", n, len);
	rig_finish(&rig, before, 0);
	leave(last);
	for (unsigned i = 0; i < n; i++)
		leave(fd[i]);
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
}

Test(server, greedy_ones_leave_memory)
{
	greedy_ones_leave_memory(2, 1 << 20);
	greedy_ones_leave_memory(8, 1 << 20);
	greedy_ones_leave_memory(2, 256 << 10);
	greedy_ones_leave_memory(8, 256 << 10);
}

/* A client that waits for its own share takes no memory from one that moves no byte. */
Test(server, a_share_is_no_hunger)
{
	int slow, fd;

	rig.server->mem.limit = NBD_SERVER_MEMORY_MIN;
	slow = serve("large");
	ask(slow, NBD_CMD_READ, 1, 0, 8u << 20);
	fd = serve("large");
	rig.mode = RIG_HOLDS;
	for (unsigned k = 0; k < 64; k++)
		ask(fd, NBD_CMD_READ, k, 0, 1 << 20);
	cr_assert_lt(rig.nheld, 56);
	rig_pass_time(&rig, 6000);
	rig_pass_time(&rig, 6000);
	cr_assert_eq(nbd_server_count(rig.server), 2u);
	leave(slow);
	leave(fd);
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
}

/* Requests that wait go on when the server gets more, and less holds from the next one on. */
Test(server, memory_changes)
{
	int fd[5];

	rig.mode = RIG_HOLDS;
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = serve("large");
		ask(fd[i], NBD_CMD_READ, i, 0, 64u << 20);
	}
	cr_assert_eq(rig.nheld, 3, "%u in flight", rig.nheld);
	nbd_server_set_memory(rig.server, 5u << 26);
	rig_run(&rig);
	cr_assert_eq(rig.nheld, 4, "%u in flight with more memory", rig.nheld);
	nbd_server_set_memory(rig.server, 2u << 26);
	for (unsigned i = 0; i < 3; i++) {
		leave(fd[i]);
		rig_finish(&rig, 0, 0);
		cr_assert_eq(rig.nheld, i < 2 ? 3 - i : 1, "%u in flight, %u have ended",
			     rig.nheld, i + 1);
	}
	for (unsigned i = 3; i < ARRAY_SIZE(fd); i++)
		leave(fd[i]);
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
}

/* The least memory of a server is that of one request: the input that its connection and others
 * have does not hold it up. */
Test(server, largest_request_beside_input)
{
	int fd[2] = { serve("large"), serve("large") };

	rig.mode = RIG_HOLDS;
	rig.server->mem.limit = NBD_SERVER_MEMORY_MIN;
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		ask(fd[i], NBD_CMD_READ, i, 0, NBD_DATA_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		cr_assert_eq(rig.nheld, 1, "%u in flight, %u have ended", rig.nheld, i);
		leave(fd[i]);
		rig_finish(&rig, 0, 0);
	}
}

/* A client that takes no reply has memory that others want, and gives way. */
Test(server, slow_reader_gives_way)
{
	int slow[4], fd;

	for (unsigned i = 0; i < ARRAY_SIZE(slow); i++) {
		slow[i] = serve("large");
		ask(slow[i], NBD_CMD_READ, i, 0, 64u << 20);
	}
	fd = serve("large");
	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_READ, 9, 0, 64u << 20);
	cr_assert_eq(rig.nheld, 0, "there is no memory");
	rig_pass_time(&rig, 6000);
	rig_pass_time(&rig, 6000);
	cr_assert_eq(rig.nheld, 2, "%u in flight", rig.nheld);
	cr_assert(strstr(last_line, "no byte for 5 s"), "%s", last_line);
	leave(fd);
	for (unsigned i = 0; i < ARRAY_SIZE(slow); i++)
		leave(slow[i]);
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
}

/* A client that stops in a request has the only block of input, and gives way. */
Test(server, half_a_request_gives_way)
{
	struct nbd_msg_request m = request(NBD_CMD_FLUSH, 1, 0, 0);
	int half = serve("disk"), fd = serve("disk");

	rig.server->mem.limit = NBD_BLOCK;
	say(half, &m, sizeof(m) - 1);
	ask(fd, NBD_CMD_FLUSH, 9, 0, 0);
	rig_pass_time(&rig, 4000);
	cr_assert_eq(rig.nstarted, 0, "there is no memory");
	rig_pass_time(&rig, 2000);
	expect_reply(fd, 9, 0);
	expect_end(half);
	cr_assert(strstr(last_line, "no byte for 5 s"), "%s", last_line);
	leave(fd);
}

/* ---- ends ---- */

Test(server, disconnect)
{
	int fd = serve("disk");

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	ask(fd, NBD_CMD_DISC, 2, 0, 0);
	rig_finish(&rig, 0, 0);
	expect_reply(fd, 1, 0);
	expect_end(fd);
	leave(fd);
	cr_assert_eq(nlines, 0, "%s", last_line);
}

/* The client sends no more, and still takes the replies: of requests, and of an option. */
Test(server, p40_half_closed)
{
	static const uint8_t list[16] = { 'I', 'H', 'A', 'V', 'E', 'O', 'P', 'T', [11] = 3 };
	uint8_t bytes[256];
	int fd = serve("disk");

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	ask(fd, NBD_CMD_FLUSH, 2, 0, 0);
	shutdown(fd, SHUT_WR);
	rig_run(&rig);
	rig_finish(&rig, 1, 0);
	expect_reply(fd, 2, 0);
	rig_finish(&rig, 0, -EIO);
	expect_reply(fd, 1, NBD_EIO);
	expect_end(fd);
	leave(fd);

	fd = rig_connect(&rig);
	hear(fd, bytes, sizeof(bytes));
	greet(fd);
	cr_assert_eq(send(fd, list, sizeof(list), 0), sizeof(list));
	shutdown(fd, SHUT_WR);
	rig_run(&rig);
	cr_assert_gt(hear(fd, bytes, sizeof(bytes)), 0);
	expect_end(fd);
	leave(fd);
	cr_assert_eq(nlines, 0, "%s", last_line);
}

/* What came before a request without its magic number is answered. */
Test(server, p40_nonsense_behind_requests)
{
	static const char nonsense[64] = "GET / HTTP/1.1\r\n";
	int fd = serve("disk");
	uint8_t bytes[256];
	size_t len;

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	say(fd, nonsense, sizeof(nonsense));
	cr_assert_eq(nlines, 1);
	/* All that follows is dropped. */
	ask(fd, NBD_CMD_FLUSH, 2, 0, 0);
	rig_finish(&rig, 0, 0);
	expect_reply(fd, 1, 0);
	expect_end(fd);
	cr_assert_eq(rig.nstarted, 1);
	leave(fd);

	/* A reply to an option that waits to be sent when the nonsense is read. */
	fd = rig_connect(&rig);
	hear(fd, bytes, sizeof(bytes));
	greet(fd);
	len = put_option(bytes, 77, NULL, 0);
	memcpy(bytes + len, nonsense, sizeof(nonsense));
	say(fd, bytes, len + sizeof(nonsense));
	cr_assert_gt(hear(fd, bytes, sizeof(bytes)), 20);
	expect_end(fd);
	leave(fd);
}

/* Closed in a WRITE, and with requests in flight. */
Test(server, cut)
{
	int fd = serve("disk");
	char half[1000] = "";

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	ask(fd, NBD_CMD_WRITE, 2, 0, 100000);
	say(fd, half, sizeof(half));
	leave(fd);
	cr_assert_eq(nlines, 1);
	cr_assert(strstr(last_line, "in the middle of a request"), "%s", last_line);
	cr_assert_eq(nbd_server_count(rig.server), 1, "the flush is waited for");
	rig_finish(&rig, 0, 0);
}

Test(server, nonsense_ends_the_connection)
{
	static const char nonsense[64] = "GET / HTTP/1.1\r\n";
	int fd = serve("disk");

	say(fd, nonsense, sizeof(nonsense));
	expect_end(fd);
	cr_assert_eq(nlines, 1);
	leave(fd);
	fd = rig_connect(&rig);
	hear(fd, (char[64]){ 0 }, 64);
	say(fd, nonsense, sizeof(nonsense));
	expect_end(fd);
	cr_assert_eq(nlines, 2);
	leave(fd);
}

Test(server, option_of_4_gib)
{
	struct nbd_msg_option m = { be64_put(NBD_OPT_MAGIC), be32_put(NBD_OPT_LIST),
				    be32_put(UINT32_MAX) };
	be32 flags = be32_put(NBD_FLAG_FIXED_NEWSTYLE);
	int fd = rig_connect(&rig);

	hear(fd, (char[64]){ 0 }, 64);
	say(fd, &flags, 4);
	say(fd, &m, sizeof(m));
	expect_end(fd);
	cr_assert(strstr(last_line, "1 MiB"), "%s", last_line);
	leave(fd);
}
