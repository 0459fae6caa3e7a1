/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of a path, before the path joins its session: the INFO exchange, doc/protocol.md
 * 2.4 and 2.5.  No request of the path is received before.  Control thread. */
#ifndef SRV_INFO_H
#define SRV_INFO_H

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
	SRV_INFO_WAITS,			/* for its name (doc/decisions.md D14) */
	SRV_INFO_NAMED,			/* the path has it, and has joined its session */
	SRV_INFO_OVER,			/* refused, or the path failed before */
	SRV_INFO_NSTATES
};

enum srv_info_event {
	SRV_INFO_EV_REQ,		/* a valid INFO_REQ, with all connections there */
	/* what was found of its name */
	SRV_INFO_EV_HELD,		/* by a path that is about to give it up */
	SRV_INFO_EV_FREE,
	SRV_INFO_EV_REFUSED,		/* it cannot be had, or not in time */
	SRV_INFO_EV_FAIL,		/* the path is failing */
	SRV_INFO_NEVENTS
};

struct srv_info {
	enum srv_info_state state;
	struct fab_cqe cqe;		/* the receive of INFO_REQ */
	struct loop_timer timer;
	char name[RTRS_NAME_MAX];
	void (*done)(struct srv_path *path, const char *cause);
};

/* @done runs once INFO_REQ has a valid name, with @cause NULL, or cannot have it, with the
 * reason. */
void srv_info_init(struct srv_path *path, void (*done)(struct srv_path *path, const char *cause));
/* The one receive that INFO_REQ goes into; before connection 0 is accepted.  0 or -errno. */
int srv_info_post_recv(struct srv_path *path, struct srv_con *con);
/* Send INFO_RSP; receives are posted. */
void srv_info_respond(struct srv_path *path);
/* The path is failing: stop waiting for a name. */
void srv_info_cancel(struct srv_path *path);
/* A path has given up its name: see who waited for it. */
void srv_info_retry(struct srv *srv);

/* The table, for those who draw or test it. */
extern const struct fsm srv_info_fsm;

#endif
