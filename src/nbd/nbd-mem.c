/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the kept pieces.  A new piece that would pass the limit drives kept pieces out, the largest
 * of one pool first, then of the next. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nbd-mem.h"
#include "util.h"

#define MAP_LEAST (128u << 10)		/* bytes of a piece that the kernel makes, with zeroes */

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
	list_init(&mem->pools);
}

void nbd_mem_fini(struct nbd_mem *mem)
{
	assert(!mem->used && !mem->kept);
}

/* ---- memory of the process ---- */

/* Make a piece without the bytes that the memory had before. */
static void *piece_make(size_t size)
{
	void *piece;

	if (size >= MAP_LEAST) {
		piece = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return piece == MAP_FAILED ? NULL : piece;
	}
	piece = aligned_alloc((size_t)1 << NBD_MEM_MIN, size);
	return piece ? memset(piece, 0, size) : NULL;
}

static void piece_free(void *piece, size_t size)
{
	if (size >= MAP_LEAST)
		munmap(piece, size);
	else
		free(piece);
}

/* ---- pools ---- */

void nbd_mem_pool_init(struct nbd_pool *pool, struct nbd_mem *mem)
{
	*pool = (struct nbd_pool){ .mem = mem };
	list_init(&pool->link);
	for (unsigned i = 0; i < NBD_MEM_CLASSES; i++)
		list_init(&pool->free[i]);
}

static void pool_count(struct nbd_pool *pool, size_t kept)
{
	pool->mem->kept += kept - pool->kept;
	pool->kept = kept;
	if (!kept)
		list_del(&pool->link);
	else if (list_empty(&pool->link))
		list_add_tail(&pool->mem->pools, &pool->link);
}

/* Take a kept piece of @class; NULL: none. */
static void *pool_take(struct nbd_pool *pool, unsigned class)
{
	void *piece = list_pop_entry(&pool->free[class], struct nbd_piece, link);

	if (piece) {
		memset(piece, 0, sizeof(struct nbd_piece));
		pool_count(pool, pool->kept - class_size(class));
	}
	return piece;
}

static void pool_free_largest(struct nbd_pool *pool)
{
	unsigned class = NBD_MEM_CLASSES - 1;

	while (list_empty(&pool->free[class]))
		class--;
	piece_free(pool_take(pool, class), class_size(class));
}

void nbd_mem_pool_fini(struct nbd_pool *pool)
{
	while (pool->kept)
		pool_free_largest(pool);
}

void nbd_mem_trim(struct nbd_mem *mem)
{
	struct nbd_pool *pool, *next;

	list_for_each_safe(pool, next, &mem->pools, link) {
		if (pool->state == NBD_POOL_RESTS)
			nbd_mem_pool_fini(pool);
		pool->state = NBD_POOL_RESTS;
	}
}

/* ---- pieces ---- */

enum mem_bound { WITHIN_LIMIT, BEYOND_LIMIT };

/* Free kept pieces until @size bytes more are within the limit.  False: even then too many. */
static bool mem_make_room(struct nbd_mem *mem, size_t size)
{
	while (mem->used + mem->kept + size > mem->limit && !list_empty(&mem->pools))
		pool_free_largest(list_entry(mem->pools.next, struct nbd_pool, link));
	return mem->used + mem->kept + size <= mem->limit;
}

void nbd_mem_set_limit(struct nbd_mem *mem, size_t limit)
{
	mem->limit = limit;
	mem_make_room(mem, 0);
}

static void *mem_get(struct nbd_pool *pool, size_t len, enum mem_bound bound)
{
	unsigned class = class_of(len);
	size_t size = class_size(class);
	void *piece = pool_take(pool, class);

	pool->state = NBD_POOL_WORKS;
	if (!piece && (mem_make_room(pool->mem, size) || bound == BEYOND_LIMIT))
		piece = piece_make(size);
	if (piece)
		pool->mem->used += size;
	return piece;
}

void *nbd_mem_get(struct nbd_pool *pool, size_t len)
{
	return mem_get(pool, len, WITHIN_LIMIT);
}

void *nbd_mem_get_beyond(struct nbd_pool *pool, size_t len)
{
	return mem_get(pool, len, BEYOND_LIMIT);
}

void nbd_mem_put(struct nbd_pool *pool, void *piece, size_t len)
{
	unsigned class = class_of(len);
	struct nbd_piece *p = piece;

	pool->mem->used -= class_size(class);
	list_init(&p->link);
	list_add_head(&pool->free[class], &p->link);
	pool_count(pool, pool->kept + class_size(class));
	mem_make_room(pool->mem, 0);
}

/* ---- buffers ---- */

static bool buf_grow(struct nbd_buf *buf, size_t len)
{
	size_t room = MAX(buf->room, (size_t)512);
	uint8_t *mem;

	while (room < len)
		room *= 2;
	mem = len <= NBD_BUF_MAX ? realloc(buf->mem, room) : NULL;
	if (!mem)
		return false;
	buf->mem = mem;
	buf->room = room;
	return true;
}

void nbd_buf_add(struct nbd_buf *buf, const void *bytes, size_t len)
{
	if (!len || buf->error)
		return;
	if (buf->len + len > buf->room && !buf_grow(buf, buf->len + len)) {
		buf->error = -ENOMEM;
		return;
	}
	memcpy(buf->mem + buf->len, bytes, len);
	buf->len += len;
}

void nbd_buf_fini(struct nbd_buf *buf)
{
	free(buf->mem);
	*buf = (struct nbd_buf){ 0 };
}
