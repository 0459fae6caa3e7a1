/* SPDX-License-Identifier: BSD-3-Clause */
/* For io-uring-short-send.sh: requests that move less than was asked, each linked to a NOP. */
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char data[8 << 20];

static void pair(const char *name, int opcode, int fd, unsigned len, unsigned flags)
{
	struct io_uring_params p = { 0 };
	int ring = syscall(SYS_io_uring_setup, 4, &p);

	if (ring < 0)
		_exit(77);
	char *rings = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
			   PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *sqe = mmap(NULL, 4 * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
					ring, IORING_OFF_SQES);
	unsigned *array = (unsigned *)(rings + p.sq_off.array);
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)(rings + p.cq_off.cqes);

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe[0].opcode = opcode;
	sqe[0].flags = IOSQE_IO_LINK;
	sqe[0].fd = fd;
	sqe[0].addr = (unsigned long)data;
	sqe[0].len = len;
	sqe[0].msg_flags = flags;
	sqe[1].opcode = IORING_OP_NOP;
	sqe[1].user_data = 1;
	array[0] = 0;
	array[1] = 1;
	__atomic_store_n((unsigned *)(rings + p.sq_off.tail), 2, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, ring, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0);

	int res = cqe[cqe[0].user_data].res, next = cqe[!cqe[0].user_data].res;

	printf("%s: %s, next %s\n", name, res > 0 && res < (int)len ? "short" : "not short",
	       next ? "cancelled" : "done");
	close(ring);
}

int main(void)
{
	int out[2], in[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, out);
	pair("send", IORING_OP_SEND, out[0], sizeof(data), MSG_DONTWAIT);
	socketpair(AF_UNIX, SOCK_STREAM, 0, in);
	write(in[1], data, 100);
	pair("recv", IORING_OP_RECV, in[0], 1000, 0);
	write(in[1], data, 100);
	pair("read of a socket", IORING_OP_READ, in[0], 1000, 0);
	write(in[1], data, 100);
	shutdown(in[1], SHUT_WR);
	pair("recv with MSG_WAITALL", IORING_OP_RECV, in[0], 1000, MSG_WAITALL);
	return 0;
}
