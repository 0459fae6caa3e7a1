/* SPDX-License-Identifier: BSD-3-Clause */
/* A running session comes from one configuration to another: paths are added and removed, and
 * options change that may.  Service thread, unless a function says otherwise.
 *
 * A path that is up leaves only when a path that stays is up, so requests never wait for a path
 * because of a change.  Whatever fails does so before any client can see anything: paths that were
 * added leave again. */
#ifndef CLT_CHANGE_H
#define CLT_CHANGE_H

#include <stdio.h>

#include "client.h"
#include "clt-conf.h"

/* How long paths that are new have to come up, where paths leave that are up. */
#define CLT_CHANGE_WAIT_MS 30000u

struct clt_change {
	struct clt_sess *sess;
	struct clt_conf *now;		/* the caller's */
	struct clt_conf *wanted;	/* the caller's */
	struct clt_path *added[CLT_PATHS_MAX];
	unsigned nadded;
	/* The change has ended.  @rc 0: it is carried out.  Else -errno with one line in @why, and
	 * nothing has changed. */
	void (*done)(struct clt_change *change, int rc, const char *why);
	struct loop_timer timer;
	uint64_t until_ms;		/* new paths have come up */
};

/* The transport of a path of @sess, of @now, that leaves it open. */
const struct fab_provider *clt_change_transport(const struct clt_conf *now,
						const struct clt_sess *sess);
/* Write to @errors a line for each option that differs in @now and @wanted, and needs another start
 * of the program.  0, or -EINVAL: there are some. */
int clt_change_check(const struct clt_conf *now, const struct clt_conf *wanted, FILE *errors);
/* Make the session @sess of @now one of @wanted, which clt_change_check() found good.
 * @change->done() follows, maybe inside of this call; until then @change stays. */
void clt_change_begin(struct clt_change *change, struct clt_sess *sess, struct clt_conf *now,
		      struct clt_conf *wanted,
		      void (*done)(struct clt_change *change, int rc, const char *why));
/* The session ends: @change->done() follows in this call, with -ECANCELED. */
void clt_change_stop(struct clt_change *change);
/* Behind a change that is carried out, inside of done(): write to @report what it has changed,
 * "+path 192.0.2.10:1234", "-path 198.51.100.10:1234", "io-timeout: 120 -> 30", and give @now the
 * values of @wanted. */
void clt_change_finish(struct clt_change *change, FILE *report);

#endif
