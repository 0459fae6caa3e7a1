/* SPDX-License-Identifier: BSD-3-Clause */
/* IO of memory: everything is done when it is asked for, on the thread of the reactor, and told in
 * the next pass.  Owns nothing.  Requests of two rings for the same bytes meet as they do on a
 * disk. */
#include <config.h>

#include <string.h>
#include <sys/mman.h>

#include "rnbd-ext.h"
#include "store-driver.h"
#include "store-mem.h"
#include "util.h"

#define PAGE 4096u

static uint8_t *mem_at(const struct export_io *io)
{
	return store_mem(io->ex)->base + io->offset;
}

static void mem_rw(struct export_io *io)
{
	if (io->op == RNBD_OP_READ)
		memcpy(io->buf, mem_at(io), io->len);
	else
		memcpy(mem_at(io), io->buf, io->len);
	export_io_next_later(io, 0);
}

/* Whole pages go back to the machine, and are zeroes; the rest of @io is written. */
static void mem_zero(struct export_io *io)
{
	uint8_t *begin = mem_at(io), *end = begin + io->len;
	uint8_t *first = (uint8_t *)align_up((uintptr_t)begin, PAGE);
	uint8_t *last = (uint8_t *)align_down((uintptr_t)end, PAGE);
	bool keep = io->op == RNBD_OP_WRITE_ZEROES && (io->flags & RNBD_F_NOUNMAP);

	if (keep || first >= last || madvise(first, (size_t)(last - first), MADV_DONTNEED)) {
		memset(begin, 0, io->len);
	} else {
		memset(begin, 0, (size_t)(first - begin));
		memset(last, 0, (size_t)(end - last));
	}
	export_io_next_later(io, 0);
}

/* All of it is data: which pages were never written the kernel does not say. */
static void mem_extents(struct export_io *io)
{
	struct rnbd_extents_writer w;

	rnbd_extents_begin(&w, io->buf, io->room);
	rnbd_extents_add(&w, io->len, 0);
	rnbd_extents_end(&w);
	export_io_next_later(io, 0);
}

static void mem_sync(struct export_io *io)
{
	export_io_next_later(io, 0);
}

static bool mem_takes_at_once(const struct export_io *io)
{
	return true;
}

/* No sync fails, so no error is latched. */
static void mem_reopen(struct reactor *r, struct export *ex, void (*done)(void *arg), void *arg)
{
	ex->store->reopen = EXPORT_REOPEN_DONE;
	done(arg);
}

static bool mem_size_now(struct reactor *r, struct export *ex, int64_t *size,
			 void (*done)(struct export *ex, int64_t size, void *arg), void *arg)
{
	*size = (int64_t)export_size(ex);
	return true;
}

extern const struct store_io_ops store_mem_io_ops;
const struct store_io_ops store_mem_io_ops = {
	.rw = mem_rw,
	.zero = mem_zero,
	.extents = mem_extents,
	.sync = mem_sync,
	.takes_at_once = mem_takes_at_once,
	.reopen = mem_reopen,
	.size = mem_size_now,
};
