/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of a path: its requests, and its end.
 *
 * Created and destroyed on the control thread; between srv_con_start() and "drained" the
 * connection's own thread does all work.  The connection sends two reports to the control thread,
 * in this order:
 *   - drained: no completion will come any more; carries the cause;
 *   - quiet: drained, cut, and without requests in the server, so that nothing refers to the
 *     connection.
 * A connection knows only the numbers of paths and requests: the work for both is in struct
 * srv_con_ops. */
#ifndef SRV_CON_H
#define SRV_CON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "fab-service.h"
#include "fsm.h"
#include "list.h"
#include "loop.h"
#include "reactor.h"
#include "rtrs-proto.h"

struct rtrs_msg_conn_rsp;
struct srv_con;
struct srv_path;
struct srv_req;
struct srv_thread;

#define SRV_CAUSE_LEN 240
/* Receives beyond one for each request in flight, so that consumed ones are posted together.  The
 * queue of a device has room for them: SRV_SEND_MARGIN. */
#define SRV_SPARE_RECVS 16u

/* From SRV_CON_DEAD on answers can go nowhere and are dropped; from SRV_CON_DRAINED on nothing
 * completes. */
enum srv_con_state {
	SRV_CON_SERVING,	/* in set-up or in service */
	SRV_CON_FINISHING,	/* shutdown: executes nothing new, answers requests in flight */
	SRV_CON_MARKED,		/* a marker is posted behind the last answer */
	SRV_CON_FINISHED,	/* the marker has left, and so has every answer */
	SRV_CON_DEAD,		/* failed, or drained; the end of the service is awaited */
	SRV_CON_CUT,		/* DEAD, and the path has failed */
	SRV_CON_DRAINED,	/* reported as drained; the cut is awaited */
	SRV_CON_LINGERING,	/* drained and cut; requests may still be in the storage */
	SRV_CON_QUIET,		/* reported as quiet: nothing refers to the connection */
	SRV_CON_NSTATES
};

enum srv_con_event {
	SRV_CON_EV_FINISH,	/* the server shuts down */
	SRV_CON_EV_IDLE,	/* nothing is in flight */
	SRV_CON_EV_LEFT,	/* the marker has completed */
	SRV_CON_EV_FAIL,	/* the connection's thread has seen a cause */
	SRV_CON_EV_FLUSHED,	/* work was flushed, or all of it: the fabric knows the cause */
	SRV_CON_EV_CUT,		/* the path has failed */
	SRV_CON_EV_DRAINED,	/* the service is gone */
	SRV_CON_NEVENTS
};

/* The user of a connection.  Constant. */
struct srv_con_ops {
	/* thread of the connection */
	void (*recv)(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc);
	void (*reply)(struct loop_task *task);	/* answer the requests on srv_con.replies */
	void (*revoke)(struct loop_task *task);	/* srv_con.revokes; also at the end */
	void (*cut)(struct srv_con *con);	/* end what waits on srv_con.held */
	void (*trim)(struct loop_timer *timer);	/* srv_con.trim_timer */
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
	struct fab_service service;
	struct loop_task reply_task;
	struct list replies;		/* struct srv_req: finished, not yet posted */
	struct loop_task revoke_task;
	struct list revokes;		/* struct srv_req: arrived; srv-key.h */
	struct list held;		/* struct srv_req: srv_ops keeps the requests back */
	void (*cut)(struct srv_con *con);
	struct counter inflight;	/* requests from arrival to post or drop */
	uint64_t now_ns;		/* of the running poll; 0: clock not read yet */
	unsigned consumed;		/* receives to be posted again, behind a poll fewer than
					 * SRV_SPARE_RECVS */
	struct loop_timer trim_timer;	/* srv-trim.c */
	uint32_t trim_next;		/* the chunk that the round looks at next */
	uint64_t trim_due_ns;		/* the first chunk of the next round; UINT64_MAX: none */
	struct io_stat stat;
	struct fab_cqe recv_cqe, send_cqe;
	atomic_uint state;		/* enum srv_con_state; written by the connection's thread */
	char cause[SRV_CAUSE_LEN];	/* handed to the control thread with "drained" */

	/* messages to the connection's thread, and from there to the control thread */
	struct loop_msg start_msg, cut_msg, finish_msg;
	struct loop_msg drained_msg, quiet_msg, finished_msg;
};

/* ---- control thread ---- */

/* Fill @m with the CONN_RSP that refuses a connection with @status, a negative errno, and for a
 * client that reads reasons @refusal, or RTRS_REFUSES_NOT. */
void srv_con_refusal(struct rtrs_msg_conn_rsp *m, int status, enum rtrs_refusal refusal);
/* Refuse @fab so.  @fab is gone. */
void srv_con_refuse(struct fab_conn *fab, int status, enum rtrs_refusal refusal);

/* Create a connection of @path on @thread; @fab is the fabric connection, not yet accepted.  NULL:
 * no memory.  The caller owns @fab until srv_con_start(). */
struct srv_con *srv_con_create(struct srv_path *path, uint16_t cid, struct srv_thread *thread,
			       struct fab_conn *fab, const struct srv_con_ops *ops);
/* Free @con, which was never started, or is quiet.  @con->fab must be gone and NULL. */
void srv_con_destroy(struct srv_con *con);
/* Hand @con, which was accepted, over to its thread. */
void srv_con_start(struct srv_con *con);
/* Disconnect @con, if @con has not ended by itself: the path fails.  Once, for every connection. */
void srv_con_cut(struct srv_con *con);
/* Call ops->finished() when the requests in flight have been answered and the answers have left.
 * Once. */
void srv_con_finish(struct srv_con *con);
/* Post @n empty receives.  0, or -errno with the connection failed. */
int srv_con_post_empty(struct srv_con *con, unsigned n);

/* ---- thread of the connection ---- */

/* Fail @con with a cause in words; the first cause counts.  Everything else follows from
 * polling. */
void srv_con_fail(struct srv_con *con, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Handle a completion with an error.  Flushes are silent; any other error is a cause. */
void srv_con_wc_failed(struct srv_con *con, const struct ibv_wc *wc, const char *what);
/* Post a chain, and make sure that the socket gets drained.  Returns as fab_post_send(); on error
 * @con has failed. */
int srv_con_post(struct srv_con *con, const struct ibv_send_wr *wr);
/* Handle a flushed work request of @con: the fabric knows the cause. */
void srv_con_flushed(struct srv_con *con);

/* The state of @con.  Any thread. */
static inline enum srv_con_state srv_con_state(const struct srv_con *con)
{
	return (enum srv_con_state)atomic_load_explicit(&con->state, memory_order_relaxed);
}

#define SRV_TRIM_MS 60000u	/* a chunk that no request has used for so long gives its memory
				 * back (srv-trim.c) */

/* Answers were posted at @now_ns: have ops->trim() look at the chunks, in SRV_TRIM_MS or with the
 * round that goes on. */
void srv_con_trim_later(struct srv_con *con, uint64_t now_ns);

/* True if @con has failed or ended: answers are dropped.  Any thread. */
static inline bool srv_con_dead(const struct srv_con *con)
{
	return srv_con_state(con) >= SRV_CON_DEAD;
}

/* True if @con has drained: nothing completes any more.  Any thread. */
static inline bool srv_con_drained(const struct srv_con *con)
{
	return srv_con_state(con) >= SRV_CON_DRAINED;
}

/* Report that nothing is in flight.  For srv_con_check_idle(). */
void srv_con_idle(struct srv_con *con);

/* Call after @con->inflight became less. */
static inline void srv_con_check_idle(struct srv_con *con)
{
	if (!counter_get(&con->inflight) && srv_con_state(con) != SRV_CON_SERVING)
		srv_con_idle(con);
}

/* The table of states, for pictures and tests. */
extern const struct fsm srv_con_fsm;

#endif
