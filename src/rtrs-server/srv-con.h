/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of a path: polling, posting, draining.
 *
 * Created and destroyed on the control thread; everything between srv_con_start() and "drained" is
 * done by the thread the connection belongs to.  It reports to the control thread twice, in this
 * order: drained (no completion will come any more; carries the cause), and quiet (drained, cut, and no
 * request of it is with us any more: nothing refers to it). */
#ifndef SRV_CON_H
#define SRV_CON_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "list.h"
#include "loop.h"
#include "reactor.h"

struct srv_path;
struct srv_req;
struct srv_thread;

#define SRV_CAUSE_LEN 240

struct srv_con {
	/* constant from srv_con_start() to destroy */
	struct srv_path *path;
	struct srv_thread *thread;
	struct fab_conn *fab;
	uint16_t cid;

	/* thread of the connection */
	struct loop_watch watch;
	struct loop_task reply_task;
	struct loop_task again_task;	/* poll without waiting for the descriptor */
	struct loop_task arm_task;	/* before the thread sleeps: fab_arm(), where it is dear */
	struct list replies;		/* struct srv_req: finished, not yet posted */
	struct loop_task revoke_task;
	struct list revokes;		/* struct srv_req: arrived; srv-key.h */
	struct loop_timer drain_timer;	/* cut, and not drained yet */
	unsigned inflight;		/* requests from arrival to post or drop */
	struct fab_cqe recv_cqe, send_cqe;
	bool started;			/* the descriptor is watched */
	bool dead;			/* answers can go nowhere: drop, do not post */
	bool ended;			/* fab_poll() said so */
	bool drained;			/* and the descriptor is not watched any more */
	bool cut;			/* the path is failing */
	bool quiet_sent;
	bool finishing;			/* shutdown: execute nothing new */
	bool marked, marker_left, finished_sent;
	char cause[SRV_CAUSE_LEN];	/* handed to the control thread with "drained" */

	/* doors: to the connection's thread, and from it to the control thread */
	struct loop_msg start_msg, cut_msg, finish_msg;
	struct loop_msg drained_msg, quiet_msg, finished_msg;
};

/* ---- control thread ---- */

/* A connection of @path on @thread; @fab is its fabric connection, not yet accepted.  NULL: no
 * memory.  @fab stays the caller's until srv_con_start(). */
struct srv_con *srv_con_create(struct srv_path *path, uint16_t cid, struct srv_thread *thread,
			       struct fab_conn *fab);
/* Never started, or quiet.  @con->fab must be gone and NULL. */
void srv_con_destroy(struct srv_con *con);
/* @con was accepted: its thread takes over. */
void srv_con_start(struct srv_con *con);
/* The path fails: disconnect, if @con has not ended by itself.  Once, for every connection. */
void srv_con_cut(struct srv_con *con);
/* Report srv_path_con_finished() when what is in flight has been answered and has left.  Once. */
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
/* @req is finished (srv-io.h): answer it at the end of this pass. */
void srv_con_reply(struct srv_con *con, struct srv_req *req);
/* @con->inflight became less. */
void srv_con_check_idle(struct srv_con *con);

#endif
