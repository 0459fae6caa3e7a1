/* SPDX-License-Identifier: BSD-3-Clause */
/* A path: the connections between one pair of addresses, the chunk memory and the requests.
 * Control thread unless a function says otherwise.
 *
 * Every failure takes the same way down (doc/decisions.md D9), and a dead path does not keep the
 * client waiting.  From LINGERING on a path holds no name, no uuid and no address pair: the client
 * is back while slow storage still works for the dead path (doc/decisions.md D14). */
#ifndef SRV_PATH_H
#define SRV_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "fsm.h"
#include "list.h"
#include "loop.h"
#include "rtrs-digest.h"
#include "rtrs-hb.h"
#include "rtrs-msg.h"
#include "srv-chunk.h"
#include "srv-info.h"

struct io_stat;
struct srv;
struct srv_con;
struct srv_sess;
struct srv_who;

enum srv_path_state {
	SRV_PATH_CONNECTING,	/* from the first CONN_REQ to a valid INFO_REQ; has a time limit */
	SRV_PATH_CONNECTED,	/* in service */
	SRV_PATH_DRAINING,	/* every connection was told to end; flushes are outstanding */
	SRV_PATH_LINGERING,	/* no connection left; unlinked; requests may still be in storage */
	SRV_PATH_GONE,		/* only the memory that is being given back refers to the path */
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

	/* Of requests that arrive from now on.  The control thread sets it, once, before it answers
	 * the SESS_INFO that asks; any thread reads it. */
	_Atomic(enum rtrs_digest) digest;

	/* control thread */
	struct list link;		/* in sess->paths */
	/* The path's name for people: "SESSION/CLIENT@SERVER:PORT", without SESSION until the name
	 * of the session is known.  The client's next path after a reconnect has the same name. */
	char name[SRV_PATH_NAME];
	atomic_uint state;		/* enum srv_path_state; control thread moves it */
	uint8_t uuid[RTRS_UUID_LEN];	/* sess_uuid of the wire: the path's identity */
	struct fab_addr client, server;
	struct fab_identity transport;	/* what its first connection has proven; constant */
	char identity[FAB_IDENTITY_LEN];	/* who the client is, by messages or by @transport;
						 * constant */
	uint64_t key;			/* that has proven @identity (srv-keys.h); 0: none */
	int64_t key_since_s;
	uint8_t conn_key[32];		/* CONNECTING, of a client that is proven by messages */
	char device[FAB_DEVICE_NAME];	/* the RDMA device, and its port; "": none */
	uint8_t device_port;
	uint16_t cid_num, recon_cnt;
	uint64_t memory;		/* of the chunks and of all connections, for limits */
	unsigned offset;		/* first IO thread of its connections */
	struct srv_con **cons;		/* [cid_num] */
	struct io_stat *stat_base;	/* srv-stat.c; NULL: never reset */
	unsigned service_recvs;		/* of connection 0: the protocol's number, or less if the
					 * device is short */
	unsigned ncons, ndrained, nquiet, nfinished;
	uint64_t up_since_ms;		/* counted in sess->nup; 0: not up yet */
	struct loop_timer timer;		/* set-up, then heartbeat */
	struct srv_info info;
};

/* Fill @path, which is all 0: CONNECTING, of @sess and the peer of @conn, who is @who; allocates
 * nothing.  For srv-setup.c. */
void srv_path_init(struct srv_path *path, struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct srv_who *who, const struct fab_conn *conn);
/* The callbacks of a path for its connections. */
extern const struct srv_con_ops srv_path_con_ops;

/* Fail @path: the one way down (doc/decisions.md D9).  The first call logs @cause; later calls do
 * nothing.  @path may be freed when this returns, if @path has no connection. */
void srv_path_fail(struct srv_path *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Answer the requests in flight, then fail @path: the server shuts down. */
void srv_path_finish(struct srv_path *path);

/* True if @path still holds uuid, name and address pair. */
static inline bool srv_path_linked(const struct srv_path *path)
{
	return path->state < SRV_PATH_LINGERING;
}

/* The table of states, for pictures and tests. */
extern const struct fsm srv_path_fsm;

#endif
