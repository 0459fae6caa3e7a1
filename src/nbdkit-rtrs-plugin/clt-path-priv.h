/* SPDX-License-Identifier: BSD-3-Clause */
/* Between clt-path.c (the life of a path) and clt-setup.c (how its connections are made). */
#ifndef CLT_PATH_PRIV_H
#define CLT_PATH_PRIV_H

#include "clt-sess.h"

#define CLT_STEADY_MS RTRS_HB_INTERVAL_MS /* lost sooner than that: it was no real come-back */

/* An event for the table; performs its actions.  Service thread, not from inside an action. */
void clt_path_event(struct clt_path *path, enum clt_event event);

/* Make connection @path->next_cid.  Failures go to clt_path_fail(), as in all below. */
void clt_setup_con(struct clt_path *path);
/* All are established: ask for the chunks. */
void clt_setup_info(struct clt_path *path);
/* Destroy all connections and what belongs to this attempt.  They are drained and sealed. */
void clt_setup_release(struct clt_path *path);
/* @path->cm_watch. */
void clt_setup_cm_ready(struct clt_watch *watch, short revents);

#endif
