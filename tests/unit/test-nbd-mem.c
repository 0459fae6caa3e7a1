/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the NBD engine: which bytes a piece comes with, and how much there is. */
#include <errno.h>
#include <sys/mman.h>

#include "nbd-mem.h"
#include "unit.h"

#define LIMIT (1u << 20)

static struct nbd_mem mem;
static struct nbd_pool pools[2];

static void mem_begin(void)
{
	nbd_mem_init(&mem, LIMIT);
	for (unsigned i = 0; i < ARRAY_SIZE(pools); i++)
		nbd_mem_pool_init(&pools[i], &mem);
}

static void mem_end(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(pools); i++)
		nbd_mem_pool_fini(&pools[i]);
	nbd_mem_fini(&mem);
}

TestSuite(nbd_mem, .init = mem_begin, .fini = mem_end);

static uint8_t *take(unsigned pool, size_t len)
{
	uint8_t *piece = nbd_mem_get(&pools[pool], len);

	cr_assert_not_null(piece);
	return piece;
}

/* Take a piece, fill it, and give it back. */
static void soil(unsigned pool, size_t len)
{
	uint8_t *piece = take(pool, len);

	memset(piece, 0xa5, nbd_mem_size(len));
	nbd_mem_put(&pools[pool], piece, len);
}

static void expect_clean(const uint8_t *piece, size_t len)
{
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(piece[i], 0, "byte %zu is %02x", i, piece[i]);
}

/* The other pool's piece, and memory that the heap gave out before. */
Test(nbd_mem, nothing_of_others)
{
	static const size_t lens[] = { 1, 4096, 5000, 100000 };

	for_each_case(len, lens) {
		uint8_t *piece;

		soil(0, *len);
		piece = take(1, *len);
		expect_clean(piece, nbd_mem_size(*len));
		nbd_mem_put(&pools[1], piece, *len);
		nbd_mem_pool_fini(&pools[0]);
		nbd_mem_pool_fini(&pools[1]);
		piece = take(1, *len);
		expect_clean(piece, nbd_mem_size(*len));
		nbd_mem_put(&pools[1], piece, *len);
		nbd_mem_pool_fini(&pools[1]);
	}
}

/* A piece comes back to its pool, without the list that it was on. */
Test(nbd_mem, own_piece)
{
	uint8_t *first = take(0, 4096), *again;

	memset(first, 0xa5, 4096);
	nbd_mem_put(&pools[0], first, 4096);
	again = take(0, 4000);
	cr_assert_eq(again, first, "a piece of the same size is used again");
	expect_clean(again, sizeof(struct nbd_piece));
	nbd_mem_put(&pools[0], again, 4000);
}

Test(nbd_mem, limit)
{
	uint8_t *half = take(0, LIMIT / 2), *small = take(1, 4096);

	cr_assert_null(nbd_mem_get(&pools[1], LIMIT / 2), "4 KiB more than the limit");
	nbd_mem_put(&pools[1], small, 4096);
	small = take(1, LIMIT / 2);
	cr_assert_eq(mem.kept, 0, "the kept piece made room");
	nbd_mem_put(&pools[1], small, LIMIT / 2);
	nbd_mem_put(&pools[0], half, LIMIT / 2);
	cr_assert_eq(mem.kept, LIMIT);
	nbd_mem_put(&pools[0], take(0, LIMIT), LIMIT);
	cr_assert_eq(mem.kept, LIMIT, "both pools gave way");
	cr_assert_eq(pools[1].kept, 0);
}

/* Kept pieces go at once, those in use as they come back; and more is there at once. */
Test(nbd_mem, another_limit)
{
	uint8_t *half = take(0, LIMIT / 2);

	soil(1, LIMIT / 4);
	nbd_mem_set_limit(&mem, LIMIT / 4);
	cr_assert_eq(mem.kept, 0);
	cr_assert_null(nbd_mem_get(&pools[1], 4096));
	nbd_mem_put(&pools[0], half, LIMIT / 2);
	cr_assert_eq(mem.used + mem.kept, 0, "%zu bytes are left", mem.used + mem.kept);
	soil(1, LIMIT / 4);
	cr_assert_eq(mem.kept, LIMIT / 4);
	cr_assert_null(nbd_mem_get(&pools[0], LIMIT / 2));
	nbd_mem_set_limit(&mem, LIMIT);
	nbd_mem_put(&pools[0], take(0, LIMIT / 2), LIMIT / 2);
}

/* A piece that was used since the last look stays until the next look. */
Test(nbd_mem, trim)
{
	soil(0, 4096);
	soil(1, 8192);
	nbd_mem_trim(&mem);
	cr_assert_eq(mem.kept, 4096 + 8192);
	soil(1, 8192);
	nbd_mem_trim(&mem);
	cr_assert_eq(mem.kept, 8192, "pool 0 has rested");
	nbd_mem_trim(&mem);
	cr_assert_eq(mem.kept, 0);
}

/* Is memory of the process at @piece? */
static bool is_mapped(void *piece)
{
	unsigned char there;

	return mincore(piece, 1, &there) == 0 || errno != ENOMEM;
}

/* Large pieces go back to the kernel, which no tool for leaks of the heap sees. */
Test(nbd_mem, large_goes_back)
{
	static const size_t lens[] = { 128 << 10, 1 << 20 };

	for_each_case(len, lens) {
		uint8_t *piece = take(0, *len);

		nbd_mem_put(&pools[0], piece, *len);
		cr_assert(is_mapped(piece), "%zu bytes are kept", *len);
		nbd_mem_pool_fini(&pools[0]);
		cr_assert_not(is_mapped(piece), "%zu bytes are freed", *len);
	}
}
