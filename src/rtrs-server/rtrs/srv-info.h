/* SPDX-License-Identifier: BSD-3-Clause */
/* The INFO exchange of a path, doc/protocol.md 2.4 and 2.5.  Control thread. */
#ifndef SRV_INFO_H
#define SRV_INFO_H

#include "fabric.h"
#include "rtrs-proto.h"
#include "loop.h"

struct srv;
struct srv_con;
struct srv_path;

enum srv_info_state {
	SRV_INFO_AWAITED,
	SRV_INFO_SEEN,			/* INFO_REQ has come */
	SRV_INFO_WAITS,			/* for its name (doc/decisions.md D14) */
	SRV_INFO_NAMED,			/* the path has it */
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

#endif
