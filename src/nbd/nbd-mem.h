/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for the data of requests, with a limit for the sum.  Pieces come in powers of two, and a
 * piece that comes back is kept, so that the steady state allocates no piece.  One thread. */
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
	size_t used, kept;		/* bytes of pieces in use, and on the lists */
	struct list free[NBD_MEM_CLASSES];	/* struct nbd_piece.link */
};

/* The head of a piece on a list. */
struct nbd_piece {
	struct list link;
};

/* Begin without pieces; @limit in bytes. */
void nbd_mem_init(struct nbd_mem *mem, size_t limit);
/* Free the kept pieces.  All pieces are back. */
void nbd_mem_fini(struct nbd_mem *mem);
/* The bytes of a piece for @len bytes, at most 64 MiB. */
size_t nbd_mem_size(size_t len);
/* Take a piece for @len bytes; NULL: the limit is reached, or no memory. */
void *nbd_mem_get(struct nbd_mem *mem, size_t len);
/* Give back a piece, with the @len of its nbd_mem_get(). */
void nbd_mem_put(struct nbd_mem *mem, void *piece, size_t len);

#endif
