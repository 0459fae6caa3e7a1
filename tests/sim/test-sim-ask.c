/* SPDX-License-Identifier: BSD-3-Clause */
/* What our client asks servers that have more than a kernel (doc/decisions.md D16): ours, one
 * without the feature, which is not asked, and one whose answers are garbage. */
#include <errno.h>
#include <string.h>

#include "dev.h"
#include "raw-srv.h"
#include "rnbd-ext.h"
#include "world.h"

static struct world *w;
static struct world_client *c;
static struct raw_srv srv;

static void start_client(void)
{
	c = world_client_opens(w, NULL);
	world_run_ms(w, 20);
}

/* Ours. */
static void start(void)
{
	w = world_serve(NULL);
	start_client();
}

/* One made by hand, which has @features and answers questions with @says. */
static void start_raw(uint32_t features, const void *says, size_t len)
{
	w = world_create(1);
	raw_srv_start(&srv, false);
	srv.features = features;
	memcpy(srv.says, says, len);
	start_client();
}

static void end_raw(void)
{
	world_client_stop(w, c);
	world_run_ms(w, 100);
	raw_srv_stop(&srv);
}

/* ---- in a thread of its own ---- */

struct asked {
	struct dev_list list;
	struct rnbd_extent got[8];	/* [n], from off on */
	uint64_t off, len;
	unsigned n;
	bool one;
	int status;
	struct sim_fiber *fiber;
};

static void list_fiber(void *arg)
{
	struct asked *a = arg;

	a->status = dev_list(world_client_clt(c), &a->list);
}

static bool has_ended(void *arg)
{
	return sim_fiber_done(((struct asked *)arg)->fiber);
}

static void list_start(struct asked *a)
{
	a->fiber = world_client_fiber(c, list_fiber, a);
}

static int list_end(struct asked *a, uint64_t ms)
{
	CHECK(sim_run_until(has_ended, a, ms));
	sim_fiber_free(a->fiber);
	return a->status;
}

static int list(struct asked *a)
{
	list_start(a);
	return list_end(a, 1000);
}

/* ---- listing ---- */

SIM_TEST(list)
{
	struct asked a;

	start();
	CHECK(list(&a) == 0);
	CHECK(a.list.n == 1 && !strcmp(a.list.names[0], "disk0"));
	dev_list_fini(&a.list);
}

/* The answer has no room in a request of that server. */
SIM_TEST(list_of_a_server_of_small_requests)
{
	struct asked a = { 0 };

	w = world_serve(SERVER(.max_io_size = RNBD_LIST_ROOM / 8));
	start_client();
	CHECK(list(&a) == -EMSGSIZE);
	CHECK(world_write(c, 0, 4096, 0x11) == 0);
}

/* It is asked on the path that comes. */
SIM_TEST(list_waits_for_a_path)
{
	struct asked a;

	start();
	world_server_stop(w);
	world_run_ms(w, 10);
	list_start(&a);
	world_run_ms(w, 100);
	CHECK(!has_ended(&a));
	world_server_start(w, NULL);
	CHECK(list_end(&a, 10000) == 0 && a.list.n == 1);
	dev_list_fini(&a.list);
}

/* The first, too. */
SIM_TEST(list_waits_for_the_first_path)
{
	struct asked a;

	w = world_create(1);
	c = world_client_start(w, NULL);
	list_start(&a);
	world_run_ms(w, 100);
	CHECK(!has_ended(&a));
	world_server_start(w, NULL);
	CHECK(list_end(&a, 10000) == 0 && a.list.n == 1);
	dev_list_fini(&a.list);
}

SIM_TEST(list_of_a_kernel)
{
	struct asked a;

	start_raw(0, "", 0);
	CHECK(list(&a) == -EOPNOTSUPP && a.list.n == 0);
	CHECK(srv.nquestions == 0);
	dev_list_fini(&a.list);
	end_raw();
}

static void garbage(const char *what, const void *says, size_t len, int status)
{
	struct asked a;

	start_raw(RNBD_EXT_LIST, says, len);
	if (list(&a) != status)
		sim_test_failed(__FILE__, __LINE__, what);
	CHECK(srv.nquestions == 1);
	dev_list_fini(&a.list);
	end_raw();
}

SIM_TEST(list_garbage)
{
	static const uint8_t other[12] = { 3, 0 };
	static const uint8_t nothing_and_more[12] = { 1, 0x80, 0, 0, 0, 0, 0, 0, 1 };
	static const uint8_t empty_name[16] = { 1, 0x80, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0 };
	static const uint8_t too_many[12] = { 1, 0x80, 0, 0, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t none[12] = { 1, 0x80 };

	garbage("another message", other, sizeof(other), -EBADMSG);
	garbage("nothing, and more to come", nothing_and_more, sizeof(nothing_and_more), -EBADMSG);
	garbage("a name of no bytes", empty_name, sizeof(empty_name), -EBADMSG);
	garbage("more than there is room for", too_many, sizeof(too_many), -EBADMSG);
	garbage("no exports", none, sizeof(none), 0);
}

/* A server that has always one more. */
SIM_TEST(list_without_end)
{
	static const uint8_t says[14] = { 1, 0x80, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1,
					  'a' };
	struct asked a;

	start_raw(RNBD_EXT_LIST, says, sizeof(says));
	list_start(&a);
	CHECK(list_end(&a, 60000) == 0);
	CHECK(a.list.n == DEV_LIST_MAX && srv.nquestions == DEV_LIST_MAX);
	dev_list_fini(&a.list);
	end_raw();
}

/* ---- extents ---- */

#define SPARSE (RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO)

static int take_extent(void *arg, uint64_t off, const struct rnbd_extent *e)
{
	struct asked *a = arg;
	uint64_t at = off;

	if (a->n == ARRAY_SIZE(a->got))
		return -E2BIG;
	for (unsigned i = a->n; i--; )
		at -= a->got[i].len;
	if (!a->n)
		a->off = off;
	CHECK(at == a->off);
	a->got[a->n++] = *e;
	return 0;
}

static void extents_fiber(void *arg)
{
	struct asked *a = arg;
	uint64_t off = a->off;

	a->status = dev_extents(world_client_handle(c), (uint32_t)a->len, off, a->one,
				take_extent, a);
}

static void extents_start(struct asked *a, uint64_t off, uint32_t len, bool one)
{
	*a = (struct asked){ .off = off, .len = len, .one = one };
	a->fiber = world_client_fiber(c, extents_fiber, a);
}

static int extents(struct asked *a, uint64_t off, uint32_t len, bool one)
{
	extents_start(a, off, len, one);
	return list_end(a, 1000);
}

/* One extent, or two. */
static void expect_extents(const struct asked *a, uint64_t off, uint64_t len0, uint32_t what0,
			   uint64_t len1, uint32_t what1)
{
	CHECK(a->n == 1 + !!len1 && a->off == off);
	CHECK(a->got[0].len == len0 && a->got[0].what == what0);
	CHECK(!len1 || (a->got[1].len == len1 && a->got[1].what == what1));
}

SIM_TEST(extents)
{
	struct asked a;

	start();
	CHECK(dev_extents_known(world_client_dev(c)));
	CHECK(world_write(c, 8192, 4096, 1) == 0);
	CHECK(extents(&a, 4096, 8192, false) == 0);
	expect_extents(&a, 4096, 4096, SPARSE, 4096, 0);
	CHECK(extents(&a, 0, WORLD_DISK_SIZE, false) == 0 && a.n == 3);
	CHECK(extents(&a, 0, WORLD_DISK_SIZE, true) == 0);
	expect_extents(&a, 0, 8192, SPARSE, 0, 0);
	/* any byte */
	CHECK(extents(&a, 8191, 2, false) == 0);
	expect_extents(&a, 7680, 512, SPARSE, 512, 0);
	/* more than there is room for in one answer; what the caller says is passed on */
	for (unsigned i = 0; i < 20; i++)
		CHECK(world_write(c, 65536 + i * 1024, 512, 1) == 0);
	CHECK(extents(&a, 0, WORLD_DISK_SIZE, false) == -E2BIG && a.n == 8);
}

/* It is asked again over the path that comes, and has the answer of that time. */
SIM_TEST(extents_wait_for_a_path)
{
	struct asked a;

	start();
	sim_disk_hold(world_disk(w), RNBD_OP_EXTENTS, SIM_HOLD_BEFORE, 1);
	extents_start(&a, 0, WORLD_DISK_SIZE, false);
	world_run_ms(w, 100);
	CHECK(sim_disk_held(world_disk(w)) == 1 && !has_ended(&a));
	world_server_kill(w, SIM_KILL_PROCESS);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 100);
	CHECK(!has_ended(&a));
	world_server_start(w, NULL);
	CHECK(list_end(&a, 10000) == 0);
	expect_extents(&a, 0, WORLD_DISK_SIZE, SPARSE, 0, 0);
	CHECK(world_write(c, 0, 4096, 1) == 0);
}

/* A chunk has room for less than an answer of the usual size. */
SIM_TEST(extents_of_a_small_server)
{
	struct asked a;

	w = world_serve(SERVER(.max_io_size = 1024));
	start_client();
	CHECK(world_write(c, 8192, 4096, 1) == 0);
	CHECK(extents(&a, 4096, 8192, false) == 0);
	expect_extents(&a, 4096, 4096, SPARSE, 4096, 0);
}

SIM_TEST(extents_of_a_kernel)
{
	struct asked a;

	start_raw(0, "", 0);
	CHECK(!dev_extents_known(world_client_dev(c)));
	CHECK(extents(&a, 1000, 10000, false) == 0);
	expect_extents(&a, 512, 10752, 0, 0, 0);
	CHECK(srv.nquestions == 0);
	end_raw();
}

/* An NBD client asks for up to 4 GiB at once, on any boundary, and a question has whole sectors in
 * 32 bits. */
SIM_TEST(extents_beyond_32_bits)
{
	static const struct { uint64_t off; uint32_t len, span; } cases[] = {
		{ 0, UINT32_MAX, 1u << 31 },
		{ 0, 0xfffffe00, 1u << 31 },
		{ 1, UINT32_MAX, 1u << 31 },
		{ 511, UINT32_MAX - 1, 1u << 31 },
		{ 0, (1u << 31) + 512, 1u << 31 },
		{ 0, 1u << 31, 1u << 31 },
		{ 1, (1u << 31) - 1, 1u << 31 },
		{ 1, 1u << 31, 1u << 31 },
		{ 0, (1u << 31) - 512, (1u << 31) - 512 },
		{ (1ull << 32) - 1, 2, 1024 },
		{ (5ull << 40) + 700, UINT32_MAX, 1u << 31 },
	};
	/* data up to 512 bytes in front of 2 GiB, and a hole of 512 */
	static const uint8_t says[24] = { 2, 0x80, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0x3f, 0, 0, 0, 0,
					  0, 1, 0, 0, 0, 3 };
	struct asked a;

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t start = align_down(cases[i].off, RNBD_SECTOR_SIZE);
		bool all = cases[i].span == 1u << 31;

		w = world_create(1);
		raw_srv_start(&srv, false);
		srv.features = RNBD_EXT_EXTENTS;
		srv.told_size = 6ull << 40;
		memcpy(srv.says, says, sizeof(says));
		start_client();
		CHECK(extents(&a, cases[i].off, cases[i].len, false) == (all ? 0 : -EBADMSG));
		CHECK(srv.asked.bi_size == cases[i].span &&
		      srv.asked.sector == start / RNBD_SECTOR_SIZE);
		if (all)
			expect_extents(&a, start, (1u << 31) - 512, 0, 512, SPARSE);
		end_raw();
	}
}

static void extents_garbage(const char *what, const void *says, size_t len)
{
	struct asked a;

	start_raw(RNBD_EXT_EXTENTS, says, len);
	if (extents(&a, 0, 1024, false) != -EBADMSG || a.n)
		sim_test_failed(__FILE__, __LINE__, what);
	CHECK(srv.nquestions == 1);
	end_raw();
}

SIM_TEST(extents_garbage)
{
	static const uint8_t beyond[16] = { 2, 0x80, 0, 0, 1, 0, 0, 0, 3 };
	static const uint8_t second[32] = { 2, 0x80, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2 };
	static const uint8_t endless[16] = { 2, 0x80, 0, 0, 0xff, 0xff, 0xff, 0xff, 1 };

	extents_garbage("zeroes", "", 0);
	extents_garbage("beyond what was asked for", beyond, sizeof(beyond));
	extents_garbage("the second is", second, sizeof(second));
	extents_garbage("more than there is room for", endless, sizeof(endless));
}

/* ---- probes of a path ---- */

/* A path of a server with the bit is up when data of full size has gone both ways; a server without
 * is not asked. */
SIM_TEST(probe)
{
	start_raw(RNBD_EXT_PROBE, "", 0);
	CHECK(srv.nprobes >= 2 * RAW_SRV_IO);
	end_raw();
	start_raw(RNBD_EXT_ALL & ~RNBD_EXT_PROBE, "", 0);
	CHECK(srv.nprobes == 0);
	end_raw();
	start_raw(0, "", 0);
	CHECK(srv.nprobes == 0);
	end_raw();
}

/* A server that says the bit and does not answer loses the path as with heartbeats; the log says
 * why. */
SIM_TEST(probe_without_an_answer)
{
	w = world_create(1);
	raw_srv_start(&srv, false);
	srv.features = RNBD_EXT_PROBE;
	srv.loses_probes = true;
	c = world_client_start(w, NULL);
	world_run_ms(w, 35000);
	CHECK(world_client_opened(c) > 0);
	CHECK(world_traced(w, "no answer to a probe of "));
	srv.loses_probes = false;
	CHECK(world_wait_open(c, 100000) == 0);
	end_raw();
}
