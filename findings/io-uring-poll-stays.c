/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that listens at the unix socket argv[1] and waits for connections: by a poll of an
 * io_uring if argv[2] is "ring", by poll(2) otherwise.  Prints a line when it listens. */
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct io_uring ring;
	struct io_uring_cqe *cqe;

	if (argc != 3)
		return 2;
	strncpy(addr.sun_path, argv[1], sizeof(addr.sun_path) - 1);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 8))
		return 1;
	if (strcmp(argv[2], "ring")) {
		puts("listens");
		fflush(stdout);
		return poll(&pfd, 1, -1) < 0;
	}
	if (io_uring_queue_init(8, &ring, 0))
		return 77;
	io_uring_prep_poll_add(io_uring_get_sqe(&ring), fd, POLLIN);
	if (io_uring_submit(&ring) != 1)
		return 1;
	puts("listens");
	fflush(stdout);
	return io_uring_wait_cqe(&ring, &cqe) < 0;
}
