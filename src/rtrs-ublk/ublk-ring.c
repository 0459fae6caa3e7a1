/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns an io_uring and the mapping of the queue's descriptors.
 *
 * The kernel completes a command on the thread that gave it, which must be in the kernel for that:
 * with DEFER_TASKRUN inside of ublk_ring_submit() alone, so data of writes is copied there, and no
 * signal disturbs epoll_wait().  The descriptor of such a ring is readable while work waits. */
#include <config.h>

#include <assert.h>
#include <liburing.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ublk-ring.h"
#include "util.h"

struct ublk_ring {
	struct io_uring ring;
	int fd;
	uint16_t queue;
	const struct ublk_abi_desc *descs;	/* [depth], written by the kernel */
	size_t descs_len;
};

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

int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth)
{
	/* A tag has one command at a time, so both queues hold all of them. */
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
	};
	struct ublk_ring *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->fd = fd;
	r->queue = queue;
	rc = descs_map(r, depth);
	if (rc < 0)
		goto err_free;
	rc = io_uring_queue_init_params(depth, &r->ring, &p);
	if (rc < 0)
		goto err_unmap;
	*out = r;
	return 0;

err_unmap:
	munmap((void *)r->descs, r->descs_len);
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
	free(r);
}

int ublk_ring_fd(const struct ublk_ring *r)
{
	return r->ring.ring_fd;
}

static void give(struct ublk_ring *r, uint32_t op, uint16_t tag, int32_t result, void *buf)
{
	const struct ublk_abi_io io = { .queue = r->queue, .tag = tag, .result = result,
					.addr = (uintptr_t)buf };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	assert(sqe);			/* the tag has no other command */
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = r->fd;
	sqe->off = op;			/* cmd_op */
	sqe->user_data = tag;
	memcpy(sqe->cmd, &io, sizeof(io));
}

void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag, void *buf)
{
	give(r, UBLK_IO_FETCH, tag, 0, buf);
}

void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result, void *buf)
{
	give(r, UBLK_IO_COMMIT_AND_FETCH, tag, result, buf);
}

int ublk_ring_submit(struct ublk_ring *r)
{
	int rc;

	do {
		rc = io_uring_submit_and_get_events(&r->ring);
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
