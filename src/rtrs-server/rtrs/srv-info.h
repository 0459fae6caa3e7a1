/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of a path, before the path joins its session: the INFO exchange, doc/protocol.md
 * 2.4 and 2.5.  No request of the path is received earlier.  Control thread. */
#ifndef SRV_INFO_H
#define SRV_INFO_H

#include <stdbool.h>

#include "fabric.h"
#include "fsm.h"
#include "rtrs-proto.h"
#include "loop.h"

struct srv;
struct srv_con;
struct srv_path;

enum srv_info_state {
	SRV_INFO_AWAITED,
	SRV_INFO_SEEN,			/* INFO_REQ has come */
	SRV_INFO_WAITS,			/* for the name (doc/decisions.md D14) */
	SRV_INFO_NAMED,			/* the path has the name, and has joined its session */
	SRV_INFO_TOLD,			/* refused, and the client was told why: it hangs up */
	SRV_INFO_OVER,			/* refused, or the path failed before */
	SRV_INFO_NSTATES
};

enum srv_info_event {
	SRV_INFO_EV_REQ,		/* a valid INFO_REQ, and all connections are up */
	/* findings about the name */
	SRV_INFO_EV_HELD,		/* a path that holds the name is about to give the name
					 * up */
	SRV_INFO_EV_FREE,
	SRV_INFO_EV_REFUSED,		/* the name is taken, or was not free in time */
	SRV_INFO_EV_TELL,		/* the same, and the client hears why */
	SRV_INFO_EV_FAIL,		/* the path is failing */
	SRV_INFO_NEVENTS
};

struct srv_info {
	atomic_uint state;		/* enum srv_info_state */
	struct fab_cqe cqe;		/* the receive of INFO_REQ */
	bool hears;			/* the client hears a refusal */
	enum rtrs_refusal refusal;
	struct loop_timer timer;
	char name[RTRS_NAME_MAX];
	void (*done)(struct srv_path *path, const char *cause);
};

/* Begin to expect INFO_REQ on @path.  @done runs once: with @cause NULL when the path has its
 * name, or with the reason why not; @path fails then, unless it is TOLD.  A client that was told
 * and does not hang up is one more reason. */
void srv_info_init(struct srv_path *path, void (*done)(struct srv_path *path, const char *cause));
/* Post the one receive for INFO_REQ, before connection 0 is accepted.  0 or -errno. */
int srv_info_post_recv(struct srv_path *path, struct srv_con *con);
/* Send INFO_RSP; the receives are posted already. */
void srv_info_respond(struct srv_path *path);
/* Stop waiting for a name: the path is failing. */
void srv_info_cancel(struct srv_path *path);
/* Try waiting paths again: a path has given up its name. */
void srv_info_retry(struct srv *srv);

/* The table of states, for pictures and tests. */
extern const struct fsm srv_info_fsm;

#endif
