/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: a slot is a permit (doc/protocol.md 2.7), the buf_id and msg_id of the request it carries,
 * and that request's state and memory.  queue_depth of them for a session; they outlive paths.
 *
 * IO may wait for a user message, when its device is to be opened again, and keeps its permits
 * meanwhile; so there is one permit that IO does not get: 0, with a slot of its own (clt_sess.ctl).  A
 * user message takes it when the others are in use.  With a queue depth of 1 IO has to have it, too;
 * then the two take turns: what is only held does not keep the other from being sent.
 *
 * A slot belongs to the operation that holds it, from clt_slot_get() to clt_slot_put().  Between
 * clt_tx_queue() and its push to clt_op.finished it is in flight and only the thread that has the
 * send lock or the poll role of its connection may touch it. */
#ifndef CLT_SLOT_H
#define CLT_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bitmap.h"
#include "fabric.h"
#include "frwr.h"
#include "rtrs-wr.h"

struct clt_op;
struct clt_path;
struct clt_sess;

/* clt_slot.state: what the request still waits for, and clt_con.key of where it is in flight. */
#define CLT_SLOT_ANSWER 0x1u
#define CLT_SLOT_SENT 0x2u		/* a send completion: its source is the caller's buffer */
#define CLT_SLOT_POST 0x4u		/* the post it is in, which reads its memory; with posted() (clt-key.h) */
#define CLT_SLOT_INV 0x8u		/* our invalidate of its window */
#define CLT_SLOT_WAITS 0xfu
#define CLT_SLOT_KEY_SHIFT 4

/* clt_slot.status: not an answer; the request is to be sent again (or given up), or it does not fit the
 * path that came back, which has fewer permits or takes less in one request. */
#define CLT_AGAIN 1
#define CLT_TOO_LARGE 2

struct clt_slot {
	uint32_t id;
	struct clt_op *op;
	struct clt_slot *next;		/* send list, then op->finished, then op->held */
	atomic_uint state;		/* 0: not in flight */
	int status;			/* 0, negative errno of the server, or one of the above */
	unsigned life;			/* of the path when it was posted */
	bool posted;			/* and not answered since, on that or an earlier path */
	/* the part of the operation it carries */
	uint64_t off;
	uint32_t len;
	/* what is posted */
	struct fab_cqe cqe;
	struct rtrs_wr_req w;
	struct frwr *window;		/* NULL: none */
	struct frwr_entry entry;	/* of @window: its bind and @w, then its invalidate */
	uint8_t hdr[RTRS_HDR_MAX] __attribute__((aligned(8)));
};

struct clt_slot_table {
	struct clt_slot *slot;		/* [n] */
	struct bitmap permits;		/* bit i: permit i + 1 */
	atomic_bool zero_taken;		/* permit 0, by IO: only where there is no other */
	atomic_bool zero_sent;		/* buf_id 0 is in flight */
	unsigned n;			/* queue depth the session began with */
	atomic_uint limit;		/* ids below it may be used; a path that came back may have less */
	atomic_uint nwaiting;		/* operations in line */
};

/* @n permits.  Service thread, before the first request.  0 or -ENOMEM. */
int clt_slot_table_init(struct clt_slot_table *s, unsigned n);
void clt_slot_table_fini(struct clt_slot_table *s);

/* A permit for @op now, or NULL and @op stands in line: then it is told to look (clt-wait.h)
 * when one was laid into op->granted for it.  First come, first served, but user messages first.
 * Owner of @op. */
struct clt_slot *clt_slot_get(struct clt_op *op);
/* May @slot be sent now?  If not, its buf_id is in flight for another, and @op is told to look when
 * that has ended.  Owner. */
bool clt_slot_enter(struct clt_op *op, struct clt_slot *slot);
/* What clt_slot_enter() let pass is not in flight any more.  Owner. */
void clt_slot_exit(struct clt_op *op, struct clt_slot *slot);
/* Give it back; hands it to the first in line.  Owner. */
void clt_slot_put(struct clt_sess *sess, struct clt_slot *slot);
/* Leave the line and give back what was granted and not used. */
void clt_slot_leave(struct clt_op *op);
/* Permits that became usable (a larger limit) go to those in line.  Service thread. */
void clt_slot_regrant(struct clt_sess *sess);

#endif
