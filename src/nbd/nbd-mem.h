/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for the data of requests, with a limit for all of it.  Pieces come in powers of two and
 * are kept when they come back, so that in the steady state none is allocated.  One thread. */
#ifndef NBD_MEM_H
#define NBD_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "list.h"

#define NBD_MEM_MIN 12			/* log2 of the smallest piece, and of all alignments */
#define NBD_MEM_MAX 26			/* of the largest: 64 MiB, one READ */
#define NBD_MEM_CLASSES (NBD_MEM_MAX - NBD_MEM_MIN + 1)

struct nbd_mem {
	size_t limit;			/* bytes */
	size_t used, kept;		/* bytes that are out, and that are on the lists */
	struct list free[NBD_MEM_CLASSES];	/* struct nbd_piece.link */
};

/* Written into a piece while that is on a list. */
struct nbd_piece {
	struct list link;
};

void nbd_mem_init(struct nbd_mem *mem, size_t limit);
/* All pieces are back. */
void nbd_mem_fini(struct nbd_mem *mem);
/* The bytes that a piece for @len bytes, at most 64 MiB, has. */
size_t nbd_mem_size(size_t len);
/* A piece for @len bytes; NULL: the limit is reached, or there is no memory. */
void *nbd_mem_get(struct nbd_mem *mem, size_t len);
/* Give back the piece that was got for @len bytes. */
void nbd_mem_put(struct nbd_mem *mem, void *piece, size_t len);

#endif
