/* SPDX-License-Identifier: BSD-3-Clause */
/* What is found by a number, and slots: what comes and goes is found as long as it is there. */
#include "unit.h"

#include "index.h"

#define N 5000u

struct item {
	unsigned value;
	struct index_node node;
	bool in;
};

static struct item items[N];

/* Each is found once, by its own number, if and only if it is in. */
static void expect_all(const struct index *x, uint64_t (*number)(unsigned value))
{
	struct index_node *node;

	for (unsigned i = 0; i < N; i++) {
		unsigned found = 0;

		index_for_each(node, x, number(i)) {
			struct item *it = container_of(node, struct item, node);

			cr_assert_eq(number(it->value), number(i));
			cr_assert(it->in);
			found += it->value == i;
		}
		cr_assert_eq(found, items[i].in, "%u: %u times", i, found);
	}
}

static void come_and_go(uint64_t (*number)(unsigned value))
{
	struct index x;

	index_init(&x);
	for (unsigned i = 0; i < N; i++) {
		items[i] = (struct item){ .value = i, .in = true };
		index_add(&x, &items[i].node, number(i));
		cr_assert_eq(items[i].node.number, number(i));
	}
	expect_all(&x, number);
	for (unsigned i = 0; i < N; i += 3) {
		index_del(&x, &items[i].node);
		items[i].in = false;
	}
	expect_all(&x, number);
	for (unsigned i = 0; i < N; i += 6) {
		index_add(&x, &items[i].node, number(i));
		items[i].in = true;
	}
	expect_all(&x, number);
	for (unsigned i = 0; i < N; i++) {
		if (items[i].in)
			index_del(&x, &items[i].node);
	}
	cr_assert_null(index_next(&x, NULL, number(1)));
	index_fini(&x);
}

static uint64_t itself(unsigned value)
{
	return value;
}

static uint64_t high(unsigned value)
{
	return (uint64_t)value << 40;
}

static uint64_t of_five(unsigned value)
{
	return value / 5;
}

Test(index, what_comes_and_goes_is_found)
{
	come_and_go(itself);
	come_and_go(high);
	come_and_go(of_five);
}

Test(index, a_text_has_a_number)
{
	cr_assert_eq(index_text("disk0"), index_text("disk0"));
	cr_assert_neq(index_text("disk0"), index_text("disk1"));
}

Test(slots, no_slot_is_taken_twice_or_above_the_most_at_a_time)
{
	struct slots s = { 0 };
	unsigned slot, taken[64];
	uint64_t seen = 0;

	for (unsigned i = 0; i < 64; i++) {
		cr_assert(slots_take(&s, &taken[i]));
		seen |= 1ull << taken[i];
	}
	cr_assert_eq(seen, UINT64_MAX);
	for (unsigned i = 0; i < 64; i += 7)
		slots_put(&s, taken[i]);
	for (unsigned i = 0; i < 64; i += 7) {
		cr_assert(slots_take(&s, &slot));
		cr_assert_lt(slot, 64);
		taken[i] = slot;
	}
	seen = 0;
	for (unsigned i = 0; i < 64; i++)
		seen |= 1ull << taken[i];
	cr_assert_eq(seen, UINT64_MAX);
	cr_assert(slots_take(&s, &slot));
	cr_assert_eq(slot, 64);
	cr_assert_eq(s.n, 65);
	slots_fini(&s);
}
