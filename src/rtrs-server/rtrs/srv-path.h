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
#include "rtrs-hb.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"
#include "srv-chunk.h"

struct io_stat;
struct srv;
struct srv_con;
struct srv_path;
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

/* ---- srv-info.c: the handshake of a path, before the path joins its session: the INFO exchange,
 * doc/protocol.md 2.4 and 2.5.  No request of the path is received earlier. ---- */

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

/* ---- the path ---- */

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
	uint64_t key;			/* that has proven @identity (srv-pass.c); 0: none */
	int64_t key_since_s;
	uint8_t conn_key[32];		/* CONNECTING, of a client that is proven by messages */
	char device[FAB_DEVICE_NAME];	/* the RDMA device, and its port; "": none */
	uint8_t device_port;
	uint16_t cid_num, recon_cnt;
	uint64_t memory;		/* of the chunks and of all connections, for limits */
	unsigned offset;		/* first IO thread of its connections */
	struct srv_con **cons;		/* [cid_num] */
	struct io_stat *stat_base;	/* srv-export.c; NULL: never reset */
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

/* ---- srv-info.c ---- */

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

/* ---- srv-setup.c: sets paths up (doc/protocol.md 2) ---- */

/* The announced queue depth: --queue-depth, or less if a device has short queues.
 *
 * All paths of a session must get one depth (doc/traps.md 4), and the same after a reconnect
 * (doc/traps.md 5, 6).  So the whole server has one.  A device known at the start of listening
 * lowers the depth then; a device behind an address that names no device (a wildcard) lowers the
 * depth with the first client of all.  From the first client on the depth is fixed. */

/* Set the depth of the configuration.  -EINVAL, -EOVERFLOW: queue depth and size do not fit
 * together. */
int srv_setup_geom(struct srv *srv);
/* Lower the depth to the queues of the device of @l, a listener called @name.  0; or -errno with
 * the reason in @why: the device is too small for any depth, or for the depth that earlier clients
 * got. */
int srv_setup_fit_listener(struct srv *srv, const struct fab_listener *l, const char *name,
			   char *why, size_t len);
/* Fix the depth, if the peer of @conn is the first client to get a path.  0; or -errno with the
 * reason in @why: the device cannot serve the depth that earlier clients got. */
int srv_setup_fit_client(struct srv *srv, const struct fab_conn *conn, char *why, size_t len);

/* Estimate the memory of a path with @ncons connections for the peer of @conn. */
uint64_t srv_setup_memory(const struct srv *srv, unsigned ncons, const struct fab_conn *conn);

/* Make a path of @sess in CONNECTING for the peer of @conn, who is @who, with memory and without
 * connections. 0, or -errno with nothing held and the reason in @err. */
int srv_setup_path(struct srv_sess *sess, const struct rtrs_conn_req *req,
		   const struct srv_who *who, struct fab_conn *conn, struct srv_path **ret,
		   char *err, size_t errlen);

/* Accept @conn, whose CONN_REQ is @req, as a connection of @path.  On error the path has failed,
 * and @conn is gone. */
int srv_setup_con(struct srv_path *path, const struct rtrs_conn_req *req, struct fab_conn *conn);

#endif
