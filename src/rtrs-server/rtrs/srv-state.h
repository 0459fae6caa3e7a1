/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's shared state and limits, for the srv-* files only.
 *
 * THREADS.  Reactor 0 is the control thread.  Listeners, the connection manager, sessions, paths,
 * their states and timers, OPEN and CLOSE, heartbeats and connection 0 of every path live there,
 * without a lock.  The control thread never waits for the storage.  Connection n >= 1 of a path
 * lives on one of the other threads, 1 + (offset + n) mod their number, from start to drained.
 * This thread polls, executes and answers, and the IO path never crosses threads.  Control and
 * data threads talk through messages only.  An IO thread reads only objects of the control thread
 * that are constant while visible, or lock-free: the fence (srv-fence.h), and the device table of
 * RNBD (srv-dev.h). */
#ifndef SRV_STATE_H
#define SRV_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "frwr.h"
#include "list.h"
#include "log.h"
#include "loop.h"
#include "reactor.h"
#include "rtrs-imm.h"
#include "rtrs-req.h"
#include "srv-auth.h"
#include "srv-drr.h"
#include "srv-log.h"
#include "srv-ops.h"
#include "srv-pool.h"

struct srv_req;

/* Times in ms. */
#define SRV_PARK_TIMEOUT 5000		/* for the end of the client's former path
					 * (doc/decisions.md D14) */
#define SRV_TOLD_TIMEOUT 5000		/* for a client that was told why it is refused to hang
					 * up */
#define SRV_SHUTDOWN_TIMEOUT 10000	/* answers may take this long to leave */

/* Limits of memory and state that unauthenticated clients can make the server hold, beside the
 * limits of struct srv_conf. */
#define SRV_MAX_HALF_OPEN 128		/* paths without INFO_REQ */
#define SRV_MAX_HOST_HALF_OPEN 64
#define SRV_MAX_PARKED 256

#define SRV_SEND_MARGIN 16u		/* heartbeats, INFO_RSP */
#define SRV_REPLY_BATCH 32		/* answers in one post; a long pass posts several times */

struct srv_reply {
	struct rtrs_wr_rsp wr;
	struct srv_req *keyed;		/* srv_key_posted() is to follow, or NULL */
};

struct srv_thread {
	struct srv *srv;
	unsigned index;
	struct reactor *reactor;
	struct loop *loop;		/* of @reactor */
	struct srv_drr drr;		/* of all requests that may enter the storage */
	struct srv_pool pool;		/* unless --invalidate=never */
	struct srv_reply scratch[SRV_REPLY_BATCH];
};

enum srv_life {
	SRV_RUNNING,
	SRV_STOPPING,			/* paths finish */
	SRV_CLOSING,			/* the last path has gone, the connection managers follow */
	SRV_STOPPED,			/* stopped() is told */
};

struct srv {
	const struct srv_conf *conf;
	const struct srv_ops *ops;
	void *user;			/* of @ops; constant */
	struct srv_thread *threads;
	unsigned nthreads;		/* the control thread, and 1.. for IO */

	/* Calls from below into srv.c; control thread. */
	/* the path has ended, and its names are free for waiting requests */
	void (*path_unlinked)(struct srv_path *path);
	/* a path with @ncons connections, or a connection manager */
	void (*part_gone)(struct srv *srv, unsigned ncons);

	/* control thread */
	struct rtrs_geom geom;		/* of every session (srv-setup.c) */
	bool geom_fixed;
	struct frwr_lessons lessons;	/* what devices offered and failed to do */
	char told_protection[8][256];	/* srv-chunk.c: in the log */
	unsigned ntold;
	struct list cms;		/* struct srv_cm: one connection manager for each
					 * provider */
	struct list listeners;
	struct fab_tls *tls;		/* of all managers; NULL: no TLS */
	struct list parked;		/* struct srv_parked */
	struct list sessions;
	unsigned nsessions, npaths, nhalf_open, ncons, nparked;
	uint64_t paths_up, paths_down;	/* how many came into service, and left service */
	/* requests with a wrong digest, and when the last one came; any thread */
	struct counter digest_errors;
	atomic_ullong digest_error_ms;
	uint64_t memory;		/* of all paths: srv_path.memory */
	unsigned freed_cons;		/* srv.c: since memory was last given back */
	struct loop_timer mem_timer;
	struct srv_log log;
	uint64_t refused[SRV_REFUSALS];	/* since the start */
	struct srv_refused last_refused[SRV_REFUSED_ALL];	/* srv-log.c */
	struct srv_flaps flaps;
	struct auth_creds *auth;	/* NULL: no authentication in messages */
	struct srv_guests guests;
	struct srv_passes passes;
	unsigned next_offset;
	unsigned next_iova;		/* srv-chunk.c */
	struct loop_timer park_timer, listen_timer;

	enum srv_life life;
	struct loop_timer stop_timer;
	struct loop_msg stopped_msg;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* The control reactor. */
static inline struct reactor *srv_control(const struct srv *srv)
{
	return srv->threads[0].reactor;
}

/* The control thread's loop. */
static inline struct loop *srv_loop(const struct srv *srv)
{
	return srv->threads[0].loop;
}

/* Post @msg to the control thread.  Any thread. */
static inline void srv_post_control(const struct srv *srv, struct loop_msg *msg)
{
	loop_post(srv_loop(srv), msg);
}

#endif
