/* SPDX-License-Identifier: BSD-3-Clause */
/* The set of free numbers, on one thread; tests/thread has several. */
#include <errno.h>
#include <signal.h>

#include "unit.h"

#include "bitmap.h"

Test(bitmap, hands_out_each_number_once_lowest_first)
{
	static const unsigned sizes[] = { 1, 2, 63, 64, 65, 127, 128, 129, 512, 65535 };

	for_each_case(n, sizes) {
		struct bitmap b;

		cr_assert_eq(bitmap_init(&b, *n), 0);
		for (unsigned i = 0; i < *n; i++) {
			cr_assert_eq(bitmap_weight(&b), i, "%u numbers", *n);
			cr_assert_eq(bitmap_get(&b), (int)i, "%u numbers", *n);
		}
		cr_assert_eq(bitmap_get(&b), -EAGAIN, "%u numbers", *n);
		cr_assert_eq(bitmap_weight(&b), *n);
		for (unsigned i = 0; i < *n; i++)
			bitmap_put(&b, i);
		cr_assert_eq(bitmap_weight(&b), 0, "%u numbers", *n);
		bitmap_fini(&b);
	}
}

Test(bitmap, lowest_free_comes_back_first)
{
	static const unsigned holes[] = { 99, 64, 63, 7, 0 };
	struct bitmap b;

	cr_assert_eq(bitmap_init(&b, 100), 0);
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(bitmap_get(&b), (int)i);
	for_each_case(h, holes) {
		bitmap_put(&b, *h);
		cr_assert_eq(bitmap_weight(&b), 99);
		cr_assert_eq(bitmap_get(&b), (int)*h);
	}
	for_each_case(h, holes)
		bitmap_put(&b, *h);
	for (unsigned i = ARRAY_SIZE(holes); i; i--)
		cr_assert_eq(bitmap_get(&b), (int)holes[i - 1]);
	cr_assert_eq(bitmap_get(&b), -EAGAIN);
	bitmap_fini(&b);
}

Test(bitmap, none)
{
	struct bitmap b;

	cr_assert_eq(bitmap_init(&b, 0), 0);
	cr_assert_eq(bitmap_get(&b), -EAGAIN);
	cr_assert_eq(bitmap_weight(&b), 0);
	bitmap_fini(&b);
}

Test(bitmap, giving_back_twice_is_a_bug, .signal = SIGABRT)
{
	struct bitmap b;

	cr_assert_eq(bitmap_init(&b, 10), 0);
	bitmap_put(&b, 3);
}

Test(bitmap, giving_back_past_the_end_is_a_bug, .signal = SIGABRT)
{
	struct bitmap b;

	cr_assert_eq(bitmap_init(&b, 10), 0);
	bitmap_put(&b, 10);
}
