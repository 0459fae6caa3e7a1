/* SPDX-License-Identifier: BSD-3-Clause */
/* The IO path: operations, and how their parts travel on a connection.  Nothing here blocks.
 *
 * An operation is what the caller wants (a read of 64 MiB); a part is what one RTRS request carries.
 * Parts of one operation go over one connection, CLT_OP_PARTS at a time, over permits as they
 * become free.  The owner of an operation calls clt_op_start() once, then clt_op_step() whenever its
 * waiter was told something, until that returns true.
 *
 * SENDING is flat combining: a slot is pushed on its connection's list; whoever gets the send lock
 * encodes and posts the whole list as one chain; who does not get it leaves, because the holder looks
 * at the list again after it let go.
 *
 * FAILURE: a request in flight ends in one of two ways, by its answer (and, when its source is the
 * caller's buffer, its send completion), or when its path has drained.  So no operation is done
 * while a connection may still read or write its buffer (doc/decisions.md D12). */
#ifndef CLT_IO_H
#define CLT_IO_H

#include "clt-slot.h"
#include "clt-wait.h"

struct clt_con;
struct clt_sess;

#define CLT_OP_PARTS 16			/* in flight for one operation */

struct clt_op {
	/* set by the caller before clt_op_start() */
	struct clt_sess *sess;
	enum rtrs_dir dir;
	bool user;			/* a user message of RNBD: connection 0, one part */
	bool borrow;			/* sent while the path is OPENING, without a permit; user only */
	bool bound;			/* for one life of the path: @ready tells when that is over, and
					 * nothing else ends the wait */
	void *buf;			/* READ target, WRITE source; NULL: no data */
	uint64_t len;			/* bytes covered */
	uint32_t part_max;		/* bytes a part may cover at most; for data also bounded by the
					 * session's max_io_size */
	unsigned hint;			/* spreads over connections */
	/* Write the user message for the part [off, off + len) to @usr[RTRS_USR_MAX]; returns its
	 * length.  Under the send lock, each time the part is sent. */
	size_t (*encode)(const struct clt_op *op, uint64_t off, uint32_t len, uint8_t *usr);
	/* May parts be sent now, apart from the path's state?  0 yes, CLT_AGAIN not yet, negative:
	 * fails the operation.  NULL: yes.  Owner. */
	int (*ready)(const struct clt_op *op);
	/* The path was lost with the part in flight: CLT_AGAIN (and NULL) sends it again, anything
	 * else ends it with that status. */
	int (*lost)(const struct clt_op *op);
	/* A part that was sent, last in @life of the path, and not answered will not be sent again with
	 * its permit, which goes to others: the server may still carry it out.  NULL: no matter.  Owner. */
	void (*gave_up)(const struct clt_op *op, unsigned life);

	/* result, when clt_op_step() returned true */
	int status;			/* 0 or the first error */
	unsigned life;			/* oldest life of the path that answered a part */

	/* private */
	struct clt_waiter waiter;
	struct clt_con *con;
	_Atomic(struct clt_slot *) finished;
	struct clt_slot *held;		/* owner: to be sent again */
	struct clt_slot *granted;	/* sess->lock */
	struct list permit_link;	/* sess->lock: in line for a permit */
	struct list up_link;		/* sess->lock: waits for the path */
	bool listed;			/* owner: may be on one of the two */
	unsigned inflight;		/* owner: submitted, not yet taken from finished */
	uint64_t next_off;
	bool last_issued;
	bool restart;			/* owner: a part was too large; all anew when none is in flight */
};

/* Begin @op with a waiter of @fn (NULL: the calling thread's, clt-wait.h).  Then step it. */
void clt_op_start(struct clt_op *op, void (*fn)(struct clt_waiter *w));
/* Take what finished, send what can be sent.  True when @op is done: nothing refers to it any
 * more.  Owner. */
bool clt_op_step(struct clt_op *op);
/* Has parts in flight: its owner should poll. */
static inline bool clt_op_in_flight(const struct clt_op *op)
{
	return op->inflight > 0;
}

/* ---- a connection's side (clt-tx.c, clt-rx.c; the operation's is clt-op.c) ---- */

/* Put @slot on the list of @con; then clt_tx_flush().  Any thread. */
void clt_tx_queue(struct clt_con *con, struct clt_slot *slot);
/* Send what is queued on @con, unless somebody does already.  Any thread. */
void clt_tx_flush(struct clt_con *con);
/* Something is queued on @con and nobody is sending: clt_tx_flush() has to be called.  Any thread. */
bool clt_tx_must_flush(struct clt_con *con);
/* Dispatch completions.  Returns what fab_dispatch() does; at -ENOTCONN the path was failed and
 * @con->drained is set.  Poll role. */
int clt_rx_poll(struct clt_con *con, int budget);
/* A post since fab_arm() has left something that a sleeping leader would not hear of, and that is
 * not to wait for the next answer.  Send lock or poll role. */
bool clt_tx_must_poll(struct clt_con *con);
/* No post is going on and none will be until the path comes back: what is queued goes back to its
 * owners.  Service thread. */
void clt_tx_seal(struct clt_con *con);
/* Posts are possible.  Service thread. */
void clt_tx_unseal(struct clt_con *con);
/* Give all requests of @sess that were in flight on @path back to their owners as CLT_AGAIN.  All
 * connections are drained and sealed.  Service thread. */
void clt_tx_fail_over(struct clt_path *path);

/* Receives of @con: @n; with NEW_RKEY 8 bytes each, else empty.  Service thread. */
int clt_rx_post(struct clt_con *con, unsigned n);

#endif
