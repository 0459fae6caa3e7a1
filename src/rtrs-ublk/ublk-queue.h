/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of the kernel's driver on a loop of the client (clt-loop.h): the thread of the loop gets
 * the kernel's requests, sends them over its connections of the session, gets the server's answers,
 * and answers the kernel.  A request never changes its thread.  Thread of the loop. */
#ifndef UBLK_QUEUE_H
#define UBLK_QUEUE_H

#include <stdatomic.h>

#include "dev-req.h"
#include "fsm.h"
#include "loop.h"
#include "ublk-kernel.h"

struct ublk_req;

enum ublk_queue_state {
	UBLK_QUEUE_IDLE,		/* not begun, or over */
	UBLK_QUEUE_SERVES,
	UBLK_QUEUE_LEAVES,		/* begins no request any more, and answers those that
					 * succeed or tell of a loss */
	UBLK_QUEUE_NSTATES
};

enum ublk_queue_event {
	UBLK_QUEUE_EV_BEGIN, UBLK_QUEUE_EV_LEAVE, UBLK_QUEUE_EV_OVER, UBLK_QUEUE_NEVENTS
};

struct ublk_queue {
	/* set by the caller before ublk_queue_begin(), when all else is 0 */
	struct loop *loop;		/* one of the session's */
	struct dev_handle *h;
	int fd;				/* the character device, open until @over */
	uint16_t id, depth;
	uint32_t io_bytes;		/* of the largest request; whole pages */
	/* The queue begins and answers nothing any more.  @status: 0, after ublk_queue_leave() or
	 * because the device has stopped; or -errno of a fault, which was logged. */
	void (*over)(struct ublk_queue *q, int status);

	/* private */
	atomic_uint state;		/* enum ublk_queue_state */
	struct ublk_ring *ring;
	struct ublk_req *reqs;		/* [depth], by tag */
	struct list ready;		/* ublk_req.ready: to be stepped */
	struct loop_watch watch;	/* the ring */
	struct loop_task step, settle, take, end;
	unsigned nrunning, nover;	/* requests; tags that the kernel has given up */
	unsigned nlosses;		/* told by answers that were not sent yet */
	int status;
};

extern const struct fsm ublk_queue_fsm;

/* Give all tags of @q to the kernel, and serve.  Returns 0 or -errno, with nothing left to end. */
int ublk_queue_begin(struct ublk_queue *q);
/* Be over when no request runs, without waiting for it.  A request that was not begun, or fails, is
 * the kernel's again when this process ends (ublk-kernel.h).  Does nothing to a queue that leaves
 * or is over; cannot fail. */
void ublk_queue_leave(struct ublk_queue *q);

#endif
