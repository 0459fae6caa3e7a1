/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of requests, as the device of a path reaches it (doc/decisions.md D7).  One of two ways, for all
 * requests of a path:
 *
 * direct	The device has a local_dma_lkey and rereg_mr (tcp): the caller's buffer is used itself,
 *		under a key that lives as long as the request: that of the slot's region, or of its
 *		window (clt-key.h).  Windows are bound to one region that is all there is, and opens
 *		nothing itself.
 * bounce	It has not (verbs), or registration=static.  The caller's buffer may move or be given
 *		back while a registration stands, and then data is lost without a word; so each slot has a
 *		piece of an arena that is registered as long as the connections live, and data is copied
 *		on the request's own thread.  A READ's key, the region's or its window's, opens its own
 *		slot's piece and nothing else.
 *
 * The arena belongs to the session, because slots do; regions belong to one attempt of a path,
 * because the next one may find another device, and a server that is gone should keep no key. */
#ifndef CLT_MEM_H
#define CLT_MEM_H

#include "clt-slot.h"

/* Slots of a session with an arena: what it costs is locked memory. */
#define CLT_ARENA_SLOTS 128

struct clt_arena {
	uint8_t *mem;			/* NULL: none */
	size_t room;			/* bytes of a slot */
	unsigned n;
};

struct clt_path;

/* Regions for all slots of @path's session, and its arena when it needs one and has none.  Service
 * thread, not up.  0, or -errno after clt_path_fail() with what to do about it. */
int clt_mem_attach(struct clt_path *path);
/* No connection of @path is left.  Service thread; idempotent. */
void clt_mem_detach(struct clt_path *path);
/* Fail @path because memory could not be registered, with what to do about it. */
void clt_mem_fail(struct clt_path *path, int err);
void clt_mem_arena_fini(struct clt_arena *arena);

/* @slot is about to be queued on @path: copies a WRITE's data.  Owner. */
void clt_mem_fill(struct clt_slot *slot, struct clt_path *path);
/* @slot was answered with success: copies a READ's data.  Owner. */
void clt_mem_fetch(struct clt_slot *slot, struct clt_path *path);

/* Make @slot's part of the buffer reachable over @path: fills @data for a WRITE, @req's descriptor for a
 * READ.  With windows clt_key_chain() is to follow.  Under the send lock of its connection.  0 or
 * -errno. */
int clt_mem_map(struct clt_slot *slot, struct clt_path *path, struct ibv_sge *data,
		struct rtrs_req *req);
/* No peer reaches the caller's buffer any more when this returns.  Owner, not in flight; idempotent. */
void clt_mem_unmap(struct clt_slot *slot, struct clt_path *path);
/* Local key of @slot->hdr.  Under the send lock. */
uint32_t clt_mem_hdr_lkey(const struct clt_slot *slot, const struct clt_path *path);

#endif
