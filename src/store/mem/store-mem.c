/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as an export, "NAME=mem:SIZE": a disk of zeroes that goes with its server, for trying and
 * measuring without a disk.  Nothing survives, so a FLUSH has nothing to do, and the export is a
 * disk of its own each time: a client that comes back to another one takes it for another disk.
 *
 * Everything is done when it is asked for, on the thread of the reactor, and told in the next pass.
 * Requests of two rings for the same bytes meet as they do on a disk. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "export.h"
#include "number.h"
#include "store-driver.h"
#include "util.h"

#define PREFIX "mem:"
#define PAGE 4096u

struct store_mem {
	struct export ex;
	uint8_t *base;			/* export_size() bytes; MAP_FAILED: not mapped */
};

static inline struct store_mem *store_mem(const struct export *ex)
{
	return container_of(ex, struct store_mem, ex);
}

/* ---- the export ---- */

static struct export *mem_create(void)
{
	struct store_mem *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base = MAP_FAILED;
	return &m->ex;
}

/* The size that the target @path says, in bytes; 0: none that can be exported. */
static uint64_t mem_size(const char *path)
{
	uint64_t size;

	if (!size_parse(path + strlen(PREFIX), &size) || size % RNBD_SECTOR_SIZE)
		return 0;
	return size > SIZE_MAX / 2 ? 0 : size;
}

static int mem_check(const struct export_spec *spec, char *err, size_t errlen)
{
	if (mem_size(spec->path))
		return 0;
	snprintf(err, errlen,
		 "export '%s': '%s': expected " PREFIX "SIZE, a multiple of 512 bytes, "
		 "optionally with " SIZE_UNITS, spec->name, spec->path);
	return -EINVAL;
}

/* Another one for each export that is opened. */
static void mem_learn_ids(struct export *ex)
{
	uint64_t number[2];

	random_bytes(number, sizeof(number));
	ex->id.len = (uint8_t)snprintf(ex->id.bytes, sizeof(ex->id.bytes), "mem-%016llx",
				       (unsigned long long)number[0]);
	ex->ident = number[1];
}

static void mem_learn_geometry(struct export *ex)
{
	struct rnbd_dev_info *g = &ex->geometry;

	export_geometry_init(ex);
	g->max_discard_sectors = g->max_write_zeroes_sectors;
	g->discard_granularity = PAGE;
	g->physical_block_size = PAGE;
}

static int mem_open(struct export *ex, char *err, size_t errlen)
{
	uint64_t size = mem_size(ex->path);
	struct store_mem *m = store_mem(ex);

	m->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->base == MAP_FAILED) {
		snprintf(err, errlen, "export '%s': '%s': not enough memory: %s",
			 ex->name, ex->path, strerror(errno));
		return -errno;
	}
	ex->kind = "mem";
	ex->kind_text = "memory";
	mem_learn_ids(ex);
	mem_learn_geometry(ex);
	atomic_store(&ex->size, size);
	return 0;
}

static void mem_close(struct export *ex)
{
	struct store_mem *m = store_mem(ex);

	if (m->base != MAP_FAILED)
		munmap(m->base, export_size(ex));
	free(m);
}

extern const struct store_driver store_mem_driver;
const struct store_driver store_mem_driver = {
	.prefix = PREFIX,
	.alone = "memory cannot be shared by two servers",
	.create = mem_create,
	.check = mem_check,
	.open = mem_open,
	.close = mem_close,
};

/* ---- IO ---- */

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
	export_io_all_data(io);
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
	.size = mem_size_now,
};
