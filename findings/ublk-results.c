/* SPDX-License-Identifier: BSD-3-Clause */
/* For ublk-results.sh: a ublk disk of 1 MiB in memory, whose answers are short or errors, and what
 * its user sees. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <linux/ublk_cmd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH 4
#define SIZE (1u << 20)
#define LEN 65536u

static char disk[SIZE], memory[DEPTH][LEN] __attribute__((aligned(4096)));
static int device;
static pthread_barrier_t armed;
/* Of each request an error; of the first one of an operation, whether half of it is carried out. */
static _Atomic int error, half, requests;

static void fatal(const char *what)
{
	perror(what);
	_exit(1);
}

static void control(int fd, unsigned cmd, void *addr, size_t len, uint64_t data)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQE128 };
	struct ublksrv_ctrl_cmd arg = {
		.dev_id = 0, .queue_id = -1, .addr = (uintptr_t)addr, .len = len, .data[0] = data,
	};
	struct io_uring ring;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;

	if (io_uring_queue_init_params(2, &ring, &params))
		fatal("ring");
	sqe = io_uring_get_sqe(&ring);
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = cmd;
	memcpy(sqe->cmd, &arg, sizeof(arg));
	io_uring_submit(&ring);
	if (io_uring_wait_cqe(&ring, &cqe) || cqe->res) {
		errno = -cqe->res;
		fatal("ublk-control");
	}
	io_uring_queue_exit(&ring);
}

static void command(struct io_uring *ring, unsigned cmd, unsigned tag, int result)
{
	struct ublksrv_io_cmd arg = {
		.tag = tag, .result = result, .addr = (uintptr_t)memory[tag],
	};
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = device;
	sqe->cmd_op = cmd;
	sqe->user_data = tag;
	memcpy(sqe->cmd, &arg, sizeof(arg));
}

static int serve(const struct ublksrv_io_desc *desc, char *mem)
{
	size_t len = desc->nr_sectors * 512 / (half && !requests ? 2 : 1);
	char *place = disk + desc->start_sector * 512;

	requests++;
	if (error)
		return -error;
	switch (ublksrv_get_op(desc)) {
	case UBLK_IO_OP_READ:
		memcpy(mem, place, len);
		break;
	case UBLK_IO_OP_WRITE:
		memcpy(place, mem, len);
		break;
	case UBLK_IO_OP_FLUSH:
		return 0;
	default:
		memset(place, 0, len);
	}
	return (int)len;
}

static void *server(void *unused)
{
	const struct ublksrv_io_desc *descs = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ,
						   MAP_SHARED, device, 0);
	struct io_uring ring;
	struct io_uring_cqe *cqe;

	(void)unused;
	if (descs == MAP_FAILED || io_uring_queue_init(DEPTH, &ring, 0))
		fatal("queue");
	for (unsigned tag = 0; tag < DEPTH; tag++)
		command(&ring, UBLK_U_IO_FETCH_REQ, tag, 0);
	io_uring_submit(&ring);
	pthread_barrier_wait(&armed);
	while (!io_uring_wait_cqe(&ring, &cqe)) {
		unsigned tag = (unsigned)cqe->user_data;
		int res = cqe->res;

		io_uring_cqe_seen(&ring, cqe);
		if (res != UBLK_IO_RES_OK)
			fatal("request");
		command(&ring, UBLK_U_IO_COMMIT_AND_FETCH_REQ, tag, serve(&descs[tag], memory[tag]));
		io_uring_submit(&ring);
	}
	return NULL;
}

static const char *result(int rc)
{
	return rc < 0 ? strerrorname_np(errno) : "ok";
}

/* All five on a disk that is full of 'o', with what the last byte of the range is then. */
static void all(int fd, const char *name)
{
	static char mem[LEN] __attribute__((aligned(4096)));
	uint64_t range[2] = { 0, LEN };
	const char *seen;

	printf("%s:", name);
	memset(disk, 'o', SIZE);
	memset(mem, 'n', LEN);
	requests = 0;
	seen = result(pwrite(fd, mem, LEN, 0) < 0 ? -1 : 0);
	printf(" WRITE %s (requests %d, last byte %s)", seen, requests,
	       disk[LEN - 1] == 'n' ? "new" : "old");
	memset(disk, 'o', SIZE);
	requests = 0;
	seen = result(pread(fd, mem, LEN, 0) < 0 ? -1 : 0);
	printf(", READ %s (requests %d)\n ", seen, requests);
	memset(disk, 'o', SIZE);
	requests = 0;
	seen = result(ioctl(fd, BLKZEROOUT, range));
	printf(" WRITE_ZEROES %s (last byte %s)", seen, disk[LEN - 1] ? "old" : "zero");
	memset(disk, 'o', SIZE);
	requests = 0;
	seen = result(ioctl(fd, BLKDISCARD, range));
	printf(", DISCARD %s (last byte %s)", seen, disk[LEN - 1] ? "old" : "zero");
	seen = result(fsync(fd));
	printf(", FLUSH %s\n", seen);
}

int main(void)
{
	struct ublksrv_ctrl_dev_info info = {
		.nr_hw_queues = 1, .queue_depth = DEPTH, .max_io_buf_bytes = LEN, .dev_id = 0,
		.ublksrv_pid = getpid(), .flags = UBLK_F_CMD_IOCTL_ENCODE,
	};
	struct ublk_params params = {
		.len = sizeof(params), .types = UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD,
		.basic = {
			.logical_bs_shift = 9, .physical_bs_shift = 9, .io_min_shift = 9, .io_opt_shift = 9,
			.max_sectors = LEN / 512, .dev_sectors = SIZE / 512,
			.attrs = UBLK_ATTR_VOLATILE_CACHE,
		},
		.discard = {
			.discard_granularity = 512, .max_discard_sectors = LEN / 512,
			.max_write_zeroes_sectors = LEN / 512, .max_discard_segments = 1,
		},
	};
	const int errors[] = { ENOSPC, EPERM, EROFS, EOPNOTSUPP };
	int fd = open("/dev/ublk-control", O_RDWR);
	pthread_t thread;

	if (fd < 0)
		fatal("/dev/ublk-control");
	control(fd, UBLK_U_CMD_ADD_DEV, &info, sizeof(info), 0);
	device = open("/dev/ublkc0", O_RDWR);
	if (device < 0)
		fatal("/dev/ublkc0");
	control(fd, UBLK_U_CMD_SET_PARAMS, &params, sizeof(params), 0);
	pthread_barrier_init(&armed, NULL, 2);
	pthread_create(&thread, NULL, server, NULL);
	pthread_barrier_wait(&armed);
	control(fd, UBLK_U_CMD_START_DEV, NULL, 0, (uint64_t)getpid());
	fd = open("/dev/ublkb0", O_RDWR | O_DIRECT);
	if (fd < 0)
		fatal("/dev/ublkb0");
	all(fd, "whole");
	half = 1;
	all(fd, "half");
	half = 0;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		error = errors[i];
		all(fd, strerrorname_np(errors[i]));
	}
	fflush(stdout);
	_exit(0);
}
