/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a path (doc/decisions.md D6): one mapping of queue_depth chunks for the client to
 * write into, and one for the messages other than requests.
 *
 * The chunks are the target of the fabric.  Each chunk is also a fixed buffer of the ring of every
 * thread with a connection of the path, if a device pins chunks anyway and the storage works on
 * chunks.  A ring takes orders from its own thread only: attaching and detaching go through the
 * threads' inboxes and end in a call on the control thread. */
#ifndef SRV_CHUNK_H
#define SRV_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "fabric.h"
#include "frwr.h"
#include "loop.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"

struct fab_conn;
struct srv;
struct srv_chunks;

struct srv_ring_mem {			/* one for each thread */
	struct srv_chunks *chunks;
	unsigned thread;
	bool used;			/* the thread has a connection of the path */
	int mem;			/* export-io's handle on the thread, or -1 */
	struct loop_msg attach_msg, detach_msg;
};

struct srv_chunks {
	struct srv *srv;
	const struct rtrs_geom *geom;
	struct fab_pd *pd;
	enum srv_invalidate invalidate;	/* on this path: chosen by srv_chunk_init() */
	enum frwr_mode key_mode;	/* always: the kind of object with a chunk's key */
	char refused[192];		/* why the wanted protection is impossible, or "" */
	struct frwr_pool *keys;		/* always: one window for each chunk, from set-up to
					 * drained */
	uint8_t *base, *service;
	size_t len, service_len;
	bool mr_each;			/* a region for each chunk */
	uint64_t iova;			/* of the first chunk; the others follow */
	struct ibv_mr **mrs;		/* [queue_depth] if mr_each, else [1] */
	struct ibv_mr *service_mr;
	struct rtrs_msg_rsp *rsps;	/* [queue_depth], in the service memory */
	struct rtrs_region *regions;	/* [nregions]: the content of INFO_RSP */
	unsigned nregions;
	bool pinned;			/* a device's: registering locks memory */
	struct srv_ring_mem *rings;
	unsigned pending;		/* threads without an answer yet */
	bool attached;
	void (*done)(struct srv_chunks *c);	/* when none is pending */
};

/* The service memory: INFO_REQ, INFO_RSP, and the messages of answers, with keys or digests. */
#define SRV_SERVICE_REQ 0
#define SRV_SERVICE_RSP sizeof(struct rtrs_msg_info_req)

/* Map and register the memory on the device of @conn.  Control thread.  0, or -errno with nothing
 * held; srv_chunk_error() can then be called. */
int srv_chunk_init(struct srv_chunks *c, struct srv *srv, struct fab_conn *conn);
/* Say in words what @rc means, an error of making this memory or objects beside the memory.  If a
 * limit can be the reason, names the limit and how to raise the limit.  Returns @buf. */
const char *srv_chunk_error(const struct srv_chunks *c, int rc, char *buf, size_t len);
/* Free the memory: the connections are gone, and the chunks are not attached.  Control thread. */
void srv_chunk_fini(struct srv_chunks *c);

/* Make the memory known to the rings of the path's connections, if wanted, then call @done on the
 * control thread: from inside this call if no ring has to learn the memory. */
void srv_chunk_attach(struct srv_chunks *c, void (*done)(struct srv_chunks *c));
/* Undo srv_chunk_attach(); call this for memory that was never attached, too.  No request may be
 * in the storage. */
void srv_chunk_detach(struct srv_chunks *c, void (*done)(struct srv_chunks *c));

/* The address of chunk @buf_id. */
static inline uint8_t *srv_chunk(const struct srv_chunks *c, uint32_t buf_id)
{
	return c->base + (size_t)buf_id * c->geom->chunk_size;
}

/* The region with chunk @buf_id. */
static inline struct ibv_mr *srv_chunk_mr(const struct srv_chunks *c, uint32_t buf_id)
{
	return c->mrs[c->mr_each ? buf_id : 0];
}

/* The name of the chunk towards the fabric, and so towards the client. */
static inline uint64_t srv_chunk_iova(const struct srv_chunks *c, uint32_t buf_id)
{
	return c->iova + (uint64_t)buf_id * c->geom->chunk_size;
}

/* True if each answer tells the next key of its chunk; false if the first keys stay. */
static inline bool srv_chunk_new_keys(const struct srv_chunks *c)
{
	return c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode != FRWR_SUSPEND;
}

/* True if a device binds the chunks' keys at a time of its own, and not in the post. */
static inline bool srv_chunk_late_keys(const struct srv_chunks *c)
{
	return c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_MW1 && c->pinned;
}

/* True if the pages of an idle chunk can be given back to the system (srv-trim.c): each chunk has a
 * key of its own that can be held, and nothing pins the chunks. */
static inline bool srv_chunk_gives_back(const struct srv_chunks *c)
{
	return c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_SUSPEND && !c->pinned;
}

/* The name of the protection of @c for people: "always" (each request has another key), "suspend"
 * (the key is closed while the server works on a request), "copy" or "never". */
const char *srv_chunk_protection(const struct srv_chunks *c);

/* Give the windows back, after all connections have drained, and before any is destroyed and the
 * regions go.  Control thread; idempotent. */
void srv_chunk_close_windows(struct srv_chunks *c, const char *name);

#endif
