/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns an io_uring, the mapping of the queue's descriptors, and the memory of its requests; and
 * those of rings that were left, until the process ends.
 *
 * The kernel completes a command on the thread that gave it, which must be in the kernel for that,
 * and copies the data of a write there.  COOP_TASKRUN: at the next call of the thread, which need
 * not be one of the ring.  Not DEFER_TASKRUN, with which the end of a process may never end
 * (doc/decisions.md D28). */
#include <config.h>

#include <assert.h>
#include <liburing.h>
#include <sched.h>
#include <stdatomic.h>
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
