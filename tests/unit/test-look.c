/* SPDX-License-Identifier: BSD-3-Clause */
/* What rtrs-bench shows while it runs: of the time since the previous look. */
#include "lat.h"
#include "load.h"
#include "unit.h"

#define S_NS UINT64_C(1000000000)

static struct load load;
static struct look_back back;

/* @n IOs of @ns have ended. */
static void ended(unsigned dir, unsigned n, uint64_t ns)
{
	for (unsigned i = 0; i < n; i++)
		lat_count(&load.side[dir].lat, ns);
	load.side[dir].ios += n;
	load.begun += n;
}

static const char *text_at(uint64_t at_ns)
{
	static char buf[LOOK_TEXT_MAX];
	struct look now;

	lat_look(&now, &back, &load, load.began_ns + at_ns);
	return lat_look_text(&now, buf);
}

static void begin(void)
{
	load = (struct load){ .began_ns = 12345 * S_NS, .begun = 4, .inflight = 4,
			      .phase = LOAD_RUNS };
	back = (struct look_back){ 0 };
}

Test(look, each_look_is_of_its_second, .init = begin)
{
	load.conf.runtime_s = 100;
	ended(LOAD_READ, 1000, 2000000);
	cr_assert_str_eq(text_at(S_NS), "99 s left, 1000 IOPS, p99 2000 us");
	/* Both directions; the slow ones of before are no more. */
	ended(LOAD_READ, 100, 1000);
	ended(LOAD_WRITE, 100, 1000);
	cr_assert_str_eq(text_at(3 * S_NS), "97 s left, 100 IOPS, p99 1.0 us");
	cr_assert_str_eq(text_at(4 * S_NS - 1000), "96 s left, 0 IOPS, p99 -");
	cr_assert_str_eq(text_at(101 * S_NS), "0 s left, 0 IOPS, p99 -");
}

Test(look, time_left_by_the_number_of_ios, .init = begin)
{
	load.conf.ios = 5000;
	cr_assert_str_eq(text_at(S_NS), "? s left, 0 IOPS, p99 -");
	ended(LOAD_WRITE, 1000, 1000);
	cr_assert_str_eq(text_at(2 * S_NS), "4 s left, 1000 IOPS, p99 1.0 us");
	/* The sooner end. */
	load.conf.runtime_s = 5;
	ended(LOAD_WRITE, 1000, 1000);
	cr_assert_str_eq(text_at(3 * S_NS), "2 s left, 1000 IOPS, p99 1.0 us");
}

Test(look, phases, .init = begin)
{
	load.nblocks = 200;
	load.next = 50;
	load.phase = LOAD_READS_BACK;
	load.begun += 700;
	cr_assert_str_eq(text_at(S_NS), "reads back, 25 %, 700 IOPS");
	load.next = 201;
	cr_assert_str_eq(text_at(2 * S_NS), "reads back, 100 %, 0 IOPS");
	load.phase = LOAD_ENDS;
	cr_assert_str_eq(text_at(3 * S_NS), "ends, 4 in flight");
}
