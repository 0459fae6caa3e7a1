/* SPDX-License-Identifier: BSD-3-Clause */
/* A server on host "srv" that does what a test says, by means of the project's encoders and decoders:
 * one that revokes keys (NEW_RKEY, doc/protocol.md 4), which ours does not offer on this
 * fabric, and one that answers wrongly.  It exports "disk0", RAW_SRV_DISK bytes, from memory, and
 * executes requests at once.  It answers heartbeats and sends those that a test asks for. */
#ifndef RAW_SRV_H
#define RAW_SRV_H

#include "rnbd-msg.h"
#include "rtrs-wr.h"
#include "sim-fabric.h"

#define RAW_SRV_DEPTH 8
#define RAW_SRV_IO 8192u
#define RAW_SRV_CHUNK (RAW_SRV_IO + 4096u)
#define RAW_SRV_DISK (256u << 10)
#define RAW_SRV_CONS 32

/* What it does wrong instead of the answer to an IO request, once. */
enum raw_evil {
	RAW_GOOD,
	RAW_UNKNOWN_ID,		/* answers a request beyond the queue depth */
	RAW_IDLE_ID,		/* one that is not in flight */
	RAW_TWICE,
	RAW_OTHER_CON,		/* on another connection than the request's */
	RAW_UNKNOWN_IMM,
	RAW_ODD_STATUS,		/* an errno that nobody uses */
	RAW_PLAIN_SEND,		/* a message without an immediate */
	RAW_INVAL_LIE,		/* says that the key of a READ was invalidated, and did not */
	RAW_INVAL_SILENT,	/* did it and does not say so */
	RAW_INVAL_TWICE,
	RAW_LATE_WRITE,		/* writes under the key of the last READ, which was answered, once more */
	RAW_KEY_WRONG_BUF,	/* the rest: NEW_RKEY only */
	RAW_KEY_WRONG_TYPE,
	RAW_KEY_SHORT,
	RAW_KEY_MISSING,	/* a plain answer, the key is still the dead one */
};

struct raw_srv;

struct raw_srv_con {
	struct raw_srv *srv;
	struct fab_conn *fab;		/* NULL: free */
	uint16_t cid;
	bool info_seen, failed;
	struct fab_cqe recv_cqe, send_cqe;
	uint8_t info[sizeof(struct rtrs_msg_info_req)];
};

struct raw_srv {
	struct sim_actor actor;
	struct fab_cm *cm;
	struct fab_listener *listener;
	struct fab_pd *pd;
	struct rtrs_geom geom;
	bool new_rkey;
	bool same_key;			/* NEW_RKEY with a key that never changes: legal (doc/protocol.md 4) */
	bool no_inval;			/* takes no keys of READs away: legal, and says so */
	unsigned nasked;		/* READs that asked for it */
	struct rtrs_desc last;		/* of the last READ of the disk */
	enum raw_evil evil;		/* set to RAW_GOOD when done */
	unsigned nrequests, nrevoked;
	unsigned ops;			/* bit op: one was asked for */
	unsigned nopens;
	unsigned nhb_acks;		/* answers to raw_srv_heartbeat() */
	struct raw_srv_con cons[RAW_SRV_CONS];
	struct ibv_mr *mrs[RAW_SRV_DEPTH], *own_mr;
	uint8_t chunks[RAW_SRV_DEPTH][RAW_SRV_CHUNK];
	uint8_t disk[RAW_SRV_DISK];
	uint8_t info_rsp[sizeof(struct rtrs_msg_info_rsp) + RAW_SRV_DEPTH * sizeof(struct rtrs_sg_desc)];
	struct rtrs_msg_rkey_rsp key_rsp[RAW_SRV_DEPTH];
};

void raw_srv_start(struct raw_srv *s, bool new_rkey);
/* On connection 0 of its client. */
void raw_srv_heartbeat(struct raw_srv *s);
/* All its clients have gone. */
void raw_srv_stop(struct raw_srv *s);

#endif
