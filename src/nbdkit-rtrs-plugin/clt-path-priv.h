/* SPDX-License-Identifier: BSD-3-Clause */
/* Between clt-path.c (the life of a path), clt-setup.c (how its connections are made), clt-con0.c
 * (connection 0) and clt-drain.c (how they end). */
#ifndef CLT_PATH_PRIV_H
#define CLT_PATH_PRIV_H

#include "clt-sess.h"

#define CLT_POLL_BUDGET 64
#define CLT_STEADY_MS RTRS_HB_INTERVAL_MS /* lost sooner than that: it was no real come-back */

/* An event for the table; performs its actions.  Service thread, not from inside an action. */
void clt_path_event(struct clt_path *path, enum clt_event event);

/* Watch @fd, or go on watching it.  Failures go to clt_path_fail(), as in all below. */
void clt_path_watch(struct clt_path *path, struct loop_watch *watch, int fd, short events,
		    bool (*ready)(struct loop_watch *watch));

/* Make connection @path->next_cid. */
void clt_setup_con(struct clt_path *path);
/* All are established: ask for the chunks. */
void clt_setup_info(struct clt_path *path);
/* Destroy all connections and what belongs to this attempt.  They are drained and sealed. */
void clt_setup_release(struct clt_path *path);
/* @path->cm_watch. */
bool clt_setup_cm_ready(struct loop_watch *watch);

void clt_con0_init(struct clt_path *path);
/* From here on heartbeats, until clt_con0_down(). */
void clt_con0_up(struct clt_path *path);
void clt_con0_down(struct clt_path *path);
/* Nobody waits any longer: fail @path if it is silent. */
void clt_con0_lose_patience(struct clt_path *path);

void clt_drain_init(struct clt_path *path);
/* Fail the path when the peer of @con, an IO connection that is up, hangs up and nobody polls. */
void clt_drain_watch_hangup(struct clt_con *con);
/* Disconnect all, and CLT_EV_DRAINED when nothing is in flight any more. */
void clt_drain_start(struct clt_path *path);

#endif
