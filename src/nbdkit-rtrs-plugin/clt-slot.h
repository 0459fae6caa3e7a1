/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: a slot is a permit (protocol.md 2.7), the buf_id and msg_id of the request it carries,
 * and that request's state and memory.  queue_depth of them for a session; they outlive paths.
 *
 * A slot belongs to the operation that holds it, from clt_slot_get() to clt_slot_put().  Between
 * clt_io_submit() and its push to clt_op.finished it is in flight and only the thread that has the
 * send lock or the poll role of its connection may touch it.
 *
 * How data reaches memory that the device can reach is decided here alone: with local_dma_lkey the
 * caller's buffer is used itself, under a key that lives as long as the request (design.md D7). */
#ifndef CLT_SLOT_H
#define CLT_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bitmap.h"
#include "fabric.h"
#include "rtrs-wr.h"

struct clt_op;
struct clt_path;
struct clt_sess;

/* clt_slot.state: what the request still waits for, and clt_con.key of where it is in flight. */
#define CLT_SLOT_ANSWER 0x1u
#define CLT_SLOT_SENT 0x2u		/* a send completion: its source is the caller's buffer */
#define CLT_SLOT_WAITS 0x3u
#define CLT_SLOT_KEY_SHIFT 2

/* clt_slot.status: not an answer; the request is to be sent again (or given up). */
#define CLT_AGAIN 1

struct clt_slot {
	uint32_t id;
	struct clt_op *op;
	struct clt_slot *next;		/* send list, then op->finished, then op->held */
	atomic_uint state;		/* 0: not in flight */
	int status;			/* 0, negative errno of the server, CLT_AGAIN */
	unsigned life;			/* of the path when it was posted */
	/* the part of the operation it carries */
	uint64_t off;
	uint32_t len;
	/* what is posted */
	struct fab_cqe cqe;
	struct rtrs_wr_req w;
	uint8_t hdr[RTRS_HDR_MAX] __attribute__((aligned(8)));
};

struct clt_slots {
	struct clt_slot *slot;		/* [n] */
	struct bitmap permits;
	unsigned n;			/* queue depth the session began with */
	atomic_uint limit;		/* ids below it may be used; a path that came back may have less */
	atomic_uint nwaiting;		/* operations in line */
};

/* @n permits.  Service thread, before the first request.  0 or -ENOMEM. */
int clt_slots_init(struct clt_slots *s, unsigned n);
void clt_slots_fini(struct clt_slots *s);

/* A permit for @op now, or NULL and @op stands in line: then it is told to look (clt-wait.h)
 * when one was laid into op->granted for it.  First come, first served.  Owner of @op. */
struct clt_slot *clt_slot_get(struct clt_op *op);
/* Give it back; hands it to the first in line.  Owner. */
void clt_slot_put(struct clt_sess *sess, struct clt_slot *slot);
/* Leave the line and give back what was granted and not used. */
void clt_slot_leave(struct clt_op *op);
/* Permits that became usable (a larger limit) go to those in line.  Service thread. */
void clt_slot_regrant(struct clt_sess *sess);

/* Make @slot's part of the buffer reachable over @path: fills @data for a WRITE, @desc for a READ.
 * Under the send lock of its connection.  0 or -errno. */
int clt_slot_map(struct clt_slot *slot, struct clt_path *path, struct ibv_sge *data,
		 struct rtrs_desc *desc);
/* No peer reaches the buffer any more when this returns.  Owner, not in flight; idempotent. */
void clt_slot_unmap(struct clt_slot *slot, struct clt_path *path);
/* Per path: one region for each slot.  Service thread. */
int clt_slot_attach(struct clt_path *path);
void clt_slot_detach(struct clt_path *path);

#endif
