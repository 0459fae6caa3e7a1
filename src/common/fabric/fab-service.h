/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves a connection on a loop: polls it, arms it before the loop's thread sleeps, and drains it
 * after its failure, until the descriptor is not watched any more.
 *
 * Embedded in its owner, and inert until fab_service_begin().  Every function is called on the
 * thread of the loop.
 *
 * THE END.  fab_poll() says that the connection has drained, whichever end began: ended(), and then
 * gone().  A failed connection may drain without an event (fab_arm()).  So an owner that knows of a
 * failure calls fab_service_failed() or fab_service_disconnect(), and the service looks each
 * second.  A service without gone() lets go of its descriptor at once, and its owner may give the
 * connection to another service at any time: fab_service_stop(). */
#ifndef FAB_SERVICE_H
#define FAB_SERVICE_H

#include "fabric.h"
#include "fsm.h"
#include "loop.h"

enum fab_service_state {
	FAB_SERVICE_IDLE,		/* not begun, or stopped */
	FAB_SERVICE_SERVING,
	FAB_SERVICE_FAILED,		/* the connection has failed; its end is awaited */
	FAB_SERVICE_ENDED,		/* drained; the descriptor may still be watched */
	FAB_SERVICE_GONE,		/* the descriptor is not watched any more */
	FAB_SERVICE_NSTATES
};

enum fab_service_event {
	FAB_SERVICE_EV_BEGIN,
	FAB_SERVICE_EV_FAIL,		/* the owner knows that the connection has failed */
	FAB_SERVICE_EV_END,		/* fab_poll() has ended */
	FAB_SERVICE_EV_UNWATCHED,
	FAB_SERVICE_EV_STOP,		/* the owner takes the connection back */
	FAB_SERVICE_NEVENTS
};

struct fab_service;

/* The owner of a service.  Constant. */
struct fab_service_ops {
	/* Dispatch completions, at most about @budget.  Returns as fab_dispatch(), which is what
	 * NULL stands for. */
	int (*poll)(struct fab_service *s, int budget);
	int budget;
	/* No other work is left: do what was put off, and call fab_service_arm().  True: poll once
	 * more.  NULL: the service arms, at the end of each poll if arming is cheap. */
	bool (*before_sleep)(struct fab_service *s);
	/* Nothing completes any more.  NULL: the owner does not care. */
	void (*ended)(struct fab_service *s);
	/* The loop refers to neither @s nor the descriptor: the connection may be destroyed, and @s
	 * freed.  NULL: the same holds right behind ended(). */
	void (*gone)(struct fab_service *s);
};

struct fab_service {
	const struct fab_service_ops *ops;
	struct loop *loop;
	struct fab_conn *fab;
	struct loop_watch watch;
	struct loop_task again;		/* poll without waiting for the descriptor */
	struct loop_task sleep;		/* before the thread sleeps */
	struct loop_timer look;		/* of a failed connection */
	bool armed;			/* since the last poll, or that poll left more behind */
	atomic_uint state;		/* enum fab_service_state */
};

/* Initialise @s, which is idle. */
void fab_service_init(struct fab_service *s, const struct fab_service_ops *ops);
/* Serve @fab, which has queues, on @loop from now on, and poll soon.  @s is idle or gone.  Returns
 * 0, or -errno if the descriptor cannot be watched: then @s serves all the same, but hears of
 * nothing, and the owner has the connection fail. */
int fab_service_begin(struct fab_service *s, struct loop *loop, struct fab_conn *fab);
/* Give the connection back, polled and armed by nobody from now on.  @s, which has no gone(), is
 * idle. */
void fab_service_stop(struct fab_service *s);

/* Poll soon, whatever the descriptor says. */
void fab_service_poll_soon(struct fab_service *s);
/* Poll until nothing is left. */
void fab_service_poll_now(struct fab_service *s);
/* Call before_sleep() before the thread sleeps. */
void fab_service_wake(struct fab_service *s);
/* Arm.  True: poll once more.  For before_sleep(). */
bool fab_service_arm(struct fab_service *s);
/* Arm again, now or before the thread sleeps, behind a post. */
void fab_service_rearm(struct fab_service *s);

/* The connection has failed by itself, or somebody has disconnected it: see to it that it drains.
 * Nothing happens to a service that has ended already. */
void fab_service_failed(struct fab_service *s);
/* Disconnect the connection, and see to it that it drains, beginning soon. */
void fab_service_disconnect(struct fab_service *s);

/* Call after each post: see to it that the socket gets drained. */
static inline void fab_service_posted(struct fab_service *s)
{
	if (fab_need_rearm(s->fab))
		fab_service_rearm(s);
}

/* True while @s polls its connection. */
static inline bool fab_service_runs(const struct fab_service *s)
{
	unsigned state = atomic_load_explicit(&s->state, memory_order_relaxed);

	return state == FAB_SERVICE_SERVING || state == FAB_SERVICE_FAILED;
}

/* True if @s may begin: it has ended, or never begun. */
static inline bool fab_service_may_begin(const struct fab_service *s)
{
	unsigned state = atomic_load_explicit(&s->state, memory_order_relaxed);

	return state == FAB_SERVICE_IDLE || state == FAB_SERVICE_GONE;
}

/* The table of states, for pictures and tests. */
extern const struct fsm fab_service_fsm;

#endif
