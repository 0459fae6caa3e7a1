/* SPDX-License-Identifier: BSD-3-Clause */
/* A path: the connections between one pair of addresses, its chunk memory and its requests.  States
 * are those of srv-fsm.h; this performs the actions.  Control thread unless a function says
 * otherwise. */
#ifndef SRV_PATH_H
#define SRV_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "list.h"
#include "loop.h"
#include "rtrs-hb.h"
#include "rtrs-msg.h"
#include "srv-chunk.h"
#include "srv-fsm.h"

struct srv;
struct srv_con;
struct srv_req;
struct srv_sess;

struct srv_path {
	/* constant while a connection or request exists */
	struct srv *srv;
	struct srv_sess *sess;
	struct srv_chunks chunks;
	struct srv_req *reqs;		/* [queue_depth], by buf_id; each with the thread it came on */
	char name[2 * FAB_ADDR_STRLEN];	/* "client@server" */
	struct rtrs_hb hb;		/* rtrs_hb_rx(): any thread */

	/* control thread */
	struct list link;		/* in sess->paths */
	enum srv_path_state state;
	uint8_t uuid[RTRS_UUID_LEN];	/* sess_uuid of the wire: the path's identity */
	struct fab_addr client, server;
	uint16_t cid_num, recon_cnt;
	uint64_t memory;		/* of its chunks and of all its connections, for limits */
	unsigned offset;		/* of its connections over the IO threads */
	struct srv_con **cons;		/* [cid_num] */
	unsigned service_recvs;		/* of connection 0: as many as the protocol has, or the device */
	unsigned ncons, ndrained, nquiet, nfinished;
	bool half_open, was_up;
	struct loop_timer timer;		/* set-up, then heartbeat */
	struct fab_cqe info_cqe;	/* srv-info.c: the receive of INFO_REQ */
	struct loop_timer info_timer;	/* INFO_REQ waits for its name (doc/decisions.md D14) */
	uint64_t info_deadline_ms;	/* 0: none is waiting */
	char info_name[RTRS_NAME_MAX];
	bool info_seen, named;
};

/* Memory that a path with @ncons connections for the peer of @conn takes, about. */
uint64_t srv_path_memory(const struct srv *srv, unsigned ncons, const struct fab_conn *conn);

/* A new path of @sess in CONNECTING for the peer of @conn, with memory and without connections.
 * 0, or -errno with nothing held and the reason in @err. */
int srv_path_create(struct srv_sess *sess, const struct rtrs_conn_req *req, struct fab_conn *conn,
		    struct srv_path **ret, char *err, size_t errlen);

/* Accept @conn as connection @cid of @path.  On error the path has failed, and @conn is gone. */
int srv_path_add_con(struct srv_path *path, uint16_t cid, struct fab_conn *conn);

/* The one way down (doc/decisions.md D9).  The first call logs @cause; later ones do nothing.  @path may be
 * freed when this returns if it has no connection. */
void srv_path_fail(struct srv_path *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* INFO_REQ was accepted and the memory is attached: begin service (srv-info.c). */
void srv_path_up(struct srv_path *path);

/* Shutdown: answer what is in flight, then fail. */
void srv_path_finish(struct srv_path *path);

/* Does it still hold its uuid, its name and its address pair? */
static inline bool srv_path_linked(const struct srv_path *path)
{
	return path->state < SRV_PATH_LINGERING;
}

/* Reports of connections; the message is in a struct srv_con. */
void srv_path_con_drained(struct loop_msg *msg);
void srv_path_con_quiet(struct loop_msg *msg);
void srv_path_con_finished(struct loop_msg *msg);

#endif
