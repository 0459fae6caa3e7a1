/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory of an export, from open to close.  Each refusal is one line with the export's
 * name, what it was given, and what is expected. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "number.h"
#include "store-mem.h"

#define PREFIX "mem:"
#define PAGE 4096u
/* A range in a request is 32 bits of bytes. */
#define MAX_RANGE_SECTORS (UINT32_MAX >> RNBD_SECTOR_SHIFT)

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
	ex->geometry = (struct rnbd_dev_info){
		.max_hw_sectors = MAX_RANGE_SECTORS,
		.max_segments = UINT16_MAX,
		.max_write_zeroes_sectors = ex->spec.readonly ? 0 : MAX_RANGE_SECTORS,
		.max_discard_sectors = ex->spec.readonly ? 0 : MAX_RANGE_SECTORS,
		.discard_granularity = PAGE,
		.physical_block_size = PAGE,
		.logical_block_size = RNBD_SECTOR_SIZE,
		.fua = true,
	};
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
