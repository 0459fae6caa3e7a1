/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of connections: pieces for the data of requests, and buffers for the output of handshakes.
 *
 * The sum of the pieces has a limit.  Pieces come in powers of two.
 *
 * A pool keeps the pieces that come back, so that the steady state allocates no piece.  A piece has
 * zeroes, or bytes of an earlier user of the same pool: the owners of two pools see nothing of each
 * other, and nothing else of the process.  One thread. */
#ifndef NBD_MEM_H
#define NBD_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

#define NBD_MEM_MIN 12			/* log2 of the smallest piece, and of all alignments */
#define NBD_MEM_MAX 26			/* of the largest: 64 MiB, one READ */
#define NBD_MEM_CLASSES (NBD_MEM_MAX - NBD_MEM_MIN + 1)

struct nbd_mem {
	size_t limit;			/* bytes */
	size_t used, kept;		/* bytes of pieces in use, and of pools */
	struct list pools;		/* struct nbd_pool.link: those that keep pieces */
};

struct nbd_pool {
	struct nbd_mem *mem;
	struct list link;
	size_t kept;			/* bytes */
	enum { NBD_POOL_RESTS, NBD_POOL_WORKS } state;	/* since the last nbd_mem_trim() */
	struct list free[NBD_MEM_CLASSES];	/* struct nbd_piece.link */
};

/* The head of a piece that is kept. */
struct nbd_piece {
	struct list link;
};

/* Begin without pools; @limit in bytes. */
void nbd_mem_init(struct nbd_mem *mem, size_t limit);
/* End.  No pool has a piece, and no piece is in use. */
void nbd_mem_fini(struct nbd_mem *mem);
/* Have all pools together at most @limit bytes: pieces that are kept go now, and those in use
 * beyond the limit as they come back. */
void nbd_mem_set_limit(struct nbd_mem *mem, size_t limit);
/* Free the pieces of pools that had no request since the last call. */
void nbd_mem_trim(struct nbd_mem *mem);
/* Begin without pieces. */
void nbd_mem_pool_init(struct nbd_pool *pool, struct nbd_mem *mem);
/* Free the pieces.  All pieces are back. */
void nbd_mem_pool_fini(struct nbd_pool *pool);
/* The bytes of a piece for @len bytes, at most 64 MiB. */
size_t nbd_mem_size(size_t len);
/* Take a piece for @len bytes; NULL: the limit is reached, or no memory. */
void *nbd_mem_get(struct nbd_pool *pool, size_t len);
/* The same, whatever the limit; NULL: no memory. */
void *nbd_mem_get_beyond(struct nbd_pool *pool, size_t len);
/* Give back a piece to the pool that it comes from, with the @len of its nbd_mem_get(). */
void nbd_mem_put(struct nbd_pool *pool, void *piece, size_t len);

/* ---- buffers that grow up to a limit ---- */

#define NBD_BUF_MAX (4u << 20)		/* a list of 10000 exports is 2.8 MB */

struct nbd_buf {			/* all 0: empty */
	uint8_t *mem;
	size_t len, room;
	int error;			/* -ENOMEM, and for ever: some bytes did not fit */
};

/* Append @len bytes.  A failure stays in @buf->error. */
void nbd_buf_add(struct nbd_buf *buf, const void *bytes, size_t len);
/* Free the memory; @buf is empty. */
void nbd_buf_fini(struct nbd_buf *buf);

#endif
