/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs of a session (clt-sess.h): how a path in OPENING begins an epoch, or joins the current
 * epoch.  Service thread. */
#ifndef CLT_EPOCH_H
#define CLT_EPOCH_H

#include "clt-sess.h"

/* ---- for the session ---- */

/* Initialize the epochs of @sess: no path is OPENING. */
void clt_epoch_init(struct clt_sess *sess);
/* Go on with the paths that are OPENING: a path has reached OPENING, or another path has gone. */
void clt_epoch_go_on(struct clt_sess *sess);
/* @path is OPENING no more.  May be called from inside ops->opening(). */
void clt_epoch_left(struct clt_sess *sess, const struct clt_path *path);
/* Some path has answered a heartbeat, which may prove the epoch to a path that joins. */
void clt_epoch_alive(struct clt_sess *sess);

/* ---- for the upper layer ---- */

/* Answer ops->opening(): the path may come up. */
void clt_epoch_opened(struct clt_sess *sess);
/* Answer ops->opening(): the path may not come up, and fails with @err because of @cause. */
void clt_epoch_refuse(struct clt_sess *sess, int err, const char *cause);
/* Answer ops->opening() of a path that JOINS: its server can take over the exports, and is not the
 * server of this epoch.  The path stands by, and is OPENING again when an epoch begins, or when no
 * path is up. */
void clt_epoch_stand_by(struct clt_sess *sess);
/* May a message of @epoch be sent?  0: yes; CLT_AGAIN: not yet; -ECONNABORTED: @epoch is over. */
int clt_epoch_bound(struct clt_sess *sess, unsigned epoch);

#endif
