/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs of a session (clt-sess.h): how a path that is OPENING begins one, or joins it.  Service
 * thread. */
#ifndef CLT_EPOCH_H
#define CLT_EPOCH_H

#include "clt-sess.h"

/* ---- for the session ---- */

void clt_epoch_init(struct clt_sess *sess);
/* A path is OPENING, or another one has gone. */
void clt_epoch_go_on(struct clt_sess *sess);
/* @path is OPENING no more.  May be called from inside what it has called. */
void clt_epoch_left(struct clt_sess *sess, const struct clt_path *path);
/* Some path has answered a heartbeat. */
void clt_epoch_alive(struct clt_sess *sess);

/* ---- for the upper layer ---- */

/* Answer to ops->opening(): the path may come up. */
void clt_epoch_opened(struct clt_sess *sess);
/* The same: it may not. */
void clt_epoch_refuse(struct clt_sess *sess, int err, const char *cause);
/* May what was made for @epoch be sent?  0, CLT_AGAIN: not yet, or -ECONNABORTED: that is over. */
int clt_epoch_bound(struct clt_sess *sess, unsigned epoch);

#endif
