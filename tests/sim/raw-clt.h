/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that does what a test says, by means of the project's encoders and decoders: for the
 * settings that our own client does not use on this fabric (NEED_INVAL with windows), and for
 * connection requests out of order.  It answers heartbeats and keeps its receives posted; all
 * else is up to the test.  Functions that wait step virtual time. */
#ifndef RAW_CLT_H
#define RAW_CLT_H

#include "rnbd-msg.h"
#include "rtrs-wr.h"
#include "sim-fabric.h"

#define RAW_CONS 4
#define RAW_BUFS 16
#define RAW_RECVS 48			/* of a connection */
#define RAW_DATA 65536u

struct raw_clt;

struct raw_con {
	struct raw_clt *clt;
	struct fab_conn *fab;
	struct fab_cqe recv_cqe, send_cqe;
	bool up, failed, drained;
	int status;			/* of connecting: 0, errno of the reject, or -ECONNRESET */
	unsigned ninv;			/* SEND_WITH_INV seen and not yet matched by an answer */
	/* With NEW_RKEY: what receives are filled with, in the order in which they are posted and met. */
	struct rtrs_msg_rkey_rsp rkeys[RAW_RECVS];
	unsigned nposted, nmet;
};

/* The answer to a request. */
struct raw_rsp {
	bool done;
	unsigned type;			/* RTRS_IO_RSP_IMM, RTRS_IO_RSP_W_INV_IMM */
	int status;
	unsigned cid;
	bool after_inv;			/* a SEND_WITH_INV came before it */
	uint32_t old_rkey;		/* of the chunk, before this answer */
};

struct raw_clt {
	struct sim_actor actor;
	struct fab_cm *cm;
	struct fab_pd *pd;
	struct rtrs_conn_req req;	/* cid is set for each connection */
	struct raw_con cons[RAW_CONS];
	struct rtrs_conn_rsp rsp;
	struct rtrs_geom geom;
	struct rtrs_rbuf rbufs[RAW_BUFS];
	bool info_done;
	unsigned nhb;			/* heartbeats answered */
	bool mute;			/* answer no heartbeats */
	struct raw_rsp answers[RAW_BUFS];
	struct ibv_mw *windows[RAW_BUFS];
	struct ibv_mr *mr;
	uint8_t data[RAW_BUFS][RAW_DATA];
	uint8_t hdr[RAW_BUFS][RTRS_HDR_MAX];
	uint8_t info[sizeof(struct rtrs_msg_info_req)];
	uint8_t info_rsp[sizeof(struct rtrs_msg_info_rsp) + RAW_BUFS * sizeof(struct rtrs_sg_desc)];
};

/* On @host; path uuid all @path, session uuid all @sess; nothing connects yet. */
void raw_clt_init(struct raw_clt *c, const char *host, uint8_t path, uint8_t sess, unsigned ncons);
void raw_clt_fini(struct raw_clt *c);
/* Connect @cid; returns when it is up (0) or refused. */
int raw_clt_connect(struct raw_clt *c, unsigned cid);
/* INFO_REQ with @name; 0, or -ECONNRESET when the server hangs up instead of answering. */
int raw_clt_info(struct raw_clt *c, const char *name);
/* All of that, and SESS_INFO and OPEN of "disk0"; 0 or the first error. */
int raw_clt_open(struct raw_clt *c, const char *name, enum rnbd_access_mode mode);
/* Break off all connections. */
void raw_clt_hang_up(struct raw_clt *c);

/* Send a request under @buf on @cid: user message, and data_len bytes of c->data[buf] to write or
 * to be filled.  @need_inval: the target of a READ is a window bound in the same chain. */
void raw_clt_submit(struct raw_clt *c, unsigned cid, unsigned buf, enum rtrs_dir dir,
		    const void *usr, uint16_t usr_len, uint32_t data_len, bool need_inval);
/* Wait at most @ms for its answer; true if it came (c->answers[buf]). */
bool raw_clt_wait(struct raw_clt *c, unsigned buf, uint64_t ms);
/* An IO request on device 0, to its answer; returns the status, or -ECONNRESET without answer. */
int raw_clt_io(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op, uint64_t sector,
	       uint32_t len, bool need_inval);
/* Only the submission. */
void raw_clt_io_start(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op,
		      uint64_t sector, uint32_t len, bool need_inval);
bool raw_clt_lost(struct raw_clt *c);

#endif
