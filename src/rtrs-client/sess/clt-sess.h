/* SPDX-License-Identifier: BSD-3-Clause */
/* A session: paths that share permits and devices.  While no path is up, requests wait until
 * io_timeout_ms after the loss of the last path, then fail with EIO.
 *
 * EPOCHS.  The server keeps a session as long as the session has a path.  So the first path that
 * comes up begins an epoch, in which devices are opened (again), and the loss of the last path ends
 * the epoch.  A path that comes up meanwhile joins the epoch, and devices stay open.  The server
 * may disagree: the server may have lost all paths, or be another process by now.  Then a path that
 * is still up here is dead, and no thread has noticed yet.  So a path joins only after the answer,
 * on another path, to a heartbeat sent after the joining path was connected.  By this answer the
 * server had both paths at once (doc/decisions.md D15). */
#ifndef CLT_SESS_H
#define CLT_SESS_H

#include "clt-path.h"

#define CLT_RECONNECTS_MAX 9999u	/* of a path in a row; as the kernel's client */

struct client_kept;
struct clt_sess;

struct clt_sess_conf {
	const char *name;		/* rtrs_sessname_ok() */
	const struct clt_wait_ops *wait;	/* how requests and blocking callers wait */
	struct loop *const *loops;	/* [nloops], where IO runs (clt-loop.h), with the service
					 * loop among them; they outlive the session.  NULL: the
					 * service loop alone */
	unsigned nloops;		/* at most @connections */
	const struct clt_sess_addr *paths;	/* [npaths], of the caller */
	unsigned npaths;		/* 1 .. CLT_PATHS_MAX */
	enum clt_policy policy;
	unsigned connections;		/* IO connections of a path: 1 .. RTRS_MAX_CONS - 1 */
	uint64_t io_timeout_ms;		/* CLOCK_NEVER: for ever; 0: fail at once */
	int max_reconnect_attempts;	/* of a path in a row; -1: no end */
	unsigned poll_us;		/* busy-poll for up to so many microseconds before
					 * sleeping */
	struct clt_path_conf path;	/* the caller's part, of all paths */
	const uint8_t *uuid;		/* [RTRS_UUID_LEN], of a lineage (rtrs-msg.h); NULL:
					 * random */
	struct client_kept *kept;	/* for client_init(), which sets @uuid; outlives the
					 * session; NULL: it ends with its process */
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
	 * and requests wait; or a path that is up stands still, or does so no longer. */
	void (*away)(struct clt_sess *sess);
	/* An attempt failed before the path was up, and no path is up or on the way up.  With
	 * conf.once the session closes by itself. */
	void (*failed)(struct clt_sess *sess, int err, const char *cause);
	/* All paths are CLOSED: nothing runs any more. */
	void (*closed)(struct clt_sess *sess);
};

/* The progress of clt_sess.opening: paths are OPENING one at a time. */
enum clt_opening {
	CLT_OPENING_NONE,
	CLT_OPENING_BEGINS,		/* clt_epoch_opened() will answer ops->opening() */
	CLT_OPENING_JOINS,		/* the same, for a path that finds others up */
	CLT_OPENING_PROVES,		/* waits for a heartbeat's answer on another path, or the
					 * loss of all others */
	CLT_OPENING_LEAVES,		/* the path is OPENING no more; messages of the calls for
					 * the path are to come */
};

struct clt_sess {
	char name[RTRS_NAME_MAX];
	uint8_t uuid[RTRS_UUID_LEN];
	struct loop *loop;
	const struct clt_sess_ops *ops;
	uint64_t io_timeout_ms;
	struct frwr_lessons own_lessons;	/* of devices with abilities that do not work */
	struct clt_path_conf path_conf;	/* of all paths, but for addresses and index */
	const struct clt_path_ops *path_ops;
	struct clt_path *paths[CLT_PATHS_MAX];	/* [io.natts] */
	struct clt_io io;		/* the part for requests */

	struct loop_timer timeout_timer;
	struct loop_msg next_msg;	/* a path that is OPENING may go on */
	/* service thread */
	struct clt_path *opening;
	enum clt_opening stage;
	unsigned asked[CLT_PATHS_MAX];	/* PROVES: the results of clt_path_ask() */
	unsigned ups;			/* how often the session came up */
	uint64_t up_since_ms;		/* when the session last came up; 0: never */
	uint64_t lasted_ms;		/* how long the session was last up */
	uint64_t answered;		/* requests of IO, before the session last came up */
	int busy;			/* CLT_BUSY: a path has failed so; 0 */
	int max_reconnect_attempts;
	uint64_t down_since_ms;		/* when requests last began to wait; 0: requests have failed
					 * since */
};

/* Make the session and the paths of @conf.  Nothing runs before clt_sess_start().  @loop and @ops
 * outlive @sess.  0, -ENOMEM, or as clt_paths_add(). */
int clt_sess_init(struct clt_sess *sess, struct loop *loop, const struct clt_sess_conf *conf,
		  const struct clt_sess_ops *ops);
/* Free the objects of @sess, which was never started, or ops->closed() was called and the service
 * loop is gone. */
void clt_sess_fini(struct clt_sess *sess);

/* Begin to connect all paths.  Service thread, as the next functions. */
void clt_sess_start(struct clt_sess *sess);
/* Disconnect for good; ops->closed() follows.  Waiting requests fail. */
void clt_sess_close(struct clt_sess *sess);
/* From now on requests do not wait for a path to come up, and wait for at most two heartbeats while
 * a path stands still. */
void clt_sess_lose_patience(struct clt_sess *sess);
/* True after that call. */
bool clt_sess_is_impatient(const struct clt_sess *sess);
/* Have requests wait for at most @ms for a path, those that wait already, too; CLOCK_NEVER: for
 * ever.  Nothing after clt_sess_lose_patience(). */
void clt_sess_set_io_timeout(struct clt_sess *sess, uint64_t ms);
/* Have each path, those added later, too, send heartbeats as rtrs_hb_conf() says, from its next
 * connection on. */
void clt_sess_set_heartbeats(struct clt_sess *sess, unsigned interval_ms, unsigned misses);
/* Have requests busy-poll for up to @us from now on; 0: sleep at once. */
void clt_sess_set_poll(struct clt_sess *sess, unsigned us);
/* End this epoch: fail all paths that are up, with @err because of @cause. */
void clt_sess_fail(struct clt_sess *sess, int err, const char *cause);
/* For how long the session has had a path without a break, in ms.  0: no path is up. */
uint64_t clt_sess_up_ms(const struct clt_sess *sess);
/* For how long requests have had no path, in ms.  A path that was soon lost, before answering any
 * request, does not count.  0: a path is up, or no attempt has ended yet. */
uint64_t clt_sess_down_ms(const struct clt_sess *sess);
/* Is no path up, after an attempt, or do all paths that are up stand still? */
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

/* The number of the current epoch, or of the previous epoch while no path is up. */
static inline unsigned clt_sess_epoch(const struct clt_sess *sess)
{
	return sess->io.epoch;
}

/* Is a path up?  Any thread. */
static inline bool clt_sess_is_up(struct clt_sess *sess)
{
	return clt_pick(&sess->io, 0);
}

/* Are all paths CLOSED for good?  Any thread. */
static inline bool clt_sess_is_closed(const struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) == CLT_SESS_CLOSED;
}

/* Is no path up, and have requests stopped waiting for a path?  Any thread. */
static inline bool clt_sess_expired(struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) >= CLT_SESS_EXPIRED;
}

/* ---- clt-epoch.c ----
 * How a path in OPENING begins an epoch, or joins the current epoch.  Service thread. */

/* Initialize the epochs of @sess: no path is OPENING. */
void clt_epoch_init(struct clt_sess *sess);
/* Go on with the paths that are OPENING: a path has reached OPENING, or another path has gone. */
void clt_epoch_go_on(struct clt_sess *sess);
/* @path is OPENING no more.  May be called from inside ops->opening(). */
void clt_epoch_left(struct clt_sess *sess, const struct clt_path *path);
/* Some path has answered a heartbeat, which may prove the epoch to a path that joins. */
void clt_epoch_alive(struct clt_sess *sess);

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

/* ---- clt-paths.c: the paths, from the start on, and while the session runs ---- */

/* Service thread, or before the session is started.
 *
 * A path is never freed before the session, because requests of other threads may still look at the
 * path.  A removed path is CLOSED and waits for the next address. */

/* The text of a path, any thread: as users write, "[SRC@]DST[:PORT]", with a transport in front or
 * without, or "unix:PATH". */

/* A user's choice of the transport: "auto", "rdma", "tcp". */
enum clt_transport { CLT_TRANSPORT_AUTO, CLT_TRANSPORT_RDMA, CLT_TRANSPORT_TCP, CLT_TRANSPORTS };
extern const char *const clt_transport_names[CLT_TRANSPORTS];

#define CLT_ADDR_TEXT_MAX 1023		/* bytes: two hosts, a transport and a port */

/* Does @text name neither a transport nor a socket of this machine? */
bool clt_paths_is_open(const char *text);
/* Read @text into @addr, over @provider unless @text names another transport; a name stays one.  A
 * @text of more than CLT_ADDR_TEXT_MAX bytes is refused, unless "unix:PATH".  0, or -1 with the
 * reason in @err. */
int clt_paths_parse(const char *text, const struct fab_provider *provider,
		    struct clt_sess_addr *addr, char *err, size_t errlen);

/* Write to @buf the text of @addr with its transport, which reads back as @addr.  Returns @buf. */
const char *clt_paths_url(const struct clt_sess_addr *addr, char buf[CLT_ADDR_TEXT_MAX + 1]);

/* Do @a and @b lead from the same end to the same end?  Of a name the name counts.  Any thread. */
bool clt_paths_same(const struct clt_sess_addr *a, const struct clt_sess_addr *b);
/* Add a path, IDLE: clt_path_start() connects the path.  @ret may be NULL.  Returns 0, or as
 * clt_path_init(), or an error.  -EEXIST: a path between these addresses exists.  -ENOSPC: the
 * session has CLT_PATHS_MAX paths, counting removed paths of another provider.  -EAGAIN: the same,
 * but a removed path is about to close: try again. */
int clt_paths_add(struct clt_sess *sess, const struct clt_sess_addr *addr, struct clt_path **ret);
/* Find the path between the addresses of @addr, over the provider of @addr; or NULL. */
struct clt_path *clt_paths_find(struct clt_sess *sess, const struct clt_sess_addr *addr);
/* Disconnect @path, and forget @path.  Requests in flight on @path go over the other paths.  0, or
 * -EBUSY: @path is the last. */
int clt_paths_remove(struct clt_sess *sess, struct clt_path *path);
/* Free all paths, which are IDLE or CLOSED. */
void clt_paths_fini(struct clt_sess *sess);

#endif
