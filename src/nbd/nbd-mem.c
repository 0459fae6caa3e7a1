/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the free pieces.  A new piece that would pass the limit drives kept pieces out, the largest
 * first. */
#include <assert.h>
#include <stdlib.h>

#include "nbd-mem.h"

static unsigned class_of(size_t len)
{
	unsigned bits = ceil_log2(len);

	assert(bits <= NBD_MEM_MAX);
	return bits <= NBD_MEM_MIN ? 0 : bits - NBD_MEM_MIN;
}

static size_t class_size(unsigned class)
{
	return (size_t)1 << (class + NBD_MEM_MIN);
}

size_t nbd_mem_size(size_t len)
{
	return class_size(class_of(len));
}

void nbd_mem_init(struct nbd_mem *mem, size_t limit)
{
	*mem = (struct nbd_mem){ .limit = limit };
	for (unsigned i = 0; i < NBD_MEM_CLASSES; i++)
		list_init(&mem->free[i]);
}

/* Free kept pieces until @size bytes more are within the limit.  False: even then too many. */
static bool mem_make_room(struct nbd_mem *mem, size_t size)
{
	for (unsigned class = NBD_MEM_CLASSES; class--;) {
		while (mem->used + mem->kept + size > mem->limit &&
		       !list_empty(&mem->free[class])) {
			free(list_pop_entry(&mem->free[class], struct nbd_piece, link));
			mem->kept -= class_size(class);
		}
	}
	return mem->used + mem->kept + size <= mem->limit;
}

void nbd_mem_fini(struct nbd_mem *mem)
{
	assert(!mem->used);
	mem->limit = 0;
	mem_make_room(mem, 0);
}

void *nbd_mem_get(struct nbd_mem *mem, size_t len)
{
	unsigned class = class_of(len);
	size_t size = class_size(class);
	void *piece = list_pop_entry(&mem->free[class], struct nbd_piece, link);

	if (piece)
		mem->kept -= size;
	else if (mem_make_room(mem, size))
		piece = aligned_alloc((size_t)1 << NBD_MEM_MIN, size);
	if (piece)
		mem->used += size;
	return piece;
}

void nbd_mem_put(struct nbd_mem *mem, void *piece, size_t len)
{
	unsigned class = class_of(len);
	struct nbd_piece *p = piece;

	mem->used -= class_size(class);
	mem->kept += class_size(class);
	list_init(&p->link);
	list_add_head(&mem->free[class], &p->link);
}
