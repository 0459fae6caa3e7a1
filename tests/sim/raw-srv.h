/* SPDX-License-Identifier: BSD-3-Clause */
/* A server on host "srv" that does what a test says, made by hand (tests/peer/peer-srv.h): one that
 * revokes keys (NEW_RKEY, doc/protocol.md 4), which ours does not offer on this fabric, one that
 * answers wrongly, and one that knows no extension and keeps sessions as the kernel's does: several
 * paths share chunks and devices, a device has the lowest free number of its session, and whoever
 * asks for one that is not open gets ENOTCONN.  It exports one disk, RAW_SRV_DISK bytes, under any
 * name, from memory, and executes requests at once.  It listens on all addresses, answers
 * heartbeats and sends those that a test asks for. */
#ifndef RAW_SRV_H
#define RAW_SRV_H

#include "../peer/peer-srv.h"
#include "sim-fabric.h"

#define RAW_SRV_IO 8192u
#define RAW_SRV_CHUNK (RAW_SRV_IO + PEER_SRV_HDR)
#define RAW_SRV_DISK (1u << 20)		/* as WORLD_DISK_SIZE: a smaller one is not used any more */

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
	/* writes under the key of the last READ, which was answered, once more */
	RAW_LATE_WRITE,
	RAW_KEY_WRONG_BUF,	/* the rest: NEW_RKEY only */
	RAW_KEY_WRONG_TYPE,
	RAW_KEY_SHORT,
	RAW_KEY_MISSING,	/* a plain answer, the key is still the dead one */
};

struct raw_srv {
	struct peer_srv peer;		/* heartbeats that were answered are counted there */
	struct sim_actor actor;
	/* NEW_RKEY with a key that never changes: legal (doc/protocol.md 4) */
	bool same_key;
	bool no_inval;			/* takes no keys of READs away: legal, and says so */
	unsigned nasked;		/* READs that asked for it */
	struct rtrs_desc last;		/* of the last READ of the disk */
	/* RNBD_EXT_*, set before a client comes; 0: it is a kernel */
	uint32_t features;
	uint8_t says[64];		/* what it answers to questions (doc/decisions.md D16) */
	unsigned nquestions;
	bool loses_probes;		/* gives no answer to PROBE */
	unsigned nprobes;		/* bytes of data in these, both ways */
	struct rnbd_io asked;		/* the last question about extents */
	enum raw_evil evil;		/* set to RAW_GOOD when done */
	unsigned nrequests, nrevoked;
	unsigned ops;			/* bit op: one was asked for */
	unsigned nopens;
	uint64_t told_size;		/* in the answer to OPEN; 0: as it is */
	/* not 0: the errno that each OPEN is answered with, negative */
	int no_open;
	unsigned nstrays;		/* requests for a device that is not open */
	struct ibv_mr *mrs[PEER_SRV_PATHS][PEER_SRV_DEPTH];
	uint8_t chunks[PEER_SRV_DEPTH][RAW_SRV_CHUNK];
	struct rtrs_msg_rkey_rsp key_rsp[PEER_SRV_DEPTH];
	uint8_t disk[RAW_SRV_DISK];	/* the last member: outlives the process */
};

/* With an empty disk. */
void raw_srv_start(struct raw_srv *s, bool new_rkey);
/* As SIGKILL; nothing of it is left but its disk. */
void raw_srv_kill(struct raw_srv *s);
/* The next process after that, with the same disk. */
void raw_srv_start_again(struct raw_srv *s);
/* Sessions that have a connection. */
unsigned raw_srv_sessions(const struct raw_srv *s);
/* On connection 0 of its client. */
void raw_srv_heartbeat(struct raw_srv *s);
/* All its clients have gone. */
void raw_srv_stop(struct raw_srv *s);

#endif
