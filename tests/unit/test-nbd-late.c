/* SPDX-License-Identifier: BSD-3-Clause */
/* The NBD engine and time: a stop, and clients that are slow or do nothing.  Virtual time. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbd-by-hand.h"
#include "unit.h"
#include "util.h"

TestSuite(late, .init = by_hand_begin, .fini = by_hand_end);

/* ---- the end of the server, and of a connection ---- */

static void count_stopped(void *arg)
{
	(*(unsigned *)arg)++;
}

/* Requests in flight are answered, no other begins, and the next server tells of an error. */
Test(late, stop)
{
	int fd = serve("disk"), failing = serve("disk");
	unsigned stopped = 0;

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	ask(failing, NBD_CMD_FLUSH, 2, 0, 0);
	nbd_server_stop(rig.server, count_stopped, &stopped);
	rig_run(&rig);
	ask(fd, NBD_CMD_FLUSH, 3, 0, 0);
	cr_assert_eq(rig.nheld, 2);
	rig_finish(&rig, 1, -EIO);
	expect_end(failing);
	cr_assert_eq(nbd_server_unanswered(rig.server), 1);
	rig_finish(&rig, 0, 0);
	expect_reply(fd, 1, 0);
	expect_end(fd);
	cr_assert_eq(stopped, 0, "a client that has just asked may ask again");
	rig_pass_time(&rig, 10);
	cr_assert_eq(stopped, 1);
	close(fd);
	close(failing);
}

/* An error that no other server will tell leaves, whatever becomes of the other requests. */
Test(late, stop_tells_of_a_loss)
{
	unsigned stopped = 0;
	struct nbd_io *told;
	int fd = serve("disk");

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	ask(fd, NBD_CMD_READ, 2, 0, 512);
	nbd_server_stop(rig.server, count_stopped, &stopped);
	rig_run(&rig);
	told = rig.held[0];
	rig.held[0] = rig.held[--rig.nheld];
	told->error = NBD_IO_LASTS;
	nbd_io_done(told, -EIO);
	rig_finish(&rig, 0, -EIO);
	expect_reply(fd, 1, NBD_EIO);
	expect_end(fd);
	cr_assert_eq(stopped, 1);
	close(fd);
}

/* A long answer goes on for a client that only sends no more.  It ends for a client that is
 * gone, and when the server stops. */
Test(late, long_answers_end)
{
	unsigned stopped = 0;
	int half = serve("disk"), gone = serve("disk"), fd = serve("disk");

	rig.mode = RIG_HOLDS;
	ask(half, NBD_CMD_FLUSH, 1, 0, 0);
	ask(gone, NBD_CMD_FLUSH, 2, 0, 0);
	ask(fd, NBD_CMD_FLUSH, 3, 0, 0);
	shutdown(half, SHUT_WR);
	leave(gone);
	cr_assert(nbd_io_may_go_on(rig.held[0]));
	cr_assert(!nbd_io_may_go_on(rig.held[1]));
	cr_assert(nbd_io_may_go_on(rig.held[2]));
	nbd_server_stop(rig.server, count_stopped, &stopped);
	cr_assert(!nbd_io_may_go_on(rig.held[0]));
	cr_assert(!nbd_io_may_go_on(rig.held[2]));
	rig_finish_all(&rig, 0);
	expect_reply(half, 1, 0);
	expect_reply(fd, 3, 0);
	rig_pass_time(&rig, 10);
	cr_assert_eq(stopped, 1);
	close(half);
	close(fd);
}

/* Clients that do nothing are not waited for. */
Test(late, stop_does_not_wait_for_clients)
{
	unsigned stopped = 0;
	int fds[3];

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = serve("disk");
	nbd_server_stop(rig.server, count_stopped, &stopped);
	rig_run(&rig);
	cr_assert_eq(stopped, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
		expect_end(fds[i]);
		close(fds[i]);
	}
}

/* A client that goes on asking does not keep a server that stops. */
Test(late, stop_does_not_wait_for_questions)
{
	unsigned stopped = 0, waited = 0;
	int fd = serve("disk");

	nbd_server_stop(rig.server, count_stopped, &stopped);
	for (; !stopped && waited < 10000; waited += 5) {
		struct nbd_msg_request m = request(NBD_CMD_FLUSH, 1, 0, 0);

		cr_assert_eq(send(fd, &m, sizeof(m), MSG_NOSIGNAL), (ssize_t)sizeof(m));
		rig_pass_time(&rig, 5);
	}
	cr_assert_eq(stopped, 1);
	cr_assert_leq(waited, 2005);
	cr_assert_geq(waited, 1000, "its questions have been dropped, not reset");
	close(fd);
}

/* Replies that the client does not read hold its connection, its memory and a server that stops,
 * for a bounded time. */
Test(late, leaving_does_not_wait_for_a_slow_reader)
{
	static char got[256 << 10];
	int fd = serve("large");

	ask(fd, NBD_CMD_READ, 1, 0, 64u << 20);
	ask(fd, NBD_CMD_DISC, 2, 0, 0);
	rig_pass_time(&rig, 9999);
	cr_assert_gt(recv(fd, got, sizeof(got), 0), 0);
	rig_pass_time(&rig, 1);
	rig_pass_time(&rig, 9999);
	cr_assert_eq(nbd_server_count(rig.server), 1, "the client has read a second time");
	rig_pass_time(&rig, 1);
	cr_assert_eq(nbd_server_count(rig.server), 0);
	cr_assert(strstr(last_line, "no byte for 10 s"), "%s", last_line);
	close(fd);
}

/* The time without a byte begins with the last byte. */
Test(late, leaving_does_not_wait_twice)
{
	static char got[256 << 10];
	int fd = serve("large");

	ask(fd, NBD_CMD_READ, 1, 0, 64u << 20);
	ask(fd, NBD_CMD_DISC, 2, 0, 0);
	cr_assert_gt(recv(fd, got, sizeof(got), 0), 0);
	rig_pass_time(&rig, 1);
	rig_pass_time(&rig, 9999);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_pass_time(&rig, 1);
	cr_assert_eq(nbd_server_count(rig.server), 0);
	close(fd);
}

/* A client that reads, however slowly, is given its time; so is a backend that answers late. */
Test(late, leaving_waits_for_what_moves)
{
	static char got[256 << 10];
	int fd = serve("large");

	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_READ, 1, 0, 8u << 20);
	ask(fd, NBD_CMD_DISC, 2, 0, 0);
	rig_pass_time(&rig, 60000);
	cr_assert_eq(rig.nheld, 1);
	rig_finish(&rig, 0, 0);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_gt(recv(fd, got, sizeof(got), 0), 0);
		rig_pass_time(&rig, 6000);
		cr_assert_eq(nbd_server_count(rig.server), 1, "ended after %u reads", i);
	}
	while (hear(fd, got, sizeof(got)) > 0)
		;
	leave(fd);
	cr_assert_eq(nlines, 0, "%s", last_line);
}

/* ---- the time of a handshake ---- */

static void expect_late(int fd)
{
	char bytes[1024];

	cr_assert_eq(nbd_server_count(rig.server), 0);
	while (hear(fd, bytes, sizeof(bytes)) > 0)
		;
	cr_assert_eq(nlines, 1);
	cr_assert(strstr(last_line, "handshake has taken 30 s"), "%s", last_line);
	close(fd);
}

Test(late, silent_client)
{
	int fd = rig_connect(&rig);

	rig_pass_time(&rig, 29999);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_pass_time(&rig, 1);
	expect_late(fd);
}

/* A byte now and then, and an option again and again, are no way to stay. */
Test(late, client_stays_in_the_handshake)
{
	uint8_t buf[64];
	size_t len = put_option(buf, NBD_OPT_LIST, NULL, 0);
	int fd = rig_connect(&rig);

	greet(fd);
	for (unsigned i = 0; i < len; i++) {
		rig_pass_time(&rig, 1000);
		say(fd, buf + i, 1);
	}
	for (unsigned i = 0; i < 13; i++) {
		rig_pass_time(&rig, 1000);
		say(fd, buf, len);
	}
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_pass_time(&rig, 1000);
	expect_late(fd);
}

/* A server that is away when the client opens its export is not the client's fault. */
Test(late, backend_takes_its_time)
{
	uint8_t buf[64], data[32];
	size_t len = put_option(buf, NBD_OPT_GO, data, put_go(data, "disk"));
	int fd = rig_connect(&rig);

	rig.mode = RIG_OPENS_LATE;
	rig_pass_time(&rig, 20000);
	greet(fd);
	say(fd, buf, len);
	rig_pass_time(&rig, 100000);
	rig_open_now(&rig);
	cr_assert_gt(hear(fd, (char[256]){ 0 }, 256), 60);
	rig_pass_time(&rig, 1000000);
	ask(fd, NBD_CMD_FLUSH, 1, 0, 0);
	expect_reply(fd, 1, 0);
	leave(fd);
}

/* The time that is left goes on behind the answer of the backend. */
Test(late, refused_client_has_the_rest_of_its_time)
{
	uint8_t buf[64], data[32];
	size_t len = put_option(buf, NBD_OPT_INFO, data, put_go(data, "disk"));
	int fd = rig_connect(&rig);

	rig.mode = RIG_OPENS_LATE;
	rig_pass_time(&rig, 20000);
	greet(fd);
	say(fd, buf, len);
	rig_pass_time(&rig, 100000);
	rig_open_now(&rig);
	rig_pass_time(&rig, 9999);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_pass_time(&rig, 1);
	expect_late(fd);
}
