/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's part of TLS, over a stream that keeps bytes back and has no secrets: who has the
 * socket when, bytes that wait inside, and how a connection ends. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

/* What a stream keeps: bytes that came, and bytes to be sent by flush(). */
struct keeper {
	struct nbd_stream base;
	int fd;
	uint8_t in[4096], out[65536];
	size_t nin, nout;
	bool said_bye;
};

static struct nbd_conn *shaking;	/* a handshake waits for its end; NULL: none */
static int shaking_fd;
static struct keeper keeper;
static unsigned ndestroyed;

static void start(const struct nbd_tls *tls, struct nbd_conn *conn, int fd, const char *name)
{
	shaking = conn;
	shaking_fd = fd;
}

static const struct nbd_tls library = { .mode = NBD_TLS_REQUIRE, .start = start };

/* All bytes of the socket at once; then one a call, as records come. */
static ssize_t keeper_recv(struct nbd_stream *s, const struct iovec *iov, size_t n)
{
	ssize_t got = recv(keeper.fd, keeper.in + keeper.nin, sizeof(keeper.in) - keeper.nin,
			   MSG_DONTWAIT);
	size_t len = 1;

	if (got > 0)
		keeper.nin += (size_t)got;
	if (!keeper.nin)
		return got;
	memcpy(iov[0].iov_base, keeper.in, len);
	keeper.nin -= len;
	memmove(keeper.in, keeper.in + len, keeper.nin);
	return (ssize_t)len;
}

static bool keeper_pending(const struct nbd_stream *s)
{
	return keeper.nin;
}

static ssize_t keeper_send(struct nbd_stream *s, const struct iovec *iov, size_t n)
{
	size_t len = MIN(iov[0].iov_len, sizeof(keeper.out) - keeper.nout);

	memcpy(keeper.out + keeper.nout, iov[0].iov_base, len);
	keeper.nout += len;
	errno = EAGAIN;
	return len ? (ssize_t)len : -1;
}

static int keeper_flush(struct nbd_stream *s)
{
	ssize_t n = keeper.nout ? send(keeper.fd, keeper.out, keeper.nout, MSG_NOSIGNAL) : 0;

	if (n < 0 && errno != EAGAIN)
		return -errno;
	keeper.nout -= (size_t)MAX(n, 0);
	memmove(keeper.out, keeper.out + MAX(n, 0), keeper.nout);
	return (int)keeper.nout;
}

static void keeper_bye(struct nbd_stream *s)
{
	keeper.said_bye = true;
	keeper.out[keeper.nout++] = '!';
}

static const char *keeper_why(const struct nbd_stream *s)
{
	return "";
}

static void keeper_destroy(struct nbd_stream *s)
{
	ndestroyed++;
}

static const struct nbd_stream_ops keeper_ops = {
	.recv = keeper_recv, .pending = keeper_pending, .send = keeper_send,
	.flush = keeper_flush, .bye = keeper_bye, .why = keeper_why, .destroy = keeper_destroy,
};

static int client;

/* A client that has asked for TLS: its handshake is under way. */
static void begin(void)
{
	uint8_t buf[64];

	by_hand_begin();
	rig.server->tls = &library;
	keeper.base.ops = &keeper_ops;
	client = rig_connect(&rig);
	greet(client);
	hear(client, buf, sizeof(buf));
	say(client, buf, put_option(buf, NBD_OPT_STARTTLS, NULL, 0));
	cr_assert_eq(hear(client, buf, sizeof(buf)), 20);
	cr_assert_not_null(shaking);
}

TestSuite(nbd_tls, .init = begin, .fini = by_hand_end);

static void secured(void)
{
	keeper.fd = shaking_fd;
	nbd_tls_done(shaking, &keeper.base, NULL);
	rig_run(&rig);
}

static void say_list(void)
{
	uint8_t buf[64];

	say(client, buf, put_option(buf, NBD_OPT_LIST, NULL, 0));
}

/* Bytes behind the option may be anybody's: the client gets no answer that it would go on from. */
Test(nbd_tls, bytes_in_clear_behind_the_option)
{
	struct nbd_conn *first = shaking;
	int other = rig_connect(&rig);
	uint8_t buf[64];
	size_t len;

	greet(other);
	hear(other, buf, sizeof(buf));
	len = put_option(buf, NBD_OPT_STARTTLS, NULL, 0);
	len += put_option(buf + len, NBD_OPT_LIST, NULL, 0);
	say(other, buf, len);
	expect_end(other);
	cr_assert_eq(shaking, first);
	leave(other);
	secured();
	leave(client);
}

/* The handshake alone reads: bytes of the client stay in the socket. */
Test(nbd_tls, handshake_has_the_socket)
{
	uint8_t buf[256];

	say_list();
	cr_assert_eq(recv(shaking_fd, buf, sizeof(buf), MSG_PEEK), 16);
	secured();
	cr_assert_gt(hear(client, buf, sizeof(buf)), 20, "bytes that waited are taken");
	leave(client);
	cr_assert_eq(ndestroyed, 1);
}

/* What the handshake has read is in the stream, and the socket shows nothing. */
Test(nbd_tls, bytes_that_came_with_the_handshake)
{
	uint8_t buf[256];

	keeper.nin = put_option(keeper.in, NBD_OPT_LIST, NULL, 0);
	secured();
	cr_assert_gt(hear(client, buf, sizeof(buf)), 20);
	leave(client);
}

Test(nbd_tls, handshake_fails)
{
	nbd_tls_done(shaking, NULL, "TLS: wrong key");
	rig_run(&rig);
	expect_end(client);
	cr_assert_not_null(strstr(last_line, "connection ends: TLS: wrong key"), "%s", last_line);
}

Test(nbd_tls, no_watch_behind_the_handshake)
{
	rig_watch_error = -ENOMEM;
	secured();
	rig_watch_error = 0;
	expect_end(client);
	cr_assert_eq(ndestroyed, 1);
	cr_assert_not_null(strstr(last_line, strerror(ENOMEM)), "%s", last_line);
}

/* The time of the client ends a handshake, whose socket lives until the handshake has ended. */
Test(nbd_tls, handshake_late)
{
	char byte;

	rig_pass_time(&rig, 30001);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	cr_assert_eq(recv(shaking_fd, &byte, 1, 0), 0, "the handshake sees the end");
	nbd_tls_done(shaking, &keeper.base, NULL);
	rig_run(&rig);
	cr_assert_eq(nbd_server_count(rig.server), 0);
	cr_assert_eq(ndestroyed, 1);
	close(client);
}

/* Where TLS is required, a client has less time to ask, and as much as others for the rest. */
Test(nbd_tls, asks_late)
{
	uint8_t buf[64];
	int late = rig_connect(&rig);

	greet(late);
	rig_pass_time(&rig, 9999);
	say(late, buf, put_option(buf, NBD_OPT_LIST, NULL, 0));
	cr_assert_eq(nbd_server_count(rig.server), 2);
	rig_pass_time(&rig, 1);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	cr_assert_not_null(strstr(last_line, "has not begun it for 10 s"), "%s", last_line);
	close(late);
	rig_pass_time(&rig, 1000);
	secured();
	rig_pass_time(&rig, 18999);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_pass_time(&rig, 1);
	cr_assert_eq(nbd_server_count(rig.server), 0);
	cr_assert_not_null(strstr(last_line, "handshake has taken 30 s"), "%s", last_line);
	close(client);
}

Test(nbd_tls, server_stops_in_the_handshake)
{
	nbd_server_stop(rig.server, NULL, NULL);
	rig_run(&rig);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	nbd_tls_done(shaking, NULL, "TLS: peer closed");
	rig_run(&rig);
	expect_end(client);
}

/* Bytes that a broken connection leaves in its stream are for nobody: the number of its socket is
 * another client's when the open is answered. */
Test(nbd_tls, broken_while_an_open_waits)
{
	uint8_t buf[256] = { 0 }, data[64];
	int other[2], was = shaking_fd;
	size_t len;

	secured();
	rig.mode = RIG_OPENS_LATE;
	while (send(was, buf, sizeof(buf), MSG_NOSIGNAL) > 0)
		;
	len = put_option(buf, 99, NULL, 0);
	say(client, buf, len + put_option(buf + len, NBD_OPT_GO, data, put_go(data, "disk")));
	cr_assert_not_null(rig.late);
	cr_assert_gt(keeper.nout, 0);
	close(client);
	rig_run(&rig);
	cr_assert_eq(fcntl(was, F_GETFD), -1);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
	cr_assert_eq(dup2(other[0], was), was);
	rig_open_now(&rig);
	cr_assert_eq(recv(other[1], buf, sizeof(buf), 0), -1, "not a byte");
	cr_assert_eq(ndestroyed, 1);
	if (other[0] != was)
		close(other[0]);
	close(was);
	close(other[1]);
}

/* A reply that the socket does not take yet is sent before the connection ends, and the end of TLS
 * behind the reply. */
Test(nbd_tls, end_waits_for_bytes_in_the_stream)
{
	uint8_t buf[256] = { 0 };
	size_t filled = 0;
	ssize_t n;

	secured();
	while ((n = send(shaking_fd, buf, sizeof(buf), MSG_NOSIGNAL)) > 0)
		filled += (size_t)n;
	say(client, buf, put_option(buf, NBD_OPT_ABORT, NULL, 0));
	cr_assert_eq(keeper.nout, 20);
	cr_assert(!keeper.said_bye);
	for (; filled; filled -= (size_t)n) {
		n = recv(client, buf, MIN(filled, sizeof(buf)), 0);
		cr_assert_gt(n, 0);
	}
	rig_run(&rig);
	cr_assert_eq(hear(client, buf, sizeof(buf)), 21);
	cr_assert_eq(buf[20], '!');
	leave(client);
}
