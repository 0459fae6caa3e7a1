/* SPDX-License-Identifier: BSD-3-Clause */
/* What servers made by hand have in common, on any fabric and in any time: set-up, connections of
 * any number of lives of one client after the other, requests decoded, heartbeats answered.  What a
 * request does, and how it is answered, is its owner's (tests/sim/raw-srv.h, tests/hostile/hsrv.h),
 * who embeds it and calls it from one thread at a time.
 *
 * Sessions and paths are told apart as the kernel's server does, by their uuids: a session lasts as
 * long as it has a connection.  A path that comes back is not refused while its last life drains.
 *
 * A failed connection drains and is forgotten; what a good client does not do ends the program. */
#ifndef PEER_SRV_H
#define PEER_SRV_H

#include "fabric.h"
#include "rnbd-msg.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"

#define PEER_SRV_DEPTH 8u
#define PEER_SRV_HDR 4096u		/* of a chunk, behind the data */
#define PEER_SRV_CONS 32
#define PEER_SRV_PATHS 8		/* lives of paths that have connections at one time */
#define PEER_SRV_SESSIONS 4
#define PEER_SRV_DEVS 4

struct peer_srv;

struct peer_srv_sess {
	uint8_t uuid[RTRS_UUID_LEN];
	unsigned ncons;			/* 0: free */
	char devs[PEER_SRV_DEVS][RNBD_NAME_MAX];	/* the owner's; empty when it begins */
};

/* One life of a path. */
struct peer_srv_path {
	uint8_t uuid[RTRS_UUID_LEN];
	uint16_t recon_cnt;
	unsigned ncons;			/* 0: free */
	struct peer_srv_sess *sess;
};

struct peer_srv_con {
	struct peer_srv *srv;
	struct peer_srv_path *path;
	struct fab_conn *fab;		/* NULL: free */
	uint16_t cid;
	bool info_seen, failed;
	struct fab_cqe recv_cqe, send_cqe;
	uint8_t info[sizeof(struct rtrs_msg_info_req)];
};

struct peer_srv_ops {
	/* There is a domain now.  Returns the region of all of the owner's memory. */
	struct ibv_mr *(*memory)(struct peer_srv *s);
	/* The path of @con begins: where its chunks are.  Returns how many @regions that takes. */
	unsigned (*regions)(struct peer_srv_con *con, struct rtrs_region *regions);
	/* @req came in chunk @buf, and its header was copied.  To be answered. */
	void (*request)(struct peer_srv_con *con, struct rtrs_req *req, unsigned buf);
};

struct peer_srv {
	const struct peer_srv_ops *ops;
	struct fab_cm *cm;
	struct fab_listener *listener;
	struct fab_pd *pd;
	struct ibv_mr *own_mr;
	struct rtrs_geom geom;
	bool new_rkey;			/* set before the first connection */
	/* bytes of a chunk that are for the header and not for data, as clients that connect from
	 * now on hear */
	uint32_t told_less;
	bool asks_late;			/* for a proof, on the second connection */
	uint8_t *chunks;		/* [PEER_SRV_DEPTH][geom.chunk_size] */
	unsigned lives;			/* how often a client began to set up a path */
	unsigned nhb_acks;		/* answers to heartbeats */
	struct peer_srv_con cons[PEER_SRV_CONS];
	struct peer_srv_path paths[PEER_SRV_PATHS];
	struct peer_srv_sess sessions[PEER_SRV_SESSIONS];
	uint8_t info_rsp[sizeof(struct rtrs_msg_info_rsp) +
			 PEER_SRV_DEPTH * sizeof(struct rtrs_sg_desc)];
};

/* Listen on @addr; requests have at most @max_io bytes. */
void peer_srv_start(struct peer_srv *s, const struct peer_srv_ops *ops, const struct fab_addr *addr,
		    uint8_t *chunks, uint32_t max_io);
/* All its clients have gone. */
void peer_srv_stop(struct peer_srv *s);

/* Connections come and go. */
void peer_srv_events(struct peer_srv *s);
/* All that is there; then @events is what to wait for.  False when it has drained: it is free. */
bool peer_srv_poll(struct peer_srv_con *con, short *events);

static inline uint8_t *peer_srv_chunk(struct peer_srv *s, unsigned buf)
{
	return s->chunks + (size_t)buf * s->geom.chunk_size;
}

/* The RNBD type of @req, or negative; SESS_INFO and OPEN are answered in @data. */
int peer_srv_control(const struct rtrs_req *req, const struct rnbd_dev_info *disk, uint8_t *data);
/* The answer with what is in the chunk, for rtrs_wr_response(). */
struct rtrs_rsp peer_srv_rsp(struct peer_srv *s, const struct rtrs_req *req, unsigned buf,
			     int status);

#endif
