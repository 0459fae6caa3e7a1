/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a path (doc/decisions.md D6): one mapping of queue_depth chunks that its client
 * writes into, and one for the messages that are not requests.
 *
 * The chunks are the target of the fabric and, where a device pins them anyway and the storage
 * works on them, also a fixed buffer of the ring of every thread that has a connection of the path.
 * A ring takes orders from its own thread only, so attaching and detaching go through the threads'
 * inboxes and end in a call on the control thread. */
#ifndef SRV_CHUNK_H
#define SRV_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "fabric.h"
#include "frwr.h"
#include "loop.h"
#include "rtrs-geom.h"
#include "rtrs-msg.h"

struct srv;
struct srv_chunks;

struct srv_ring_mem {			/* one per thread */
	struct srv_chunks *chunks;
	unsigned thread;
	bool used;			/* a connection of the path lives there */
	int mem;			/* export-io's handle on that thread, or -1 */
	struct loop_msg attach_msg, detach_msg;
};

struct srv_chunks {
	struct srv *srv;
	const struct rtrs_geom *geom;
	struct fab_pd *pd;
	enum srv_invalidate invalidate;	/* on this path: see srv_key_pool_choose() */
	enum frwr_mode key_mode;	/* always: what has a chunk's key */
	char refused[192];		/* why what was asked for cannot be had, or "" */
	struct frwr_pool *keys;		/* always: one window per chunk, from set-up to drained */
	uint8_t *base, *service;
	size_t len, service_len;
	bool mr_each;			/* a region for each chunk */
	uint64_t iova;			/* of the first chunk; the others follow */
	struct ibv_mr **mrs;		/* [queue_depth] if mr_each, else [1] */
	struct ibv_mr *service_mr;
	struct rtrs_msg_rkey_rsp *rkey_rsps;	/* always: [queue_depth], in the service memory */
	struct rtrs_region *regions;	/* [nregions]: what INFO_RSP tells */
	unsigned nregions;
	bool pinned;			/* a device's: registering locks memory */
	struct srv_ring_mem *rings;
	unsigned pending;		/* threads that have not answered yet */
	bool attached;
	void (*done)(struct srv_chunks *c);	/* when none is pending */
};

/* The service memory: INFO_REQ, INFO_RSP, and with --invalidate=always what answers carry. */
#define SRV_SERVICE_REQ 0
#define SRV_SERVICE_RSP sizeof(struct rtrs_msg_info_req)

/* Map and register on the device of @conn.  Control thread.  0 or -errno; nothing is held then, and
 * srv_chunk_error() can be called. */
int srv_chunk_init(struct srv_chunks *c, struct srv *srv, struct fab_conn *conn);
/* @rc of what was made in this memory or beside it, in words: with the limit it has met and how to
 * raise it, where that can be the reason.  Returns @buf. */
const char *srv_chunk_error(const struct srv_chunks *c, int rc, char *buf, size_t len);
/* Connections gone, not attached.  Control thread. */
void srv_chunk_fini(struct srv_chunks *c);

/* Make the memory known to the rings of the path's connections where that is wanted, then call
 * @done on the control thread: from inside this call when there is nothing to do. */
void srv_chunk_attach(struct srv_chunks *c, void (*done)(struct srv_chunks *c));
/* The opposite, and to be called even when never attached.  No request may be in the storage. */
void srv_chunk_detach(struct srv_chunks *c, void (*done)(struct srv_chunks *c));

static inline uint8_t *srv_chunk(const struct srv_chunks *c, uint32_t buf_id)
{
	return c->base + (size_t)buf_id * c->geom->chunk_size;
}

static inline struct ibv_mr *srv_chunk_mr(const struct srv_chunks *c, uint32_t buf_id)
{
	return c->mrs[c->mr_each ? buf_id : 0];
}

/* The name of the chunk towards the fabric, and so the client. */
static inline uint64_t srv_chunk_iova(const struct srv_chunks *c, uint32_t buf_id)
{
	return c->iova + (uint64_t)buf_id * c->geom->chunk_size;
}

/* Does each answer tell the next key of its chunk?  Else the keys that were told at first stay. */
static inline bool srv_chunk_new_keys(const struct srv_chunks *c)
{
	return c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode != FRWR_SUSPEND;
}

/* Does a device bind the chunks' keys in its own time, and not in the post? */
static inline bool srv_chunk_late_keys(const struct srv_chunks *c)
{
	return c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_MW1 && c->pinned;
}

#endif
