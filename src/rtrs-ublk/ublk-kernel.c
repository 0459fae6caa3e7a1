/* SPDX-License-Identifier: BSD-3-Clause */
/* Control: owns the descriptor of the driver and a ring for it, whose entries have 128 bytes.  A
 * command is sent alone and waited for.  Possible failures: the command's result, and no driver.
 *
 * A queue: owns an io_uring, the mapping of the queue's descriptors, and the memory of its
 * requests; and those of rings that were left, until the process ends.  The kernel completes a
 * command on the thread that gave it, which must be in the kernel for that, and copies the data of
 * a write there.  COOP_TASKRUN: at the next call of the thread, which need not be one of the ring.
 * Not DEFER_TASKRUN, with which the end of a process may never end (doc/decisions.md D28). */
#include <config.h>

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process.h"
#include "ublk-kernel.h"
#include "util.h"

/* A link for each device. */
#define UBLK_CLASS "/sys/class/ublk-char"

struct ublk_ctl {
	int fd;
	struct io_uring ring;
};

/* 0 or -errno. */
static int ctl_wait(struct ublk_ctl *ctl)
{
	struct io_uring_cqe *cqe;
	int r;

	do {
		r = io_uring_submit_and_wait(&ctl->ring, 1);
	} while (r == -EINTR || r == -EAGAIN);
	if (r < 0)
		return r;
	do {
		r = io_uring_wait_cqe(&ctl->ring, &cqe);
	} while (r == -EINTR);
	if (r < 0)
		return r;
	r = cqe->res;
	io_uring_cqe_seen(&ctl->ring, cqe);
	return r;
}

static int ctl_call(struct ublk_ctl *ctl, uint32_t op, const struct ublk_abi_ctl *cmd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ctl->ring);

	assert(sqe);			/* the last command has ended */
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = ctl->fd;
	sqe->off = op;			/* cmd_op */
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
	return MIN(ctl_wait(ctl), 0);
}

static int ctl_plain(struct ublk_ctl *ctl, uint32_t op, uint32_t id, uint64_t data)
{
	return ctl_call(ctl, op, &(struct ublk_abi_ctl){ .dev = id, .queue = UBLK_NO_QUEUE,
							 .data = data });
}

static int ctl_with(struct ublk_ctl *ctl, uint32_t op, uint32_t id, void *buf, size_t len)
{
	return ctl_call(ctl, op, &(struct ublk_abi_ctl){ .dev = id, .queue = UBLK_NO_QUEUE,
							 .addr = (uintptr_t)buf,
							 .len = (uint16_t)len });
}

/* ---- the commands ---- */

int ublk_ctl_add(struct ublk_ctl *ctl, struct ublk_abi_dev *dev)
{
	return ctl_with(ctl, UBLK_CTL_ADD_DEV, dev->id, dev, sizeof(*dev));
}

int ublk_ctl_get(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_dev *dev)
{
	return ctl_with(ctl, UBLK_CTL_GET_DEV_INFO, id, dev, sizeof(*dev));
}

int ublk_ctl_del(struct ublk_ctl *ctl, uint32_t id)
{
	return ctl_plain(ctl, UBLK_CTL_DEL_DEV_ASYNC, id, 0);
}

int ublk_ctl_set_params(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_params *params)
{
	params->len = sizeof(*params);
	return ctl_with(ctl, UBLK_CTL_SET_PARAMS, id, params, sizeof(*params));
}

int ublk_ctl_get_params(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_params *params)
{
	*params = (struct ublk_abi_params){ .len = sizeof(*params) };
	return ctl_with(ctl, UBLK_CTL_GET_PARAMS, id, params, sizeof(*params));
}

int ublk_ctl_start(struct ublk_ctl *ctl, uint32_t id)
{
	return ctl_plain(ctl, UBLK_CTL_START_DEV, id, (uint64_t)getpid());
}

int ublk_ctl_stop(struct ublk_ctl *ctl, uint32_t id)
{
	return ctl_plain(ctl, UBLK_CTL_STOP_DEV, id, 0);
}

int ublk_ctl_recover(struct ublk_ctl *ctl, uint32_t id)
{
	return ctl_plain(ctl, UBLK_CTL_START_RECOVERY, id, 0);
}

int ublk_ctl_recovered(struct ublk_ctl *ctl, uint32_t id)
{
	return ctl_plain(ctl, UBLK_CTL_END_RECOVERY, id, (uint64_t)getpid());
}

int ublk_ctl_resize(struct ublk_ctl *ctl, uint32_t id, uint64_t sectors)
{
	return ctl_plain(ctl, UBLK_CTL_UPDATE_SIZE, id, sectors);
}

/* ---- devices ---- */

int ublk_ctl_open_char(uint32_t id)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), UBLK_CHAR "%u", id);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int ublk_ctl_next(uint32_t *id)
{
	DIR *dir = opendir(UBLK_CLASS);
	uint64_t next = UINT64_MAX;
	struct dirent *entry;
	unsigned n;

	if (!dir)
		return errno == ENOENT ? -ENODEV : -errno;
	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, "ublkc%u", &n) == 1 && n >= *id)
			next = MIN(next, (uint64_t)n);
	}
	closedir(dir);
	if (next == UINT64_MAX)
		return -ENODEV;
	*id = (uint32_t)next;
	return 0;
}

/* ---- the driver ---- */

static int ctl_open_failed(int err, char *why, size_t len)
{
	if (err == ENOENT || err == ENODEV || err == ENXIO)
		snprintf(why, len, UBLK_CONTROL " is not there: load the kernel's driver (modprobe "
			 "ublk_drv; Debian has it from Linux 6.12 on)");
	else
		snprintf(why, len, UBLK_CONTROL ": %s%s", fds_strerror(-err),
			 err == EACCES || err == EPERM ? ": run as root" : "");
	return -err;
}

static int ctl_features(struct ublk_ctl *ctl, uint64_t *features, char *why, size_t len)
{
	const uint64_t needed = UBLK_ABI_RECOVERY | UBLK_ABI_REISSUE | UBLK_ABI_IOCTL_NUMBERS;
	int r = ctl_with(ctl, UBLK_CTL_GET_FEATURES, UINT32_MAX, features, sizeof(*features));

	if (r < 0) {
		snprintf(why, len, UBLK_CONTROL ": %s: Linux 6.5 or later is needed",
			 strerror(-r));
	} else if ((*features & needed) != needed) {
		snprintf(why, len, "this kernel's ublk_drv has features 0x%llx, needed are 0x%llx: "
			 "Linux 6.5 or later", (unsigned long long)*features,
			 (unsigned long long)needed);
		r = -EOPNOTSUPP;
	}
	return r;
}

int ublk_ctl_open(struct ublk_ctl **out, uint64_t *features, char *why, size_t len)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQE128 };
	struct ublk_ctl *ctl = calloc(1, sizeof(*ctl));
	int r;

	if (!ctl) {
		snprintf(why, len, "no memory");
		return -ENOMEM;
	}
	ctl->fd = open(UBLK_CONTROL, O_RDWR | O_CLOEXEC);
	if (ctl->fd < 0) {
		r = ctl_open_failed(errno, why, len);
		goto err_free;
	}
	r = io_uring_queue_init_params(1, &ctl->ring, &p);
	if (r < 0) {
		snprintf(why, len, "cannot create an io_uring: %s%s", fds_strerror(r),
			 r == -EPERM ? " (kernel.io_uring_disabled, see sysctl(8))" : "");
		goto err_close;
	}
	r = ctl_features(ctl, features, why, len);
	if (r < 0)
		goto err_ring;
	*out = ctl;
	return 0;

err_ring:
	io_uring_queue_exit(&ctl->ring);
err_close:
	close(ctl->fd);
err_free:
	free(ctl);
	return r;
}

void ublk_ctl_close(struct ublk_ctl *ctl)
{
	if (!ctl)
		return;
	io_uring_queue_exit(&ctl->ring);
	close(ctl->fd);
	free(ctl);
}

/* ---- the ring of a queue ---- */

struct ublk_ring {
	struct io_uring ring;
	int fd;
	uint16_t queue;
	const struct ublk_abi_desc *descs;	/* [depth], written by the kernel */
	size_t descs_len;
	uint8_t *mem;				/* [depth][io_bytes] */
	size_t mem_len;
	uint32_t io_bytes;
	struct ublk_ring *left;			/* the next one that was left */
};

static _Atomic(struct ublk_ring *) all_left;

static int descs_map(struct ublk_ring *r, uint16_t depth)
{
	void *p;

	r->descs_len = align_up(depth * sizeof(*r->descs), (uint64_t)sysconf(_SC_PAGESIZE));
	p = mmap(NULL, r->descs_len, PROT_READ, MAP_SHARED | MAP_POPULATE, r->fd,
		 UBLK_DESCS_OFF(r->queue));
	if (p == MAP_FAILED)
		return -errno;
	r->descs = p;
	return 0;
}

/* Memory that is there before the first request: a write to a disk must not wait for memory that
 * the kernel frees by writes to this disk. */
static int mem_map(struct ublk_ring *r, uint16_t depth)
{
	void *p;

	r->mem_len = (size_t)depth * r->io_bytes;
	p = mmap(NULL, r->mem_len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->mem = p;
	return 0;
}

int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth,
		     uint32_t io_bytes)
{
	/* A tag has one command at a time, so both queues hold all of them. */
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
	};
	struct ublk_ring *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->fd = fd;
	r->queue = queue;
	r->io_bytes = io_bytes;
	rc = mem_map(r, depth);
	if (rc < 0)
		goto err_free;
	rc = descs_map(r, depth);
	if (rc < 0)
		goto err_mem;
	rc = io_uring_queue_init_params(depth, &r->ring, &p);
	if (rc < 0)
		goto err_descs;
	*out = r;
	return 0;

err_descs:
	munmap((void *)r->descs, r->descs_len);
err_mem:
	munmap(r->mem, r->mem_len);
err_free:
	free(r);
	return rc;
}

void ublk_ring_destroy(struct ublk_ring *r)
{
	if (!r)
		return;
	io_uring_queue_exit(&r->ring);
	munmap((void *)r->descs, r->descs_len);
	munmap(r->mem, r->mem_len);
	free(r);
}

void ublk_ring_leave(struct ublk_ring *r)
{
	r->left = atomic_load(&all_left);
	while (!atomic_compare_exchange_weak(&all_left, &r->left, r))
		;
}

int ublk_ring_fd(const struct ublk_ring *r)
{
	return r->ring.ring_fd;
}

static void give(struct ublk_ring *r, uint32_t op, uint16_t tag, int32_t result)
{
	const struct ublk_abi_io io = { .queue = r->queue, .tag = tag, .result = result,
					.addr = (uintptr_t)ublk_ring_buf(r, tag) };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	assert(sqe);			/* the tag has no other command */
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = r->fd;
	sqe->off = op;			/* cmd_op */
	sqe->user_data = tag;
	memcpy(sqe->cmd, &io, sizeof(io));
}

void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag)
{
	give(r, UBLK_IO_FETCH, tag, 0);
}

void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result)
{
	give(r, UBLK_IO_COMMIT_AND_FETCH, tag, result);
}

int ublk_ring_submit(struct ublk_ring *r)
{
	int rc;

	do {
		rc = io_uring_submit(&r->ring);
		if (rc == -EAGAIN || rc == -EBUSY)	/* the kernel is short of memory */
			sched_yield();
	} while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
	return MIN(rc, 0);
}

bool ublk_ring_ready(const struct ublk_ring *r)
{
	return io_uring_cq_ready(&r->ring) > 0;
}

bool ublk_ring_next(struct ublk_ring *r, uint16_t *tag, int *result)
{
	struct io_uring_cqe *cqe;

	if (io_uring_peek_cqe(&r->ring, &cqe) < 0)
		return false;
	*tag = (uint16_t)cqe->user_data;
	*result = cqe->res;
	io_uring_cqe_seen(&r->ring, cqe);
	return true;
}

const struct ublk_abi_desc *ublk_ring_desc(const struct ublk_ring *r, uint16_t tag)
{
	return &r->descs[tag];
}

void *ublk_ring_buf(const struct ublk_ring *r, uint16_t tag)
{
	return r->mem + (size_t)tag * r->io_bytes;
}
