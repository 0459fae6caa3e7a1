/* SPDX-License-Identifier: BSD-3-Clause */
/* A session: permits and devices shared by all its paths (one now), and what happens to requests
 * while no path is up: they wait until io_timeout_ms after the loss, then fail with EIO. */
#ifndef CLT_SESS_H
#define CLT_SESS_H

#include "clt-mem.h"
#include "clt-path.h"

#define CLT_LARGE (32u << 10)		/* bytes of a request that goes over a connection for large ones */

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

/* What the upper layer (dev*.c) hears.  Service thread. */
struct clt_sess_ops {
	/* A path is OPENING: send user messages with clt_op.borrow, then clt_path_opened(). */
	void (*opening)(struct clt_sess *sess, struct clt_path *path);
	/* It is up. */
	void (*up)(struct clt_sess *sess);
	/* It was lost, or the first attempt failed: requests wait. */
	void (*down)(struct clt_sess *sess);
	/* path.silent has changed: the server, or what lies between, stands still, or does so no longer. */
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
	unsigned poll_us;
	unsigned setup_ms;
	enum clt_registration registration;
	bool once;
	struct frwr_lessons own_lessons, *lessons;	/* of devices that cannot do what they offer */

	struct clt_path path;		/* npaths == 1 */
	struct clt_slot_table slots;
	struct clt_slot ctl;		/* for user messages: permit 0 */
	struct clt_arena arena;		/* clt-mem.c */
	atomic_uint max_io_size;	/* of the path that is or was up; 0: never was */

	pthread_mutex_t lock;		/* lists below, op->granted; taken before a waiter's */
	struct list permit_waiters;	/* clt_op.permit_link, in order */
	struct list up_waiters;		/* clt_op.up_link */
	struct loop_timer timeout_timer;
	/* service thread */
	bool down;			/* lost, or the first attempt failed */
	bool was_up;			/* once */
	bool impatient;			/* clt_sess_lose_patience() */
	bool tell_up;			/* that it is not was told */
	uint64_t down_since_ms;		/* of this or the last time; 0: requests have failed since */
	atomic_bool expired;		/* io_timeout_ms over since then */
	atomic_bool closing;
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
/* clt-setup.c: first geometry, or that of a path that came back; it can use @depth permits.  -errno
 * with @why when it cannot serve this session. */
int clt_sess_geometry(struct clt_sess *sess, const struct rtrs_geom *g, unsigned depth,
		      const char **why);
void clt_sess_up(struct clt_sess *sess);
void clt_sess_down(struct clt_sess *sess);

/* Operations that wait for something of the session look again. */
void clt_sess_wake_up_waiters(struct clt_sess *sess);

/* Connection for @op, or NULL when no path is up. */
struct clt_con *clt_sess_pick(struct clt_sess *sess, const struct clt_op *op);
/* No path, and waiting for one is over. */
bool clt_sess_expired(const struct clt_sess *sess);

#endif
