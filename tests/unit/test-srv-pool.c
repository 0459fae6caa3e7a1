/* SPDX-License-Identifier: BSD-3-Clause */
/* Private buffers of a thread: slabs, order of waiting, the readers' share. */
#include "unit.h"

#include <errno.h>

#include "export-io.h"
#include "srv-pool.h"

#define SIZE 5000		/* rounded up to pages */
#define STRIDE 8192

static struct srv_pool pool;
static unsigned slabs;
static int mem_result;

/* The storage that the pool makes its slabs known to. */
int export_io_mem_add(struct reactor *r, void *addr, size_t len)
{
	cr_assert_eq(len, SRV_POOL_SLAB * STRIDE);
	cr_assert_eq((uint8_t *)addr, pool.base + slabs * len);
	slabs++;
	return mem_result;
}

struct waiter {
	struct srv_pool_waiter wait;
	struct srv_buf *got;
	bool put_at_once;
};

static unsigned order[SRV_POOL_BUFS], norder;
static struct waiter waiters[SRV_POOL_BUFS];

static void got_buffer(struct srv_pool_waiter *w, struct srv_buf *buf)
{
	struct waiter *waiter = container_of(w, struct waiter, wait);

	order[norder++] = (unsigned)(waiter - waiters);
	waiter->got = buf;
	if (waiter->put_at_once)
		srv_pool_put(buf);
}

static struct srv_buf *get(unsigned i)
{
	waiters[i].wait.fn = got_buffer;
	return srv_pool_get_write(&pool, &waiters[i].wait);
}

static void setup(void)
{
	cr_assert_eq(srv_pool_init(&pool, NULL, SIZE), 0);
}

static void teardown(void)
{
	srv_pool_fini(&pool);	/* asserts that every buffer is back */
}

TestSuite(srv_pool, .init = setup, .fini = teardown);

Test(srv_pool, filled_in_slabs_as_needed)
{
	struct srv_buf *bufs[SRV_POOL_BUFS];

	cr_assert_eq(slabs, 0);
	for (unsigned i = 0; i < SRV_POOL_BUFS; i++) {
		bufs[i] = get(0);
		cr_assert_not_null(bufs[i]);
		memset(bufs[i]->addr, (int)i, SIZE);
		cr_assert_eq(slabs, i / SRV_POOL_SLAB + 1);
	}
	for (unsigned i = 0; i < SRV_POOL_BUFS; i++) {
		cr_assert_eq(((uint8_t *)bufs[i]->addr)[SIZE - 1], i, "buffers overlap");
		srv_pool_put(bufs[i]);
	}
}

Test(srv_pool, light_load_stays_on_one_buffer)
{
	struct srv_buf *first = get(0);

	for (unsigned i = 0; i < 100; i++) {
		srv_pool_put(first);
		cr_assert_eq(get(0), first);
	}
	srv_pool_put(first);
	cr_assert_eq(slabs, 1);
}

Test(srv_pool, memory_that_no_ring_takes_is_plain)
{
	struct srv_buf *buf;

	mem_result = -ENOMEM;
	buf = get(0);
	cr_assert_eq(buf->mem, -1);
	srv_pool_put(buf);
}

Test(srv_pool, writers_wait_in_order)
{
	struct srv_buf *bufs[SRV_POOL_BUFS];

	for (unsigned i = 0; i < SRV_POOL_BUFS; i++)
		bufs[i] = get(0);
	for (unsigned i = 0; i < 5; i++) {
		waiters[i].put_at_once = i == 1 || i == 2;
		cr_assert_null(get(i));
	}
	srv_pool_put(bufs[0]);			/* 0 takes it */
	cr_assert_eq(norder, 1);
	srv_pool_put(bufs[1]);			/* 1, 2 and 3, because 1 and 2 put it back */
	cr_assert_eq(norder, 4);
	cr_assert_eq(waiters[3].got, bufs[1]);
	srv_pool_put(waiters[3].got);
	srv_pool_put(waiters[0].got);
	srv_pool_put(waiters[4].got);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(order[i], i);
	for (unsigned i = 2; i < SRV_POOL_BUFS; i++)
		srv_pool_put(bufs[i]);
}

/* Readers' buffers are held until a peer has taken its answer: they must leave some to writers. */
Test(srv_pool, readers_have_a_share)
{
	struct srv_buf *bufs[SRV_POOL_BUFS / 2], *buf;

	for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++) {
		bufs[i] = srv_pool_get_read(&pool);
		cr_assert_not_null(bufs[i]);
	}
	cr_assert_null(srv_pool_get_read(&pool));
	buf = get(0);
	cr_assert_not_null(buf);
	srv_pool_put(buf);
	cr_assert_null(srv_pool_get_read(&pool), "a writer's buffer is not of the share");
	srv_pool_put(bufs[0]);
	bufs[0] = srv_pool_get_read(&pool);
	cr_assert_not_null(bufs[0]);
	for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
		srv_pool_put(bufs[i]);
}
