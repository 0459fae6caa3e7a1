/* SPDX-License-Identifier: BSD-3-Clause */
/* When the socket of an NBD client may be closed: the sockets are the kernel's, because the rules
 * are. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbd-priv.h"
#include "unit.h"

static int ours, theirs;

static void tcp_pair(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	theirs = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(theirs, (struct sockaddr *)&addr, len), 0);
	ours = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	cr_assert_geq(ours, 0);
	close(listener);
}

static void unix_pair(void)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ours = fds[0];
	theirs = fds[1];
}

/* Look until it is @state: the kernel's own time is not ours. */
static void look_for(enum nbd_linger state)
{
	while (nbd_linger_look(ours) != state)
		poll(NULL, 0, 1);
}

/* Send until the socket takes no more.  Returns the number of bytes. */
static size_t fill(void)
{
	static const char bytes[64 << 10];
	size_t sum = 0;
	ssize_t n;

	while ((n = send(ours, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		sum += (size_t)n;
	cr_assert_eq(errno, EAGAIN);
	return sum;
}

/* Read until the end, which is none by an error.  Returns the number of bytes. */
static size_t read_all(void)
{
	static char bytes[64 << 10];
	size_t sum = 0;
	ssize_t n;

	while ((n = recv(theirs, bytes, sizeof(bytes), 0)) > 0)
		sum += (size_t)n;
	cr_assert_eq(n, 0, "%s", strerror(errno));
	return sum;
}

Test(linger, idle)
{
	tcp_pair();
	shutdown(ours, SHUT_WR);
	look_for(NBD_LINGER_OVER);
	unix_pair();
	shutdown(ours, SHUT_WR);
	cr_assert_eq(nbd_linger_look(ours), NBD_LINGER_OVER);
}

/* Input is dropped, and there may be more. */
static void input_comes(void)
{
	struct pollfd pfd = { .fd = ours, .events = POLLIN };

	cr_assert_eq(send(ours, "reply", 5, 0), 5);
	cr_assert_eq(send(theirs, "request", 7, 0), 7);
	cr_assert_eq(poll(&pfd, 1, -1), 1);
	shutdown(ours, SHUT_WR);
	cr_assert_eq(nbd_linger_look(ours), NBD_LINGER_INPUT);
	look_for(NBD_LINGER_OVER);
	close(ours);
	cr_assert_eq(read_all(), 5);
}

Test(linger, input)
{
	tcp_pair();
	input_comes();
	unix_pair();
	input_comes();
}

/* Over TCP replies are with the client when its machine has them. */
Test(linger, output_over_tcp)
{
	static char bytes[64 << 10];
	size_t sum, got = 0;

	tcp_pair();
	sum = fill();
	shutdown(ours, SHUT_WR);
	cr_assert_eq(nbd_linger_look(ours), NBD_LINGER_OUTPUT);
	while (nbd_linger_look(ours) != NBD_LINGER_OVER) {
		ssize_t n = recv(theirs, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n > 0)
			got += (size_t)n;
		else
			poll(NULL, 0, 1);
	}
	close(ours);
	/* What the client sends now is answered by a reset. */
	cr_assert_eq(send(theirs, "request", 7, MSG_NOSIGNAL), 7);
	while (got < sum) {
		ssize_t n = recv(theirs, bytes, sizeof(bytes), 0);

		cr_assert_gt(n, 0, "%zu of %zu bytes: %s", got, sum, strerror(errno));
		got += (size_t)n;
	}
}

/* In a unix socket they are with the client at once. */
Test(linger, output_in_a_unix_socket)
{
	size_t sum;

	unix_pair();
	sum = fill();
	shutdown(ours, SHUT_WR);
	cr_assert_eq(nbd_linger_look(ours), NBD_LINGER_OVER);
	close(ours);
	cr_assert_eq(read_all(), sum);
}

/* Nothing can be taken from a client that has closed. */
Test(linger, client_has_closed)
{
	tcp_pair();
	shutdown(ours, SHUT_WR);
	cr_assert_eq(send(theirs, "request", 7, 0), 7);
	close(theirs);
	look_for(NBD_LINGER_OVER);
	/* A reset is seen at once, behind input and with output that has not arrived. */
	tcp_pair();
	fill();
	cr_assert_eq(send(theirs, "request", 7, 0), 7);
	close(theirs);
	cr_assert_eq(nbd_linger_look(ours), NBD_LINGER_OVER);
	unix_pair();
	fill();
	shutdown(ours, SHUT_WR);
	close(theirs);
	cr_assert_eq(nbd_linger_look(ours), NBD_LINGER_OVER);
}
