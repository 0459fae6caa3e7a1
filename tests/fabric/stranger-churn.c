/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers that connect, say a few bytes and go no further, as fast as a server drops them:
 *
 *	stranger-churn PORT HOSTS <BYTES
 *
 * They come from 127.0.0.2 to 127.0.0.(HOSTS + 1) in turns.  More connections are open than the
 * server keeps; when the server has closed one, another one comes.  So the rate is the server's,
 * and the queue of the listener is never full.  Prints "churning" once as many connections as are
 * open have been dropped, and at SIGTERM the number of connections that were dropped. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPEN 400u		/* more than 256, and fewer than these with a backlog of 512 */

static struct sockaddr_in server = { .sin_family = AF_INET };
static char bytes[512];
static size_t nbytes;
static volatile sig_atomic_t ends;

static void end(int sig)
{
	ends = sig;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int stranger(unsigned host)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	/* Without a memory in the kernel, in which ports would run out. */
	const struct linger reset = { .l_onoff = 1 };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + host);
	if (fd < 0 ||
	    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)))
		die("socket");
	if (connect(fd, (struct sockaddr *)&server, sizeof(server)) && !ends)
		die("connect");
	send(fd, bytes, nbytes, MSG_NOSIGNAL);
	return fd;
}

/* True if @fd is at its end, behind any answer. */
static bool at_end(int fd)
{
	char answer[1024];
	ssize_t n;

	do {
		n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	} while (n > 0);
	return n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* Wait until one of @fds is at its end, and close it.  Returns its number, or any at SIGTERM. */
static unsigned dropped(struct pollfd *fds)
{
	while (!ends) {
		if (poll(fds, OPEN, -1) < 0 && errno != EINTR)
			die("poll");
		for (unsigned i = 0; i < OPEN; i++) {
			if (fds[i].revents && at_end(fds[i].fd)) {
				close(fds[i].fd);
				return i;
			}
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct sigaction on_term = { .sa_handler = end };
	unsigned long n = 0;
	static struct pollfd fds[OPEN];
	unsigned hosts;

	if (argc != 3)
		return 2;
	server.sin_port = htons((uint16_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	hosts = (unsigned)atoi(argv[2]);
	nbytes = fread(bytes, 1, sizeof(bytes), stdin);
	sigaction(SIGTERM, &on_term, NULL);
	for (; !ends; n++) {
		unsigned i = n < OPEN ? (unsigned)n : dropped(fds);

		if (ends)
			break;
		if (n == 2 * OPEN) {
			printf("churning\n");
			fflush(stdout);
		}
		fds[i] = (struct pollfd){ .fd = stranger((unsigned)(n % hosts)), .events = POLLIN };
	}
	printf("%lu dropped\n", n < OPEN ? 0 : n - OPEN);
	return 0;
}
