/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel gets of a queue and of the control: the entries of the rings, byte by byte, and
 * the numbers, where the system's header has them.  Calls into the kernel are the test's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/ublk_cmd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "ublk-kernel.h"

#define DEPTH 4u
#define QUEUE 2u
#define IO_BYTES 8192u

/* ---- the kernel ---- */

/* Entries of the last call, and what the kernel answers. */
static struct {
	uint8_t bytes[DEPTH][128];
	unsigned n;
} sent;
static int results[3];			/* of the calls, in order */
static unsigned nresults, ncalls;
static unsigned nyields;
static unsigned interrupted;		/* calls for the control, from now on */
static int not_there;			/* errno of devices, and of their directory */
static int control_fd = -1;
static const char *class_dir;
/* Completions that the next call for a queue finds. */
static struct {
	uint16_t tag;
	int res;
} completes[DEPTH];
static unsigned ncompletes;

static void complete(struct io_uring *ring, uint64_t data, int res)
{
	struct io_uring_cq *cq = &ring->cq;

	cq->cqes[*cq->ktail & *cq->kring_mask] = (struct io_uring_cqe){ .user_data = data,
									.res = res };
	io_uring_smp_store_release(cq->ktail, *cq->ktail + 1);
}

static unsigned take_entries(struct io_uring *ring, size_t size)
{
	struct io_uring_sq *sq = &ring->sq;

	sent.n = 0;
	while (sq->sqe_head != sq->sqe_tail) {
		unsigned at = sq->sqe_head++ & *sq->kring_mask;

		cr_assert_lt(sent.n, DEPTH);
		memcpy(sent.bytes[sent.n++], (uint8_t *)sq->sqes + at * size, size);
	}
	io_uring_smp_store_release(sq->khead, sq->sqe_head);
	return sent.n;
}

int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring)
{
	unsigned n = take_entries(ring, 64);

	for (unsigned i = 0; i < ncompletes; i++)
		complete(ring, completes[i].tag, completes[i].res);
	ncompletes = 0;
	return ncalls < nresults ? results[ncalls++] : (int)n;
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait_nr);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait_nr)
{
	static bool again;
	int n = !again;			/* a call that is interrupted has sent the command */

	cr_assert_eq(wait_nr, 1);
	again = interrupted;
	if (interrupted)
		return interrupted-- % 2 ? -EINTR : -EAGAIN;
	take_entries(ring, 128);
	complete(ring, 0, ncalls < nresults ? results[ncalls++] : 0);
	return n;
}

static unsigned init_flags;

int __real_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p);
int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p);
int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p)
{
	init_flags = p->flags;
	return __real_io_uring_queue_init_params(n, ring, p);
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	nyields++;
	return 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	if (strncmp(path, "/dev/ublk", 9))
		return __real_open(path, flags);
	errno = not_there;
	if (not_there)
		return -1;
	cr_assert_eq(flags, O_RDWR | O_CLOEXEC);
	control_fd = __real_open("/dev/zero", flags);
	return control_fd;
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
	errno = not_there;
	return not_there ? NULL : __real_opendir(strcmp(path, "/sys/class/ublk-char") ? path :
						 class_dir);
}

static void kernel_says(unsigned n, const int *says)
{
	memcpy(results, says, n * sizeof(*says));
	nresults = n;
	ncalls = 0;
}

/* ---- a queue ---- */

static struct ublk_ring *ring_create(int *fd)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER };
	struct io_uring probe;
	struct ublk_ring *r;

	if (__real_io_uring_queue_init_params(1, &probe, &p) < 0)
		cr_skip_test("no io_uring of Linux 6.1 here");
	io_uring_queue_exit(&probe);
	*fd = __real_open("/dev/zero", O_RDWR);
	cr_assert_eq(ublk_ring_create(&r, *fd, QUEUE, DEPTH, IO_BYTES), 0);
	nresults = 0;
	return r;
}

static void expect_command(unsigned i, int fd, uint32_t op, const struct ublk_abi_io *io)
{
	struct io_uring_sqe sqe;
	struct ublk_abi_io is;

	memcpy(&sqe, sent.bytes[i], sizeof(sqe));
	memcpy(&is, sent.bytes[i] + offsetof(struct io_uring_sqe, cmd), sizeof(is));
	cr_assert_eq(sqe.opcode, IORING_OP_URING_CMD);
	cr_assert_eq(sqe.flags, 0);
	cr_assert_eq(sqe.fd, fd);
	cr_assert_eq(sqe.off, op);
	cr_assert_eq(sqe.user_data, io->tag);
	cr_assert_eq(sqe.len, 0);
	expect_bytes(&is, io, sizeof(is), "command");
}

Test(ublk_ring, commands)
{
	struct ublk_ring *r;
	int fd;

	r = ring_create(&fd);
	for (uint16_t tag = 0; tag < DEPTH; tag++) {
		memset(ublk_ring_buf(r, tag), 1 + tag, IO_BYTES);
		ublk_ring_fetch(r, tag);
	}
	for (uint16_t tag = 0; tag < DEPTH; tag++) {
		const uint8_t *buf = ublk_ring_buf(r, tag);

		cr_assert(buf[0] == 1 + tag && buf[IO_BYTES - 1] == 1 + tag);
	}
	cr_assert_eq(ublk_ring_submit(r), 0);
	cr_assert_eq(sent.n, DEPTH);
	for (uint16_t tag = 0; tag < DEPTH; tag++)
		expect_command(tag, fd, UBLK_IO_FETCH,
			       &(struct ublk_abi_io){ .queue = QUEUE, .tag = tag,
						      .addr = (uintptr_t)ublk_ring_buf(r, tag) });
	ublk_ring_commit(r, 3, -EIO);
	ublk_ring_commit(r, 1, 4096);
	cr_assert_eq(ublk_ring_submit(r), 0);
	cr_assert_eq(sent.n, 2);
	expect_command(0, fd, UBLK_IO_COMMIT_AND_FETCH,
		       &(struct ublk_abi_io){ .queue = QUEUE, .tag = 3, .result = -EIO,
					      .addr = (uintptr_t)ublk_ring_buf(r, 3) });
	expect_command(1, fd, UBLK_IO_COMMIT_AND_FETCH,
		       &(struct ublk_abi_io){ .queue = QUEUE, .tag = 1, .result = 4096,
					      .addr = (uintptr_t)ublk_ring_buf(r, 1) });
	cr_assert_eq(ublk_ring_submit(r), 0);
	cr_assert_eq(sent.n, 0);
	ublk_ring_destroy(r);
	close(fd);
}

/* Short of memory, and disturbed by a signal: once more.  Anything else is the ring's end. */
Test(ublk_ring, failures)
{
	struct ublk_ring *r;
	int fd;

	r = ring_create(&fd);
	kernel_says(3, (const int[]){ -EINTR, -EAGAIN, -EBUSY });
	cr_assert_eq(ublk_ring_submit(r), 0);
	cr_assert_eq(ncalls, 3);
	cr_assert_eq(nyields, 2, "memory comes from others");
	kernel_says(1, (const int[]){ -EEXIST });
	cr_assert_eq(ublk_ring_submit(r), -EEXIST);
	ublk_ring_destroy(r);
	close(fd);
}

Test(ublk_ring, completions)
{
	struct ublk_ring *r;
	uint16_t tag;
	int fd, result;

	r = ring_create(&fd);
	cr_assert(!ublk_ring_ready(r));
	cr_assert(!ublk_ring_next(r, &tag, &result));
	cr_assert_geq(ublk_ring_fd(r), 0);
	cr_assert_eq(ublk_ring_desc(r, 3) - ublk_ring_desc(r, 0), 3);
	completes[0].tag = 3;
	completes[0].res = 0;
	completes[1].tag = 1;
	completes[1].res = UBLK_IO_ABORTED;
	ncompletes = 2;
	cr_assert_eq(ublk_ring_submit(r), 0);
	cr_assert(ublk_ring_ready(r));
	cr_assert(ublk_ring_next(r, &tag, &result));
	cr_assert(tag == 3 && result == 0);
	cr_assert(ublk_ring_next(r, &tag, &result));
	cr_assert(tag == 1 && result == UBLK_IO_ABORTED);
	cr_assert(!ublk_ring_ready(r));
	cr_assert(!ublk_ring_next(r, &tag, &result));
	ublk_ring_destroy(r);
	ublk_ring_destroy(NULL);
	close(fd);
}

/* The kernel may use the tags and the memory of a ring until the process ends. */
Test(ublk_ring, left)
{
	struct ublk_ring *r[2];
	void *bufs[2];
	int fd, rings[2];

	for (unsigned i = 0; i < 2; i++) {
		r[i] = ring_create(&fd);
		bufs[i] = ublk_ring_buf(r[i], DEPTH - 1);
		rings[i] = ublk_ring_fd(r[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		ublk_ring_leave(r[i]);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_neq(fcntl(rings[i], F_GETFD), -1);
		memset(bufs[i], 1, IO_BYTES);
	}
	/* It could be handed a request that no thread takes, for ever. */
	cr_assert(!(init_flags & IORING_SETUP_DEFER_TASKRUN));
	cr_assert(init_flags & IORING_SETUP_COOP_TASKRUN);
}

/* ---- the control ---- */

static void expect_control(uint32_t op, const struct ublk_abi_ctl *ctl)
{
	struct io_uring_sqe sqe;
	struct ublk_abi_ctl is;

	cr_assert_eq(sent.n, 1);
	memcpy(&sqe, sent.bytes[0], sizeof(sqe));
	memcpy(&is, sent.bytes[0] + offsetof(struct io_uring_sqe, cmd), sizeof(is));
	cr_assert_eq(sqe.opcode, IORING_OP_URING_CMD);
	cr_assert_eq(sqe.fd, control_fd);
	cr_assert_eq(sqe.off, op);
	expect_bytes(&is, ctl, sizeof(is), "command");
}

#define CTL(...) (&(const struct ublk_abi_ctl){ .dev = 7, .queue = UINT16_MAX, __VA_ARGS__ })

Test(ublk_ring, control)
{
	struct ublk_abi_params params = { .types = UBLK_PARAM_BASIC };
	struct ublk_abi_dev dev = { .id = 7 };
	struct ublk_ctl *ctl;
	uint64_t features = UINT64_MAX;
	char why[256];
	int rc;

	nresults = 0;
	rc = ublk_ctl_open(&ctl, &features, why, sizeof(why));
	if (rc == -EPERM || rc == -ENOSYS || rc == -EINVAL)
		cr_skip_test("no io_uring of Linux 6.1 here");
	cr_assert_eq(rc, 0, "%s", why);
	expect_control(UBLK_CTL_GET_FEATURES,
		       &(const struct ublk_abi_ctl){ .dev = UINT32_MAX, .queue = UINT16_MAX,
						     .len = 8, .addr = (uintptr_t)&features });
	cr_assert_eq(ublk_ctl_add(ctl, &dev), 0);
	expect_control(UBLK_CTL_ADD_DEV, CTL(.addr = (uintptr_t)&dev, .len = sizeof(dev)));
	cr_assert_eq(ublk_ctl_get(ctl, 7, &dev), 0);
	expect_control(UBLK_CTL_GET_DEV_INFO, CTL(.addr = (uintptr_t)&dev, .len = sizeof(dev)));
	cr_assert_eq(ublk_ctl_set_params(ctl, 7, &params), 0);
	cr_assert_eq(params.len, sizeof(params));
	expect_control(UBLK_CTL_SET_PARAMS,
		       CTL(.addr = (uintptr_t)&params, .len = sizeof(params)));
	cr_assert_eq(ublk_ctl_get_params(ctl, 7, &params), 0);
	cr_assert(params.len == sizeof(params) && !params.types);
	expect_control(UBLK_CTL_GET_PARAMS,
		       CTL(.addr = (uintptr_t)&params, .len = sizeof(params)));
	cr_assert_eq(ublk_ctl_start(ctl, 7), 0);
	expect_control(UBLK_CTL_START_DEV, CTL(.data = (uint64_t)getpid()));
	cr_assert_eq(ublk_ctl_stop(ctl, 7), 0);
	expect_control(UBLK_CTL_STOP_DEV, CTL());
	cr_assert_eq(ublk_ctl_del(ctl, 7), 0);
	expect_control(UBLK_CTL_DEL_DEV_ASYNC, CTL());
	cr_assert_eq(ublk_ctl_recover(ctl, 7), 0);
	expect_control(UBLK_CTL_START_RECOVERY, CTL());
	cr_assert_eq(ublk_ctl_recovered(ctl, 7), 0);
	expect_control(UBLK_CTL_END_RECOVERY, CTL(.data = (uint64_t)getpid()));
	kernel_says(1, (const int[]){ -EBUSY });
	cr_assert_eq(ublk_ctl_resize(ctl, 7, 12345), -EBUSY);
	expect_control(UBLK_CTL_UPDATE_SIZE, CTL(.data = 12345));
	interrupted = 2;
	kernel_says(1, (const int[]){ -EBUSY });
	cr_assert_eq(ublk_ctl_stop(ctl, 7), -EBUSY);
	cr_assert_eq(interrupted, 0);
	ublk_ctl_close(ctl);
	ublk_ctl_close(NULL);
}

/* A kernel without what a disk needs to outlive its process. */
Test(ublk_ring, features)
{
	static const uint64_t lacks[] = { UBLK_ABI_RECOVERY, UBLK_ABI_REISSUE,
					  UBLK_ABI_IOCTL_NUMBERS };
	struct ublk_ctl *ctl;
	uint64_t features;
	char why[256];

	for_each_case(c, lacks) {
		nresults = 0;
		features = ~*c;
		cr_assert_lt(ublk_ctl_open(&ctl, &features, why, sizeof(why)), 0);
	}
}

Test(ublk_ring, no_driver)
{
	static const struct { int err; const char *why; } cases[] = {
		{ ENOENT, "modprobe" }, { ENODEV, "modprobe" }, { ENXIO, "modprobe" },
		{ EACCES, "run as root" }, { EPERM, "run as root" }, { EMFILE, "Too many" },
	};
	struct ublk_ctl *ctl;
	uint64_t features;
	char why[256];

	for_each_case(c, cases) {
		not_there = c->err;
		cr_assert_eq(ublk_ctl_open(&ctl, &features, why, sizeof(why)), -c->err);
		cr_assert(strstr(why, c->why), "%s", why);
		cr_assert_eq(ublk_ctl_open_char(7), -c->err);
	}
	not_there = 0;
	cr_assert_geq(ublk_ctl_open_char(7), 0);
}

/* Devices in order, whatever the order of the directory. */
Test(ublk_ring, devices)
{
	static const char *const names[] = { "ublkc3", "ublkc12", "ublkc0", "other5" };
	char dir[] = "/tmp/ublk-ring.XXXXXX", path[64];
	uint32_t id = 0;

	cr_assert_not_null(mkdtemp(dir));
	for_each_case(c, names) {
		snprintf(path, sizeof(path), "%s/%s", dir, *c);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	class_dir = dir;
	cr_assert(!ublk_ctl_next(&id) && id == 0);
	id = 1;
	cr_assert(!ublk_ctl_next(&id) && id == 3);
	id = 3;
	cr_assert(!ublk_ctl_next(&id) && id == 3);
	id = 4;
	cr_assert(!ublk_ctl_next(&id) && id == 12);
	id = 13;
	cr_assert_eq(ublk_ctl_next(&id), -ENODEV);
	not_there = ENOENT;
	cr_assert_eq(ublk_ctl_next(&id), -ENODEV);
	not_there = EACCES;
	cr_assert_eq(ublk_ctl_next(&id), -EACCES);
	for_each_case(c, names) {
		snprintf(path, sizeof(path), "%s/%s", dir, *c);
		rmdir(path);
	}
	rmdir(dir);
}

/* The header of this system may be older, and then has the numbers without their encoding. */
Test(ublk_ring, numbers)
{
	cr_assert_eq(UBLK_CTL_ADD_DEV,
		     _IOWR('u', UBLK_CMD_ADD_DEV, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_START_DEV,
		     _IOWR('u', UBLK_CMD_START_DEV, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_STOP_DEV,
		     _IOWR('u', UBLK_CMD_STOP_DEV, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_SET_PARAMS,
		     _IOWR('u', UBLK_CMD_SET_PARAMS, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_GET_PARAMS,
		     _IOR('u', UBLK_CMD_GET_PARAMS, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_GET_DEV_INFO,
		     _IOR('u', UBLK_CMD_GET_DEV_INFO, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_START_RECOVERY,
		     _IOWR('u', UBLK_CMD_START_USER_RECOVERY, struct ublksrv_ctrl_cmd));
	cr_assert_eq(UBLK_CTL_END_RECOVERY,
		     _IOWR('u', UBLK_CMD_END_USER_RECOVERY, struct ublksrv_ctrl_cmd));
#ifdef UBLK_U_CMD_DEL_DEV_ASYNC
	cr_assert_eq(UBLK_CTL_DEL_DEV_ASYNC, UBLK_U_CMD_DEL_DEV_ASYNC);
	cr_assert_eq(UBLK_CTL_GET_FEATURES, UBLK_U_CMD_GET_FEATURES);
	cr_assert_eq(UBLK_IO_FETCH, UBLK_U_IO_FETCH_REQ);
	cr_assert_eq(UBLK_IO_COMMIT_AND_FETCH, UBLK_U_IO_COMMIT_AND_FETCH_REQ);
#endif
	cr_assert_eq(UBLK_ABI_RECOVERY, UBLK_F_USER_RECOVERY);
	cr_assert_eq(UBLK_ABI_REISSUE, UBLK_F_USER_RECOVERY_REISSUE);
	cr_assert_eq(UBLK_TAGS, UBLK_MAX_QUEUE_DEPTH);
	cr_assert_eq(sizeof(struct ublk_abi_dev), sizeof(struct ublksrv_ctrl_dev_info));
	cr_assert_eq(offsetof(struct ublk_abi_dev, ours),
		     offsetof(struct ublksrv_ctrl_dev_info, ublksrv_flags));
	cr_assert_eq(sizeof(struct ublk_abi_desc), sizeof(struct ublksrv_io_desc));
}
