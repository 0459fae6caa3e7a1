/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which the requests of a thread enter the storage: deficit round robin (DRR,
 * doc/decisions.md D25).
 *
 * A request that may enter waits in a flow: of its session, its export and its class of priority.
 * Each pass of the thread has a round.  A round goes from the best class to the worst, and gives
 * each flow with requests a quantum; a request costs its bytes and a constant part.  A flow whose
 * last request of a round costs more than is left owes the rest to the next rounds.  A flow with a
 * single small request stands first in its class.  What a round leaves belongs to the next pass,
 * which comes without a sleep.
 *
 * A flow without neighbours has a larger quantum, so that one pass submits all that a poll of a
 * connection brings, and its requests need no round: srv_drr_at_once().  A flow has neighbours from
 * the first request of another flow on, and until SRV_DRR_REMEMBERED rounds in a row had no request
 * of another.
 *
 * THE BOUND.  From the arrival of the first request of a flow to its entry, each other flow enters
 * requests of one quantum and at most one request more; if the first one is small and alone, only
 * flows like it and better classes enter.  No flow starves, whatever the classes.
 *
 * Thread of the connection, unless a function says otherwise.  Cannot fail. */
#ifndef SRV_DRR_H
#define SRV_DRR_H

#include <stdatomic.h>
#include <stdint.h>

#include "list.h"
#include "loop.h"

/* Costs, in bytes.  A request costs its bytes and SRV_DRR_REQUEST: a 4k read takes about as much
 * time for the request as for the data. */
#define SRV_DRR_REQUEST 4096u
#define SRV_DRR_QUANTUM (16u * 2 * SRV_DRR_REQUEST)
#define SRV_DRR_SMALL (4u * 2 * SRV_DRR_REQUEST)	/* a small request costs no more */
#define SRV_DRR_QUANTUM_ALONE (128u * 2 * SRV_DRR_REQUEST)
#define SRV_DRR_REMEMBERED 64u		/* rounds */

enum srv_drr_class {
	SRV_DRR_REALTIME,
	SRV_DRR_BEST_EFFORT,
	SRV_DRR_IDLE,
	SRV_DRR_CLASSES
};

/* The requests of a flow that wait, on one thread. */
struct srv_drr_flow {
	struct list link;		/* srv_drr.flows, while a request waits */
	struct list waiting;		/* struct srv_drr_item */
	int64_t credit;			/* of costs; negative: owed; 0 while no request waits */
	uint64_t entered;		/* requests of the flow */
	/* The most requests of other flows that entered between the arrival of a request of this
	 * flow and its entry; read by any thread. */
	_Atomic(uint64_t) ahead_max;
};

/* A request that waits. */
struct srv_drr_item {
	struct list link;
	uint64_t cost;
	uint64_t others;		/* of other flows: what had entered at the arrival */
	/* The request enters the storage. */
	void (*fn)(struct srv_drr_item *item);
};

/* Of a thread. */
struct srv_drr {
	struct loop *loop;
	struct loop_task task;		/* a round */
	struct list flows[SRV_DRR_CLASSES];	/* struct srv_drr_flow, in the order of the round */
	const struct srv_drr_flow *last;	/* the only one of the last round; NULL: several */
	unsigned neighbours;		/* rounds for which there may be neighbours */
	/* The flow without neighbours; NULL: there are some, or requests wait.  Compared only. */
	const struct srv_drr_flow *alone;
	uint64_t pass;			/* loop_pass() for which @alone has @credit */
	int64_t credit;			/* of costs, for srv_drr_at_once() */
	uint64_t entered;		/* requests of all flows */
};

/* Initialise @drr, whose rounds belong to the passes of @loop. */
void srv_drr_init(struct srv_drr *drr, struct loop *loop);
/* Initialise @flow, which has no request. */
void srv_drr_flow_init(struct srv_drr_flow *flow);
/* True: a request of @flow that moves @bytes enters now, and is counted; the caller lets it enter.
 * false: it waits, by srv_drr_add(). */
bool srv_drr_at_once(struct srv_drr *drr, struct srv_drr_flow *flow, uint32_t bytes);
/* Have @item, whose fn is set and which moves @bytes, enter in its turn: in a round of this pass
 * or of a later one, not inside this call.  @flow lives until the fn runs. */
void srv_drr_add(struct srv_drr *drr, struct srv_drr_flow *flow, enum srv_drr_class class,
		 struct srv_drr_item *item, uint32_t bytes);

#endif
