/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; any thread; cannot fail: a socket with an error is over.
 *
 * A socket that is closed with unread input tells the client of an error instead of the end of the
 * stream.  Over TCP that error is a reset, which also ends the delivery of bytes that the client's
 * machine has not acknowledged.  The bytes in a unix socket are the client's already. */
#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "nbd-linger.h"

#define DROPS 64u			/* recv() in one look: another client's turn comes */

/* 1: input was dropped; 0: there was none; -1: none will come. */
static int drop_input(int fd)
{
	static _Thread_local char bytes[16 << 10];
	ssize_t n = 1;
	int dropped = 0;

	for (unsigned i = 0; i < DROPS && n > 0; i++) {
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0)
			dropped = 1;
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)) ? dropped : -1;
}

/* Of a unix socket SIOCOUTQ tells what the client has not read, which a close leaves alone. */
static bool is_output_on_its_way(int fd)
{
	socklen_t len = sizeof(int);
	int domain = AF_UNIX, unacked = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 || domain == AF_UNIX)
		return false;
	return ioctl(fd, SIOCOUTQ, &unacked) == 0 && unacked > 0;
}

enum nbd_linger nbd_linger_look(int fd)
{
	int input = drop_input(fd);

	if (input < 0)
		return NBD_LINGER_OVER;
	if (input)
		return NBD_LINGER_INPUT;
	return is_output_on_its_way(fd) ? NBD_LINGER_OUTPUT : NBD_LINGER_OVER;
}
