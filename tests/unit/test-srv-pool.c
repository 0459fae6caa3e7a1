/* SPDX-License-Identifier: BSD-3-Clause */
/* Private buffers of a thread: slabs, order of waiting, the shares of exports. */
#include "unit.h"

#include <errno.h>

#include "export-ring.h"
#include "srv-pool.h"

#define SIZE 5000		/* rounded up to pages */
#define STRIDE 8192
#define LARGE (300 * 1024)	/* three of them are a slab, and the last slab is one */
#define HUGE (64 << 20)
#define SHARES 3
#define ALONE (SRV_POOL_BUFS / 4 * 3)	/* what an export may hold alone */

static struct srv_pool pool;
static unsigned slabs;
static size_t pinned;
static int mem_result;

/* The storage that the pool makes its slabs known to. */
int export_ring_mem_add(struct reactor *r, void *addr, size_t len)
{
	cr_assert(len <= SRV_POOL_SLAB_LEN || len == pool.stride);
	cr_assert_eq((uint8_t *)addr, pool.base + pinned);
	pinned += len;
	cr_assert(pinned <= pool.len);
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

static struct srv_buf *get_for(unsigned share, unsigned i)
{
	waiters[i].wait.fn = got_buffer;
	return srv_pool_get(&pool, share, &waiters[i].wait);
}

static struct srv_buf *get(unsigned i)
{
	return get_for(0, i);
}

/* As many as @share may have; the next one waits as number @i. */
static unsigned take_all(unsigned share, unsigned i, struct srv_buf **bufs)
{
	unsigned n = 0;

	while ((bufs[n] = get_for(share, i)))
		n++;
	return n;
}

static void pool_init(size_t size, unsigned nshares)
{
	cr_assert_eq(srv_pool_init(&pool, NULL, size), 0);
	for (unsigned i = 0; i < nshares; i++)
		cr_assert_eq(srv_pool_share_add(&pool, i), 0);
}

static void setup(void)
{
	pool_init(SIZE, SHARES);
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
	for (unsigned i = 0; i < ALONE; i++) {
		bufs[i] = get(0);
		cr_assert_not_null(bufs[i]);
		memset(bufs[i]->addr, (int)i, SIZE);
		cr_assert_eq(slabs, i * STRIDE / SRV_POOL_SLAB_LEN + 1);
	}
	for (unsigned i = 0; i < ALONE; i++) {
		cr_assert_eq(((uint8_t *)bufs[i]->addr)[SIZE - 1], i, "buffers overlap");
		srv_pool_put(bufs[i]);
	}
}

/* Registering a buffer pins it, used or not: one request of 4K must not cost eight of 64M. */
Test(srv_pool, no_more_is_pinned_than_a_slab)
{
	struct srv_buf *buf;

	srv_pool_fini(&pool);
	pool_init(HUGE, SHARES);
	buf = get(0);
	cr_assert_eq(pinned, HUGE);
	srv_pool_put(buf);
}

Test(srv_pool, slabs_that_do_not_divide_the_pool)
{
	struct srv_buf *bufs[SHARES][SRV_POOL_BUFS];
	unsigned n[SHARES];

	srv_pool_fini(&pool);
	pool_init(LARGE, SHARES);
	for (unsigned s = 0; s < SHARES; s++)
		n[s] = take_all(s, s, bufs[s]);
	cr_assert_eq(n[0] + n[1] + n[2], SRV_POOL_BUFS - 1);
	cr_assert_eq(slabs, SRV_POOL_BUFS / 3);
	for (unsigned s = 0; s < SHARES; s++)
		waiters[s].put_at_once = true;
	for (unsigned s = 0; s < SHARES; s++) {
		for (unsigned i = 0; i < n[s]; i++)
			srv_pool_put(bufs[s][i]);
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

Test(srv_pool, who_is_late_waits_in_order)
{
	struct srv_buf *bufs[SRV_POOL_BUFS];

	for (unsigned i = 0; i < ALONE; i++)
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
	for (unsigned i = 2; i < ALONE; i++)
		srv_pool_put(bufs[i]);
}

/* Storage that stops keeps what its export holds; the others go on. */
Test(srv_pool, an_export_that_is_stuck_leaves_some_to_others)
{
	struct srv_buf *stuck[SRV_POOL_BUFS], *stuck2[SRV_POOL_BUFS], *buf;
	unsigned n, n2;

	n = take_all(0, 0, stuck);
	cr_assert_eq(n, ALONE);
	n2 = take_all(1, 1, stuck2);
	cr_assert_gt(n2, 0);
	cr_assert_null(get_for(0, 2));
	/* one that works needs no more than one at a time */
	for (unsigned i = 0; i < 100; i++) {
		buf = get_for(2, 3);
		cr_assert_not_null(buf);
		srv_pool_put(buf);
	}
	cr_assert_eq(norder, 0, "who is beyond its share goes on waiting");
	for (unsigned i = 0; i < 3; i++)
		waiters[i].put_at_once = true;
	for (unsigned i = 0; i < n2; i++)
		srv_pool_put(stuck2[i]);
	for (unsigned i = 0; i < n; i++)
		srv_pool_put(stuck[i]);
	cr_assert_eq(norder, 3);
}

/* As many as there is one kept for, and whatever the order in which they come. */
Test(srv_pool, many_exports_that_are_stuck_leave_one_to_each_other)
{
	static struct srv_buf *stuck[SRV_POOL_KEPT][SRV_POOL_BUFS + 1];
	unsigned n[SRV_POOL_KEPT];

	for (unsigned nshares = 2; nshares <= SRV_POOL_KEPT + 1; nshares++) {
		teardown();
		pool_init(SIZE, nshares);
		pinned = norder = 0;
		for (unsigned i = 0; i < nshares - 1; i++) {
			n[i] = take_all(i, i, stuck[i]);
			cr_assert_gt(n[i], 0, "export %u of %u", i, nshares);
			waiters[i].put_at_once = true;
		}
		cr_assert_eq(n[0], ALONE);
		for (unsigned i = 0; i < 100; i++) {
			struct srv_buf *buf = get_for(nshares - 1, nshares);

			cr_assert_not_null(buf, "%u exports", nshares);
			srv_pool_put(buf);
		}
		for (unsigned i = 0; i < nshares - 1; i++) {
			while (n[i])
				srv_pool_put(stuck[i][--n[i]]);
		}
		cr_assert_eq(norder, nshares - 1);
	}
}

Test(srv_pool, exports_take_turns)
{
	struct srv_buf *bufs[SHARES][SRV_POOL_BUFS], *last;
	unsigned n = 0, even;

	while ((last = get_for(n % SHARES, 0))) {
		bufs[n % SHARES][n / SHARES] = last;
		n++;
	}
	even = n / SHARES;
	cr_assert_eq(n % SHARES, 1, "one of export 0 too many for the others");
	for (unsigned i = 1; i < 5; i++) {
		waiters[i].put_at_once = true;
		if (i > 1)			/* the loop above queued the first */
			cr_assert_null(get_for(1 + (i - 1) % 2, i));
	}
	waiters[0].put_at_once = true;
	srv_pool_put(bufs[0][even]);
	cr_assert_eq(norder, 4);
	cr_assert_eq(order[0], 0);
	for (unsigned i = 1; i < 4; i++)
		cr_assert_eq(order[i], i + 1);
	for (unsigned i = 0; i < even; i++) {
		for (unsigned s = 0; s < SHARES; s++)
			srv_pool_put(bufs[s][i]);
	}
}

/* An export that goes leaves no share behind that others would have to spare a buffer for. */
Test(srv_pool, shares_come_and_go)
{
	struct srv_buf *bufs[SRV_POOL_BUFS];
	unsigned before = take_all(0, 0, bufs), after;

	for (unsigned i = 0; i < before; i++)
		srv_pool_put(bufs[i]);
	while (norder)
		srv_pool_put(waiters[order[--norder]].got);
	for (unsigned i = SHARES; i < 10 * SHARES; i++)
		cr_assert_eq(srv_pool_share_add(&pool, i), 0);
	for (unsigned i = SHARES; i < 10 * SHARES; i++)
		srv_pool_share_del(&pool, i);
	cr_assert_eq(srv_pool_share_add(&pool, SHARES + 1), 0);
	srv_pool_share_del(&pool, SHARES + 1);
	after = take_all(0, 0, bufs);
	cr_assert_eq(after, before);
	for (unsigned i = 0; i < after; i++)
		srv_pool_put(bufs[i]);
	while (norder)
		srv_pool_put(waiters[order[--norder]].got);
}
