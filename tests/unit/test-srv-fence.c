/* SPDX-License-Identifier: BSD-3-Clause */
/* The fence of a session, one thread: in what order copies of a request run. */
#include "unit.h"

#include "srv-fence.h"

#define DEPTH 4

static struct srv_fence fence;

static void setup(void)
{
	cr_assert_eq(srv_fence_init(&fence, DEPTH), 0);
}

static void teardown(void)
{
	srv_fence_fini(&fence);	/* asserts that every node has left */
}

TestSuite(srv_fence, .init = setup, .fini = teardown);

Test(srv_fence, alone)
{
	struct srv_fence_node a;

	for (unsigned round = 0; round < 3; round++) {
		cr_assert(srv_fence_enter(&fence, 2, &a));
		cr_assert_null(srv_fence_leave(&fence, 2, &a));
	}
}

Test(srv_fence, ids_are_independent)
{
	struct srv_fence_node n[DEPTH];

	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert(srv_fence_enter(&fence, i, &n[i]), "id %u", i);
	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert_null(srv_fence_leave(&fence, i, &n[i]), "id %u", i);
}

Test(srv_fence, newer_copy_waits_until_the_older_has_left)
{
	struct srv_fence_node older, newer;

	cr_assert(srv_fence_enter(&fence, 0, &older));
	cr_assert_not(srv_fence_enter(&fence, 0, &newer));
	cr_assert_eq(srv_fence_leave(&fence, 0, &older), &newer);
	cr_assert_null(srv_fence_leave(&fence, 0, &newer));
}

/* Three lives of a path: the first copy is in the storage, the second was held when its path died, the
 * third is the one that counts.  They come out in the order in which they arrived. */
Test(srv_fence, order_of_arrival)
{
	struct srv_fence_node life[3];

	cr_assert(srv_fence_enter(&fence, 1, &life[0]));
	cr_assert_not(srv_fence_enter(&fence, 1, &life[1]));
	cr_assert_not(srv_fence_enter(&fence, 1, &life[2]));
	cr_assert_eq(srv_fence_leave(&fence, 1, &life[0]), &life[1]);
	cr_assert_eq(srv_fence_leave(&fence, 1, &life[1]), &life[2]);
	cr_assert_null(srv_fence_leave(&fence, 1, &life[2]));
}

/* A node is reused the moment it has left, as a chunk is when its answer arrives. */
Test(srv_fence, reuse_while_another_runs)
{
	struct srv_fence_node a, b;

	cr_assert(srv_fence_enter(&fence, 3, &a));
	cr_assert_not(srv_fence_enter(&fence, 3, &b));
	for (unsigned round = 0; round < 5; round++) {
		cr_assert_eq(srv_fence_leave(&fence, 3, &a), &b);
		cr_assert_not(srv_fence_enter(&fence, 3, &a));
		cr_assert_eq(srv_fence_leave(&fence, 3, &b), &a);
		cr_assert_not(srv_fence_enter(&fence, 3, &b));
	}
	cr_assert_eq(srv_fence_leave(&fence, 3, &a), &b);
	cr_assert_null(srv_fence_leave(&fence, 3, &b));
}
