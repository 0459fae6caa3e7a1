/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of a front end: tried out once while a failure is still an exit status (clt-probe.h),
 * then opened for good, after a daemon has forked.  Main thread, unless a function says another
 * one. */
#ifndef CLT_START_H
#define CLT_START_H

#include "clt-conf.h"
#include "clt-ctl.h"
#include "clt-run.h"

struct clt_start {
	struct clt_conf *conf;
	struct frwr_lessons lessons;	/* what the probe learns, the session that stays knows */
	/* one after the other that of the probe and the one that stays */
	struct clt_run run;
	struct clt_ctl *ctl;
	pthread_t watch;
	bool watched;
	/* Of the session that stays.  While none runs, whoever has the lock may try to start it;
	 * who has had the lock and seen it may use it until the end. */
	pthread_mutex_t lock;
};

/* @conf and its front end outlive @start. */
void clt_start_init(struct clt_start *start, struct clt_conf *conf);
/* Open the session; nobody waits for it here.  0, or -errno with @err: clt_start_admit() tries
 * again. */
int clt_start_session(struct clt_start *start, char err[CLT_FRONT_ERR]);
/* A client has come: may it stay?  Any thread.  0, or -errno with @err: there is no session
 * still, or, -EMFILE, with it there would be too few descriptors for the next one (clt-fds.h) or
 * for the connections of a session that is away. */
int clt_start_admit(struct clt_start *start, char err[CLT_FRONT_ERR]);
/* Close it; nothing when there is none. */
void clt_start_end(struct clt_start *start);

#endif
