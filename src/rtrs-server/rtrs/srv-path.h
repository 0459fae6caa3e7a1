/* SPDX-License-Identifier: BSD-3-Clause */
/* A path: the connections between one pair of addresses, its chunk memory and its requests.
 * Control thread unless a function says otherwise.
 *
 * There is one way down for every failure (doc/decisions.md D9), and a dead path keeps nobody
 * waiting: from LINGERING on it holds no name, no uuid and no address pair, so its client is back
 * while slow storage still works on what the dead path had started (doc/decisions.md D14). */
#ifndef SRV_PATH_H
#define SRV_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "fsm.h"
#include "loop.h"
#include "list.h"
#include "rtrs-hb.h"
#include "rtrs-msg.h"
#include "srv-chunk.h"
#include "srv-info.h"

struct io_stat;
struct srv;
struct srv_con;
struct srv_sess;

enum srv_path_state {
	SRV_PATH_CONNECTING,	/* from the first CONN_REQ to a valid INFO_REQ; has a time limit */
	SRV_PATH_CONNECTED,	/* in service */
	SRV_PATH_DRAINING,	/* every connection was told to end; flushes are outstanding */
	SRV_PATH_LINGERING,	/* no connection left; unlinked; requests may still be in storage */
	SRV_PATH_GONE,		/* nothing refers to it but the memory being given back */
	SRV_PATH_NSTATES
};

enum srv_path_event {
	SRV_PATH_EV_INFO,	/* INFO_REQ accepted, chunk memory ready on every thread */
	SRV_PATH_EV_FAIL,	/* any failure, time-out, come-back or shutdown */
	SRV_PATH_EV_DRAINED,	/* the last connection has drained */
	SRV_PATH_EV_QUIET,	/* drained, and the last request has left the storage */
	SRV_PATH_NEVENTS
};

#define SRV_PATH_NAME (RTRS_NAME_MAX + 2u * FAB_ADDR_STRLEN)

struct srv_path {
	/* constant while a connection or request exists */
	struct srv *srv;
	struct srv_sess *sess;
	struct srv_chunks chunks;
	void *reqs;			/* [queue_depth], by buf_id: srv_req_at() */
	size_t req_size;		/* srv_ops.req_size */
	struct rtrs_hb hb;		/* rtrs_hb_rx(): any thread */
	struct loop_msg given_up_msg;

	/* control thread */
	struct list link;		/* in sess->paths */
	/* What people call the path: "SESSION/CLIENT@SERVER:PORT", without SESSION until that is
	 * known.  The path that comes when its client reconnects has the same name. */
	char name[SRV_PATH_NAME];
	enum srv_path_state state;
	uint8_t uuid[RTRS_UUID_LEN];	/* sess_uuid of the wire: the path's identity */
	struct fab_addr client, server;
	char device[FAB_DEVICE_NAME];	/* of the RDMA device, and its port; "": none */
	uint8_t device_port;
	uint16_t cid_num, recon_cnt;
	uint64_t memory;		/* of its chunks and of all its connections, for limits */
	unsigned offset;		/* of its connections over the IO threads */
	struct srv_con **cons;		/* [cid_num] */
	struct io_stat *stat_base;	/* srv-stat.c; NULL: never reset */
	unsigned service_recvs;		/* of connection 0: the protocol's, or what fits */
	unsigned ncons, ndrained, nquiet, nfinished;
	bool was_up;			/* its session counts it */
	struct loop_timer timer;		/* set-up, then heartbeat */
	struct srv_info info;
};

/* Fill @path, which is all 0: CONNECTING, of @sess and the peer of @conn; nothing is allocated.
 * For srv-setup.c. */
void srv_path_init(struct srv_path *path, struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct fab_conn *conn);
/* What a path does with its connections. */
extern const struct srv_con_ops srv_path_con_ops;

/* The name of its session is known. */
void srv_path_named(struct srv_path *path);

/* The one way down (doc/decisions.md D9).  The first call logs @cause; later ones do nothing.
 * @path may be freed when this returns if it has no connection. */
void srv_path_fail(struct srv_path *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Shutdown: answer what is in flight, then fail. */
void srv_path_finish(struct srv_path *path);

/* Does it still hold its uuid, its name and its address pair? */
static inline bool srv_path_linked(const struct srv_path *path)
{
	return path->state < SRV_PATH_LINGERING;
}

/* The table, for those who draw or test it. */
extern const struct fsm srv_path_fsm;

#endif
