/* SPDX-License-Identifier: BSD-3-Clause */
/* A session: permits and devices shared by all its paths (one now), and what happens to requests
 * while no path is up: they wait until io_timeout_ms after the loss, then fail with EIO. */
#ifndef CLT_SESS_H
#define CLT_SESS_H

#include "clt-path.h"

struct clt_sess;

struct clt_sess_conf {
	const char *name;		/* rtrs_sessname_ok() */
	struct fab_addr src, dst;	/* src.len 0: any */
	unsigned connections;		/* IO connections: 1 .. RTRS_MAX_CONS - 1 */
	uint64_t io_timeout_ms;		/* CLOCK_NEVER: for ever; 0: fail at once */
	unsigned poll_us;		/* who polls looks for answers so long before it sleeps */
	unsigned setup_ms;		/* for an attempt; 0: RTRS_CONNECT_TIMEOUT_MS */
	enum clt_registration registration;
	bool once;			/* one attempt, no reconnect (the probe at start) */
	struct frwr_lessons *lessons;	/* outlives the session; NULL: it has some of its own */
};

/* What the upper layer (client.c, dev-reopen.c) hears.  Service thread. */
struct clt_sess_ops {
	/* A path is OPENING: send user messages with clt_op.borrow, then clt_sess_opened(). */
	void (*opening)(struct clt_sess *sess);
	/* It is up. */
	void (*up)(struct clt_sess *sess);
	/* It was lost, or the first attempt failed: requests wait. */
	void (*down)(struct clt_sess *sess);
	/* clt_sess_is_away() may have changed: the server, or what lies between, stands still, or does so no longer. */
	void (*silence)(struct clt_sess *sess);
	/* An attempt failed before it was up.  With conf.once the session closes by itself. */
	void (*failed)(struct clt_sess *sess, int err, const char *cause);
	/* The path is CLOSED: nothing runs any more. */
	void (*closed)(struct clt_sess *sess);
};

struct clt_sess {
	char name[RTRS_NAME_MAX];
	uint8_t uuid[RTRS_UUID_LEN];
	struct loop *loop;
	const struct clt_sess_ops *ops;
	uint64_t io_timeout_ms;
	enum clt_registration registration;
	struct frwr_lessons own_lessons;	/* of devices that cannot do what they offer */

	struct clt_path path;		/* there is one */
	struct clt_io io;		/* what requests have of the session */

	struct loop_timer timeout_timer;
	/* service thread */
	unsigned ups;			/* times that it came up */
	bool tell_up;			/* that it is not was told */
	uint64_t down_since_ms;		/* of this or the last time; 0: requests have failed since */
};

/* Nothing runs before clt_sess_start().  @loop and @ops outlive @sess.  0, or as clt_path_init(). */
int clt_sess_init(struct clt_sess *sess, struct loop *loop, const struct clt_sess_conf *conf,
		  const struct clt_sess_ops *ops);
/* Never started, or ops->closed() was called and the service loop is gone. */
void clt_sess_fini(struct clt_sess *sess);

/* Service thread, as the next ones. */
void clt_sess_start(struct clt_sess *sess);
/* Disconnect for good; ops->closed() follows.  Requests that still wait fail. */
void clt_sess_close(struct clt_sess *sess);
/* From now on requests do not wait for a path, nor longer than two heartbeats for one that stands still. */
void clt_sess_lose_patience(struct clt_sess *sess);
/* Answer to ops->opening(): the path may come up. */
void clt_sess_opened(struct clt_sess *sess);
/* The path that is up, or OPENING, is of no use. */
void clt_sess_fail(struct clt_sess *sess, int err, const char *cause);
/* No path, or one that stands still. */
bool clt_sess_is_away(struct clt_sess *sess);
/* May what was made for @epoch be sent?  0, CLT_AGAIN: not yet, or -ECONNABORTED: that is over. */
int clt_sess_bound(struct clt_sess *sess, unsigned epoch);

/* The epoch that is, or was last. */
static inline unsigned clt_sess_epoch(const struct clt_sess *sess)
{
	return sess->io.epoch;
}

/* Any thread. */
static inline bool clt_sess_is_up(struct clt_sess *sess)
{
	return clt_attempt_is_up(&sess->path.att);
}

static inline bool clt_sess_is_closed(const struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) == CLT_SESS_CLOSED;
}

/* No path, and waiting for one is over.  Any thread. */
static inline bool clt_sess_expired(struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) >= CLT_SESS_EXPIRED;
}

#endif
