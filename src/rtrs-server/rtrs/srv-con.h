/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of a path: polling, posting, draining.
 *
 * Created and destroyed on the control thread; everything between srv_con_start() and "drained" is
 * done by the thread the connection belongs to.  It reports to the control thread twice, in this
 * order: drained (no completion will come any more; carries the cause), and quiet (drained, cut,
 * and no request of it is with us any more: nothing refers to it).  It knows nothing of paths and
 * requests but their numbers: what it does for them is in struct srv_con_ops. */
#ifndef SRV_CON_H
#define SRV_CON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "fabric.h"
#include "fsm.h"
#include "io-stat.h"
#include "loop.h"
#include "list.h"
#include "reactor.h"

struct rtrs_msg_conn_rsp;
struct srv_path;
struct srv_req;
struct srv_thread;

#define SRV_CAUSE_LEN 240

/* From SRV_CON_DEAD on answers can go nowhere and are dropped; from SRV_CON_ENDED on nothing
 * completes. */
enum srv_con_state {
	SRV_CON_SERVING,	/* in set-up or in service */
	SRV_CON_FINISHING,	/* shutdown: executes nothing new, and answers what is in flight */
	SRV_CON_MARKED,		/* a marker is posted behind the last answer */
	SRV_CON_FINISHED,	/* the marker has left, and so has every answer */
	SRV_CON_DEAD,		/* has failed; its end is awaited */
	SRV_CON_CUT,		/* its path has failed; likewise */
	SRV_CON_ENDED,		/* fab_poll() said so; the descriptor is being unwatched */
	SRV_CON_CUT_ENDED,	/* likewise, and its path has failed */
	SRV_CON_DRAINED,	/* has been told as drained; the cut is awaited */
	SRV_CON_LINGERING,	/* drained and cut; requests may still be in the storage */
	SRV_CON_QUIET,		/* has been told as quiet: nothing refers to it */
	SRV_CON_NSTATES
};

enum srv_con_event {
	SRV_CON_EV_FINISH,	/* the server shuts down */
	SRV_CON_EV_IDLE,	/* nothing is in flight */
	SRV_CON_EV_LEFT,	/* the marker has completed */
	SRV_CON_EV_FAIL,	/* a cause was seen here */
	SRV_CON_EV_FLUSHED,	/* work was flushed: the fabric knows the cause */
	SRV_CON_EV_CUT,		/* its path has failed */
	SRV_CON_EV_ENDED,	/* fab_poll() has ended */
	SRV_CON_EV_UNWATCHED,	/* the descriptor is not watched any more */
	SRV_CON_NEVENTS
};

/* Whom a connection works for.  Constant. */
struct srv_con_ops {
	/* thread of the connection */
	void (*recv)(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);
	void (*reply)(struct loop_task *task);	/* what is on srv_con.replies */
	void (*revoke)(struct loop_task *task);	/* srv_con.revokes; also at the end */
	/* control thread; the message is in a struct srv_con */
	void (*drained)(struct loop_msg *msg);
	void (*quiet)(struct loop_msg *msg);
	void (*finished)(struct loop_msg *msg);
};

struct srv_con {
	/* constant from srv_con_start() to destroy */
	struct srv_path *path;
	struct srv_thread *thread;
	struct fab_conn *fab;
	uint16_t cid;

	/* thread of the connection */
	struct loop_watch watch;	/* fd -1: none */
	struct loop_task reply_task;
	struct loop_task again_task;	/* poll without waiting for the descriptor */
	struct loop_task arm_task;	/* before the thread sleeps: fab_arm(), where it is dear */
	struct list replies;		/* struct srv_req: finished, not yet posted */
	struct loop_task revoke_task;
	struct list revokes;		/* struct srv_req: arrived; srv-key.h */
	struct loop_timer drain_timer;	/* cut, and not drained yet */
	struct counter inflight;	/* requests from arrival to post or drop */
	uint64_t now_ns;		/* of the poll that runs; 0: not asked yet */
	struct io_stat stat;
	struct fab_cqe recv_cqe, send_cqe;
	atomic_uint state;		/* enum srv_con_state; written by its thread */
	char cause[SRV_CAUSE_LEN];	/* handed to the control thread with "drained" */

	/* doors: to the connection's thread, and from it to the control thread */
	struct loop_msg start_msg, cut_msg, finish_msg;
	struct loop_msg drained_msg, quiet_msg, finished_msg;
};

/* ---- control thread ---- */

/* The CONN_RSP that refuses a connection with @status, a negative errno. */
void srv_con_refusal(struct rtrs_msg_conn_rsp *m, int status);
/* Refuse @fab with it.  @fab is gone. */
void srv_con_refuse(struct fab_conn *fab, int status);

/* A connection of @path on @thread; @fab is its fabric connection, not yet accepted.  NULL: no
 * memory.  @fab stays the caller's until srv_con_start(). */
struct srv_con *srv_con_create(struct srv_path *path, uint16_t cid, struct srv_thread *thread,
			       struct fab_conn *fab, const struct srv_con_ops *ops);
/* Never started, or quiet.  @con->fab must be gone and NULL. */
void srv_con_destroy(struct srv_con *con);
/* @con was accepted: its thread takes over. */
void srv_con_start(struct srv_con *con);
/* The path fails: disconnect, if @con has not ended by itself.  Once, for every connection. */
void srv_con_cut(struct srv_con *con);
/* Report ops->finished() when what is in flight has been answered and has left.  Once. */
void srv_con_finish(struct srv_con *con);
/* @n empty receives.  0 or -errno; the connection has failed then. */
int srv_con_post_empty(struct srv_con *con, unsigned n);

/* ---- thread of the connection ---- */

/* Fail @con with a cause in words; the first one counts.  The rest follows from polling. */
void srv_con_fail(struct srv_con *con, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A completion that is not a success.  Flushes are silent; anything else is a cause. */
void srv_con_wc_failed(struct srv_con *con, const struct ibv_wc *wc, const char *what);
/* Post a chain, and see to it that the socket gets drained.  As fab_post_send(); on error @con has
 * failed. */
int srv_con_post(struct srv_con *con, const struct ibv_send_wr *wr);
/* A work request of @con was flushed: the fabric knows the cause. */
void srv_con_flushed(struct srv_con *con);

static inline enum srv_con_state srv_con_state(const struct srv_con *con)
{
	return (enum srv_con_state)atomic_load_explicit(&con->state, memory_order_relaxed);
}

static inline bool srv_con_dead(const struct srv_con *con)
{
	return srv_con_state(con) >= SRV_CON_DEAD;
}

/* Has ended: nothing completes any more.  Any thread. */
static inline bool srv_con_ended(const struct srv_con *con)
{
	return srv_con_state(con) >= SRV_CON_ENDED;
}

void srv_con_idle(struct srv_con *con);

/* @con->inflight became less. */
static inline void srv_con_check_idle(struct srv_con *con)
{
	if (!counter_get(&con->inflight) && srv_con_state(con) != SRV_CON_SERVING)
		srv_con_idle(con);
}

/* The table, for those who draw or test it. */
extern const struct fsm srv_con_fsm;

#endif
