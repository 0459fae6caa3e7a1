/* SPDX-License-Identifier: BSD-3-Clause */
/* Between clt-path.c (the life of a path) and what it is made of: clt-setup.c (how its connections are
 * made), clt-con0.c (connection 0) and clt-drain.c (how they end), which do not call it.  Service thread. */
#ifndef CLT_PATH_PRIV_H
#define CLT_PATH_PRIV_H

#include <string.h>

#include "clt-path.h"

#define CLT_POLL_BUDGET 64
#define CLT_STEADY_MS RTRS_HB_INTERVAL_MS /* lost sooner than that: it was no real come-back */
#define CLT_WHY 256

static inline struct clt_path *clt_path_of(const struct clt_con *con)
{
	return container_of(con->att, struct clt_path, att);
}

/* Watch @fd, or go on watching it.  That it cannot be is told as a failure. */
static inline void clt_path_watch(struct clt_path *path, struct loop_watch *watch, int fd, short events,
				  bool (*ready)(struct loop_watch *watch))
{
	int r;

	watch->ready = ready;
	if (watch->loop) {
		loop_watch_events(watch, events);
		return;
	}
	watch->fd = fd;
	watch->events = events;
	r = loop_watch(path->loop, watch);
	if (r < 0)
		clt_tx_fail(&path->att.cons[0], r, "cannot watch a descriptor: %s", strerror(-r));
}

/* ---- clt-setup.c: 0, or -errno with @why ---- */

/* Make connection @path->next_cid. */
int clt_setup_con(struct clt_path *path, char why[CLT_WHY]);
/* What the connection manager says of @con.  1: it is established. */
int clt_setup_event(struct clt_con *con, const struct fab_event *ev, char why[CLT_WHY]);
/* All are established: ask for the chunks.  @done when they are known and receives are posted, or with
 * -errno. */
int clt_setup_info(struct clt_path *path,
		   void (*done)(struct clt_path *path, int err, const char *why), char why[CLT_WHY]);
/* Destroy all connections and what belongs to this attempt.  They are drained and sealed. */
void clt_setup_release(struct clt_path *path);

/* ---- clt-con0.c ---- */

void clt_con0_init(struct clt_path *path);
/* Poll and arm connection 0 soon.  Any thread. */
void clt_con0_service(struct clt_path *path);
/* From here on heartbeats, until clt_con0_down(). */
void clt_con0_up(struct clt_path *path);
void clt_con0_down(struct clt_path *path);
/* A heartbeat or the answer to one has come on @con. */
void clt_con0_heartbeat(struct clt_con *con, unsigned type);
/* Nobody waits any longer: fail @path if it is silent. */
void clt_con0_lose_patience(struct clt_path *path);

/* ---- clt-drain.c ---- */

/* Fail the path when the peer of @con, an IO connection that is up, hangs up and nobody polls. */
void clt_drain_watch_hangup(struct clt_con *con);
/* Connections that hung up, and whose poll role may have become free. */
void clt_drain_look(struct clt_path *path);
/* Disconnect all; then @path->drain_msg is run whenever clt_drain_step() is worth while. */
void clt_drain_start(struct clt_path *path);
/* True when nothing is in flight any more. */
bool clt_drain_step(struct clt_path *path);

#endif
