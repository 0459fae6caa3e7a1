/* SPDX-License-Identifier: BSD-3-Clause */
/* A path: connections between one pair of addresses, and its life (clt-fsm.h).
 *
 * Owned by the service thread.  Other threads see: @up (may I submit?), the connections' send
 * and poll sides (clt-io.h), and clt_path_fail().  The struct lives as long as the session;
 * connections of the fabric come and go with each attempt. */
#ifndef CLT_PATH_H
#define CLT_PATH_H

#include <stdatomic.h>

#include "clt-fsm.h"
#include "clt-io.h"
#include "clt-key.h"
#include "fabric.h"
#include "loop.h"
#include "rtrs-hb.h"
#include "rtrs-msg.h"

struct clt_recv {
	struct fab_cqe cqe;
	struct rtrs_msg_rkey_rsp msg;
};

struct clt_con {
	struct clt_path *path;
	unsigned cid;
	unsigned key;			/* unique in the session; not 0 */
	struct fab_conn *fab;		/* changed under send lock and poll role */
	/* send side */
	_Alignas(64) _Atomic(struct clt_slot *) sendq;	/* newest first */
	atomic_int send_lock;
	bool open;			/* send lock: posts are possible */
	/* poll side */
	_Alignas(64) struct clt_wait_con wait;
	atomic_uint unsent;		/* answered, and waiting for a send completion or invalidate */
	atomic_uint inflight;		/* slots between clt_tx_queue() and their owners */
	atomic_bool has_inv;		/* a handler queued an invalidate: flush behind it */
	struct fab_cqe recv_cqe;	/* of all empty receives */
	struct clt_recv *recvs;		/* NEW_RKEY: [nrecvs] */
	struct ibv_mr *recvs_mr;
	unsigned nrecvs;
	/* service thread */
	struct loop_watch watch;
	bool created, established, drained;
	bool hung_up;			/* its peer; the poll role is awaited to look */
};

struct clt_path {
	struct clt_sess *sess;
	unsigned index;
	char name[64];			/* "SRC@DST" for the log */
	struct fab_addr src, dst;
	uint8_t uuid[RTRS_UUID_LEN];
	struct clt_con *cons;		/* [ncons], 0 is the service connection */
	unsigned ncons;

	enum clt_state state;
	atomic_bool up;			/* requests may be submitted */
	atomic_bool opening;		/* user messages of the upper layer may be submitted */
	unsigned life;			/* counts attempts; recon_cnt is its low half */

	/* of this attempt */
	struct rtrs_geom geom;
	uint32_t max_qp_wr;		/* of the device */
	unsigned depth;			/* requests in flight: of the server's, what this side can use */
	bool new_rkey;
	struct frwr_pool *pool;		/* [nwindows] of them, or NULL (clt-key.h) */
	unsigned nwindows;
	uint32_t window_send_wr;	/* send queue that they need, or 0 */
	struct rtrs_rbuf *rbufs;	/* [geom.queue_depth] */
	struct rtrs_msg_info_rsp *info_rsp;
	struct ibv_mr *info_mr;		/* of @info_rsp and the INFO_REQ behind it */
	struct fab_cqe info_send_cqe, info_recv_cqe, hb_cqe;
	unsigned next_cid;

	/* kept from the first attempt on */
	struct fab_cm *cm;
	struct fab_pd *pd;
	struct frwr_caps caps;		/* of the device of @pd, as @mode */
	enum frwr_mode mode;		/* of keys for READs */
	char mode_why[256];
	bool bounce;			/* clt-mem.h; with it @pd and the regions are of this attempt */
	bool rereg;			/* mode == FRWR_REREG, for owners of requests */
	uint32_t dma_lkey;		/* only without @bounce */
	struct ibv_mr **mrs;		/* [slots.n + 1], clt-mem.c */
	struct ibv_mr *all_mr;		/* instead of them, direct with windows */
	struct ibv_mr *slots_mr, *ctl_mr;

	struct rtrs_hb hb;
	bool silent;			/* a heartbeat has been without answer for an interval */
	struct loop_watch cm_watch;
	struct loop_timer setup_timer, hb_timer, retry_timer;
	struct loop_msg fail_msg, drain_msg, service_msg;
	unsigned tries;			/* since it was up for a while */
	uint64_t up_since_ms;		/* 0: not in this attempt */

	pthread_mutex_t cause_lock;
	atomic_bool failing;		/* latched until the next attempt */
	int fail_err;
	char cause[256];
	char told[256];			/* cause that was logged last */
	uint64_t told_ms;
};

/* 0, -ENOMEM, or what a thread and an event for each of @ncons fail with: -EMFILE, -EAGAIN. */
int clt_path_init(struct clt_path *path, struct clt_sess *sess, unsigned index,
		  const struct fab_addr *src, const struct fab_addr *dst, unsigned ncons);
/* IDLE or CLOSED only. */
void clt_path_fini(struct clt_path *path);

/* Service thread. */
void clt_path_start(struct clt_path *path);
void clt_path_close(struct clt_path *path);
/* Upper layer: the user messages of CLT_OPENING are answered. */
void clt_path_opened(struct clt_path *path);
/* clt-wait.c: the role that was asked for is free. */
void clt_drain_role_free(struct clt_con *con);
/* A heartbeat message or its acknowledgement came on @con.  From a handler. */
void clt_con0_heartbeat(struct clt_con *con, unsigned type);
/* Something was posted on connection 0: poll and arm it soon. */
void clt_con0_service(struct clt_path *path);

/* Fail @path once per attempt; the first cause is kept and logged.  Any thread, also from handlers. */
void clt_path_fail(struct clt_path *path, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static inline bool clt_path_is_up(struct clt_path *path)
{
	return atomic_load(&path->up);	/* seq_cst: clt-wait.c counts on it */
}

#endif
