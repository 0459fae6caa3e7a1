/* SPDX-License-Identifier: BSD-3-Clause */
/* A session: permits and devices shared by all its paths, and what happens to requests while none
 * is up: they wait until io_timeout_ms after the loss of the last one, then fail with EIO.
 *
 * EPOCHS.  The server keeps a session as long as it has a path; so the first path that is up begins
 * an epoch, in which devices are opened (again), and the last one that is gone ends it.  A path
 * that comes up meanwhile joins the epoch, and devices stay as they are.  Whether the server sees
 * that in the same way has to be found out: it may have lost all paths, or be another process by
 * now, and the path that is still up here may be a dead one that nobody has noticed.  So a path
 * joins when a heartbeat that was sent after its own connections were made has been answered on
 * another one: then the server had both at once (doc/decisions.md D15). */
#ifndef CLT_SESS_H
#define CLT_SESS_H

#include "clt-path.h"

#define CLT_RECONNECTS_MAX 9999u	/* of a path, one after another; as the kernel's client */

struct clt_sess;

struct clt_sess_addr {
	struct fab_addr src, dst;	/* src.len 0: any */
};

struct clt_sess_conf {
	const char *name;		/* rtrs_sessname_ok() */
	const struct clt_wait_ops *wait;	/* how requests wait, and callers of what blocks */
	const struct clt_sess_addr *paths;	/* [npaths], of the caller */
	unsigned npaths;		/* 1 .. CLT_PATHS_MAX */
	enum clt_policy policy;
	unsigned connections;		/* IO connections of a path: 1 .. RTRS_MAX_CONS - 1 */
	uint64_t io_timeout_ms;		/* CLOCK_NEVER: for ever; 0: fail at once */
	unsigned hb_interval_ms, hb_misses;	/* both 0: the protocol's */
	int max_reconnect_attempts;	/* of a path, one after another; -1: no end */
	unsigned poll_us;		/* who polls looks for answers for at most so long before it
					 * sleeps */
	unsigned setup_ms;		/* for an attempt; 0: RTRS_CONNECT_TIMEOUT_MS */
	enum clt_registration registration;
	struct fab_users servers;	/* who may listen at a unix socket */
	bool once;			/* one attempt of each path, no reconnect (the probe at
					 * start) */
	struct frwr_lessons *lessons;	/* outlives the session; NULL: it has some of its own */
};

/* Calls to the upper layer (client.c, dev-handshake.c), on the service thread. */
struct clt_sess_ops {
	/* A path is OPENING: exchange user messages with CLT_OP_HANDSHAKE, or with CLT_OP_JOIN if
	 * the path JOINS (@sess->stage), then clt_epoch_opened().  A path whose epoch ended before
	 * the path joined begins an epoch, and the call comes again. */
	void (*opening)(struct clt_sess *sess);
	/* The first path is up. */
	void (*up)(struct clt_sess *sess);
	/* clt_sess_is_away() may have changed: the last path was lost, or the first attempt failed,
	 * and requests wait; or the server, or what lies between, stands still, or does so no
	 * longer. */
	void (*away)(struct clt_sess *sess);
	/* An attempt failed before it was up, and no path is up or on its way.  With conf.once the
	 * session closes by itself. */
	void (*failed)(struct clt_sess *sess, int err, const char *cause);
	/* All paths are CLOSED: nothing runs any more. */
	void (*closed)(struct clt_sess *sess);
};

/* The progress of the path that is OPENING.  One path at a time is. */
enum clt_opening {
	CLT_OPENING_NONE,
	CLT_OPENING_BEGINS,		/* ops->opening() is answered by clt_epoch_opened() */
	CLT_OPENING_JOINS,		/* the same, for a path that finds others up */
	CLT_OPENING_PROVES,		/* a heartbeat on another path is awaited, or that they have
					 * all gone */
	CLT_OPENING_LEAVES,		/* it is OPENING no more, and messages of what it had called
					 * are to come */
};

struct clt_sess {
	char name[RTRS_NAME_MAX];
	uint8_t uuid[RTRS_UUID_LEN];
	struct loop *loop;
	const struct clt_sess_ops *ops;
	uint64_t io_timeout_ms;
	struct frwr_lessons own_lessons;	/* of devices that cannot do what they offer */
	struct clt_path_conf path_conf;	/* of all paths, but for addresses and index */
	const struct clt_path_ops *path_ops;
	struct clt_path *paths[CLT_PATHS_MAX];	/* [io.natts] */
	struct clt_io io;		/* what requests have of the session */

	struct loop_timer timeout_timer;
	struct loop_msg next_msg;	/* what is OPENING may go on */
	/* service thread */
	struct clt_path *opening;
	enum clt_opening stage;
	unsigned asked[CLT_PATHS_MAX];	/* PROVES: clt_path_ask() */
	unsigned ups;			/* times that it came up */
	uint64_t up_since_ms;		/* of this or the last time; 0: never was */
	uint64_t lasted_ms;		/* the last time that it was up */
	uint64_t answered;		/* requests of IO, until it came up */
	int max_reconnect_attempts;
	uint64_t down_since_ms;		/* of this or the last time; 0: requests have failed
					 * since */
};

/* Nothing runs before clt_sess_start().  @loop and @ops outlive @sess.  0, -ENOMEM, or as
 * clt_path_init(). */
int clt_sess_init(struct clt_sess *sess, struct loop *loop, const struct clt_sess_conf *conf,
		  const struct clt_sess_ops *ops);
/* Never started, or ops->closed() was called and the service loop is gone. */
void clt_sess_fini(struct clt_sess *sess);

/* Service thread, as the next ones. */
void clt_sess_start(struct clt_sess *sess);
/* Disconnect for good; ops->closed() follows.  Requests that still wait fail. */
void clt_sess_close(struct clt_sess *sess);
/* From now on requests wait for no path, and at most two heartbeats for a path that stands
 * still. */
void clt_sess_lose_patience(struct clt_sess *sess);
/* End this epoch: fail all paths that are up. */
void clt_sess_fail(struct clt_sess *sess, int err, const char *cause);
/* For how long requests have had no path, in ms, where each one that was up meanwhile was lost
 * before it answered any; 0: there is one, or none has been tried yet. */
uint64_t clt_sess_down_ms(const struct clt_sess *sess);
/* Is no path up, or do all paths that are up stand still? */
bool clt_sess_is_away(struct clt_sess *sess);

#define clt_sess_for_each(path, sess)                                                   \
	for (unsigned i_ = 0; i_ < (sess)->io.natts && ((path) = (sess)->paths[i_], true); i_++)

/* Is @is true for any path of @sess? */
static inline bool clt_sess_any(struct clt_sess *sess, bool (*is)(struct clt_path *path))
{
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		if (is(path))
			return true;
	}
	return false;
}

/* The number of the current epoch, or of the last one. */
static inline unsigned clt_sess_epoch(const struct clt_sess *sess)
{
	return sess->io.epoch;
}

/* Any thread. */
static inline bool clt_sess_is_up(struct clt_sess *sess)
{
	return clt_pick(&sess->io, 0);
}

/* Any thread. */
static inline bool clt_sess_is_closed(const struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) == CLT_SESS_CLOSED;
}

/* Is no path up, and have requests stopped waiting for a path? Any thread. */
static inline bool clt_sess_expired(struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) >= CLT_SESS_EXPIRED;
}

#endif
