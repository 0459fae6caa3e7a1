/* SPDX-License-Identifier: BSD-3-Clause */
/* A client and a server that read and write, for the cases: RTRS in small.  Requests go into chunks
 * of the server, a chunk for each slot of the client, over any connection; the server takes the key
 * of the chunk away before it looks, and tells a new one with the answer.  Reads are answered into
 * the slot, whose key lives as long as the read.  What is read and written is a pattern of the
 * request's number, checked by who receives it.
 *
 * Both may be in one world, or in two processes; then all they know of each other is what is sent.
 * Open: dial and accept each connection, then rw_client_ready(), rw_server_ready().  A client goes
 * on until @todo requests were answered; requests are posted from completion handlers, so who waits
 * makes it run.  After a failure of a connection nothing is repaired: close. */
#ifndef DEVICE_RW_H
#define DEVICE_RW_H

#include "device.h"

#define RW_CONNS 4u
#define RW_DEPTH 16u
#define RW_RECVS (2 * RW_DEPTH + 1)

struct rw_request {
	struct frwr_handle to;
	uint32_t number, len;
	uint32_t read, need_inval;
};

struct rw_answer {
	struct frwr_handle chunk;
	uint32_t i;			/* of the chunk */
	uint32_t number;		/* 0: no request's, the first key of the chunk */
	uint32_t invalidated;
};

#define RW_MESSAGE 64u			/* a request in front of its chunk; an answer */
#define RW_CHUNK (RW_MESSAGE + SLOT)

/* A posted receive. */
struct rw_recv {
	struct fab_cqe cqe;
	struct end *e;
	void *owner;
	uint8_t *buf;			/* client: RW_MESSAGE bytes */
};

struct rw_slot {
	struct rw_client *c;
	unsigned i;
	struct ibv_mr *mr;
	struct frwr_entry entry;
	struct rw_request req;
	struct frwr_handle chunk;	/* where the next one goes */
	struct end *on;
};

struct rw_client {
	struct world *w;
	struct end *e[RW_CONNS];
	unsigned nconns, nkeys;
	struct frwr_pool *pool;
	struct region in, out, arena;	/* arena: not registered as a whole */
	struct rw_slot slot[RW_DEPTH];
	struct rw_recv recv[RW_CONNS][RW_RECVS];
	struct fab_cqe sent;
	uint32_t number, done, todo;
	uint32_t reads;			/* of those done */
	uint64_t random;
};

struct rw_chunk {
	struct rw_server *s;
	unsigned i;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct frwr_entry entry;
	struct frwr_handle handle;
	struct end *on;
	struct rw_request req;
};

struct rw_server {
	struct world *w;
	struct end *e[RW_CONNS];
	unsigned nconns;
	struct frwr_pool *pool;
	struct region out;
	struct rw_chunk chunk[RW_DEPTH];
	struct rw_recv recv[RW_CONNS][RW_RECVS];
	struct fab_cqe sent;
	uint32_t answered;
};

/* Sizes of queues for @mode, as frwr says for what the device can do. */
struct fab_qp_attr rw_attr(struct world *w, bool server, enum frwr_mode mode);

void rw_client_dial(struct rw_client *c, const struct fab_addr *to, const struct fab_qp_attr *attr);
void rw_client_dialed(struct rw_client *c);
void rw_client_ready(struct rw_client *c, enum frwr_mode mode);
void rw_server_accept(struct rw_server *s, const struct fab_qp_attr *attr);
void rw_server_ready(struct rw_server *s, enum frwr_mode mode);
bool rw_client_drained(const struct rw_client *c);
bool rw_server_drained(const struct rw_server *s);
/* Drained.  Returns how many ms the slowest connection took to be destroyed. */
uint64_t rw_client_close(struct rw_client *c);
uint64_t rw_server_close(struct rw_server *s);

#endif
