/* SPDX-License-Identifier: BSD-3-Clause */
/* A request of NBD has any offset and length inside the device.  The request reads, changes and
 * writes the blocks of its unaligned edges, in a range that no other writer enters meanwhile.
 *
 * The owner steps a request, as the owner of an operation does (clt_op_step()).  dev_call_read()
 * and so on are for an owner that is a waiting thread.  No function blocks. */
#ifndef DEV_REQ_H
#define DEV_REQ_H

#include "counter.h"
#include "dev.h"
#include "range.h"

struct dev_req;

enum dev_req_stage {
	DEV_REQ_ENTERS,			/* waits until its range is granted */
	DEV_REQ_WHOLE,			/* an IO of whole blocks is under way */
	DEV_REQ_EDGE_READ,		/* the block of an unaligned edge is being read */
	DEV_REQ_EDGE_WRITTEN,		/* that block, changed, is being written */
	DEV_REQ_FLUSHES,		/* the FUA of a discard is under way */
	DEV_REQ_DONE,
};

/* The rest of a request that is cut at blocks: a piece of the first block, whole blocks, and a
 * piece of the last block. */
struct dev_pieces {
	uint64_t size;			/* of the device, read once: a reopen may find less */
	uint64_t off, len;		/* inside the device */
	uint64_t block, block_len;	/* the block a piece is in */
	uint64_t n;			/* bytes of the next piece */
	bool whole;			/* the next piece is whole blocks */
};

/* The owner embeds the struct, and may use its memory again after dev_req_step() has returned
 * true. */
struct dev_req {
	/* set by the caller before the start */
	void (*fn)(struct dev_req *q);	/* schedules a step (struct clt_waiter); NULL: the thread of
					 * the owner waits */
	/* private */
	struct dev_handle *h;
	enum io_stat_op what;
	enum rnbd_io_op op;
	enum dev_req_stage stage;
	uint32_t flags;			/* RNBD_F_* */
	uint8_t *buf;			/* NULL: none */
	uint64_t begin, len;		/* as asked for */
	int status;
	enum { DEV_REQ_NO_LOSS, DEV_REQ_TELLS_LOSS } loss;	/* of the end */
	struct dev_pieces pieces;
	unsigned epoch;			/* oldest in which a written piece was answered */
	uint8_t *block;			/* the memory of an edge, of one block; NULL: none yet */
	struct dev_io io;
	struct range range;		/* .granted NULL: none is held */
	struct clt_waiter waiter;	/* for the range */
};

/* Begin to read @len bytes at @off.  @buf lives until the end of the request.  The owner calls
 * dev_req_step() until true, here and below. */
void dev_req_read(struct dev_req *q, struct dev_handle *h, void *buf, uint32_t len, uint64_t off);
/* Begin to write @buf, which lives until the end of the request.  @fua: durable at the end. */
void dev_req_write(struct dev_req *q, struct dev_handle *h, const void *buf, uint32_t len,
		   uint64_t off, bool fua);
/* Begin to make durable all writes that have ended before. */
void dev_req_flush(struct dev_req *q, struct dev_handle *h);
/* Begin to discard whole blocks; the data of unaligned edges stays.  The status is -EOPNOTSUPP if
 * the server takes no DISCARD. */
void dev_req_discard(struct dev_req *q, struct dev_handle *h, uint64_t len, uint64_t off, bool fua);
/* Begin to write zeroes.  The status is -EOPNOTSUPP if the server cannot write zeroes as asked. */
void dev_req_zero(struct dev_req *q, struct dev_handle *h, uint64_t len, uint64_t off,
		  bool may_unmap, bool fua);

/* Advance the request as far as possible.  True: the request has ended, and dev_req_status() is its
 * result.  Owner's thread. */
bool dev_req_step(struct dev_req *q);
/* The result of a request that has ended: 0 or -errno. */
static inline int dev_req_status(const struct dev_req *q)
{
	return q->status;
}

/* Does the error of a request that has ended tell of a loss?  The handle counts as told then: no
 * other request of it will fail for this loss. */
static inline bool dev_req_tells_loss(const struct dev_req *q)
{
	return q->loss == DEV_REQ_TELLS_LOSS;
}

/* ---- for a thread that waits until the end ----
 * Any thread; each function blocks, and returns 0 or -errno. */

/* Read @len bytes at @off, both any inside the device. */
int dev_call_read(struct dev_handle *h, void *buf, uint32_t len, uint64_t off);
/* Write @len bytes at @off, both any inside the device.  Blocks of unaligned edges are read,
 * changed and written under a lock that excludes their other writers.  @fua: durable at the
 * return. */
int dev_call_write(struct dev_handle *h, const void *buf, uint32_t len, uint64_t off, bool fua);
/* Make durable all writes that have ended before. */
int dev_call_flush(struct dev_handle *h);
/* Discard whole blocks; the data of unaligned edges stays.  -EOPNOTSUPP: the server takes no
 * DISCARD. */
int dev_call_discard(struct dev_handle *h, uint32_t len, uint64_t off, bool fua);
/* Write zeroes.  -EOPNOTSUPP: the server cannot write zeroes as asked. */
int dev_call_zero(struct dev_handle *h, uint32_t len, uint64_t off, bool may_unmap, bool fua);

#endif
