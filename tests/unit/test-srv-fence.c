/* SPDX-License-Identifier: BSD-3-Clause */
/* The fence of a session, one thread: in what order copies of a request run, and which do not. */
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

/* A request of a client with tags, or without (0). */
static void arrive(struct srv_fence_node *node, unsigned id, uint32_t tag)
{
	node->order = (struct srv_fence_order){ tag, srv_fence_arrive(&fence, id) };
}

/* True: it is its turn. */
static bool enter(struct srv_fence_node *node, unsigned id)
{
	struct srv_fence_node *front = srv_fence_enter(&fence, id, node);

	if (front)
		srv_fence_follow(front, node);
	return !front;
}

static bool arrive_enter(struct srv_fence_node *node, unsigned id, uint32_t tag)
{
	arrive(node, id, tag);
	return enter(node, id);
}

Test(srv_fence, tag_newer)
{
	cr_assert(srv_fence_tag_newer(2, 1));
	cr_assert_not(srv_fence_tag_newer(1, 2));
	cr_assert_not(srv_fence_tag_newer(1, 1));
	cr_assert(srv_fence_tag_newer(1, UINT32_MAX));	/* they wrap */
	cr_assert_not(srv_fence_tag_newer(UINT32_MAX, 1));
	cr_assert(srv_fence_tag_newer(0x80000000, 1));
	cr_assert_not(srv_fence_tag_newer(0x80000002, 1));
}

Test(srv_fence, alone)
{
	struct srv_fence_node a;

	for (unsigned round = 0; round < 3; round++) {
		cr_assert(arrive_enter(&a, 2, 0));
		cr_assert(srv_fence_turn(&fence, 2, &a));
		cr_assert_null(srv_fence_leave(&fence, 2, &a));
	}
}

Test(srv_fence, ids_are_independent)
{
	struct srv_fence_node n[DEPTH];

	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert(arrive_enter(&n[i], i, DEPTH - i), "id %u", i);
	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert(srv_fence_turn(&fence, i, &n[i]), "id %u", i);
	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert_null(srv_fence_leave(&fence, i, &n[i]), "id %u", i);
}

Test(srv_fence, newer_copy_waits_until_the_older_has_left)
{
	struct srv_fence_node older, newer;

	cr_assert(arrive_enter(&older, 0, 0));
	cr_assert_not(arrive_enter(&newer, 0, 0));
	cr_assert_eq(srv_fence_leave(&fence, 0, &older), &newer);
	cr_assert_null(srv_fence_leave(&fence, 0, &newer));
}

/* Three lives of a path: the first copy is in the storage, the second was held when its path died,
 * the third is the one that counts.  They come out in the order in which they arrived. */
Test(srv_fence, order_of_arrival)
{
	struct srv_fence_node life[3];

	cr_assert(arrive_enter(&life[0], 1, 0));
	cr_assert_not(arrive_enter(&life[1], 1, 0));
	cr_assert_not(arrive_enter(&life[2], 1, 0));
	cr_assert_eq(srv_fence_leave(&fence, 1, &life[0]), &life[1]);
	cr_assert_eq(srv_fence_leave(&fence, 1, &life[1]), &life[2]);
	cr_assert_null(srv_fence_leave(&fence, 1, &life[2]));
}

/* A node is reused the moment it has left, as a chunk is when its answer arrives. */
Test(srv_fence, reuse_while_another_runs)
{
	struct srv_fence_node a, b;

	cr_assert(arrive_enter(&a, 3, 0));
	cr_assert_not(arrive_enter(&b, 3, 0));
	for (unsigned round = 0; round < 5; round++) {
		cr_assert_eq(srv_fence_leave(&fence, 3, &a), &b);
		cr_assert_not(arrive_enter(&a, 3, 0));
		cr_assert_eq(srv_fence_leave(&fence, 3, &b), &a);
		cr_assert_not(arrive_enter(&b, 3, 0));
	}
	cr_assert_eq(srv_fence_leave(&fence, 3, &a), &b);
	cr_assert_null(srv_fence_leave(&fence, 3, &b));
}

static bool runs(unsigned id, uint32_t tag)
{
	struct srv_fence_node node;
	bool turn;

	cr_assert(arrive_enter(&node, id, tag));
	turn = srv_fence_turn(&fence, id, &node);
	cr_assert_null(srv_fence_leave(&fence, id, &node));
	return turn;
}

/* An older copy that is read when the newer one has left, and when its number has been used
 * again. */
Test(srv_fence, older_tag_does_not_run)
{
	cr_assert(runs(0, 5));
	cr_assert_not(runs(0, 4));
	cr_assert_not(runs(0, 5));
	cr_assert(runs(0, 6));
	cr_assert_not(runs(0, 4));
	cr_assert(runs(1, 4));
}

Test(srv_fence, tags_wrap)
{
	cr_assert(runs(0, UINT32_MAX - 1));
	cr_assert(runs(0, UINT32_MAX));
	cr_assert(runs(0, 1));
	cr_assert_not(runs(0, UINT32_MAX));
	cr_assert(runs(0, 2));
}

/* The older copy has been read and waits, while the newer one overtakes it on the way to the
 * queue. */
Test(srv_fence, older_tag_behind_the_newer)
{
	struct srv_fence_node older, newer;

	cr_assert(arrive_enter(&newer, 0, 8));
	cr_assert(srv_fence_turn(&fence, 0, &newer));
	cr_assert_not(arrive_enter(&older, 0, 7));
	cr_assert_not(srv_fence_newer(&older.order, &newer.order));
	cr_assert_eq(srv_fence_leave(&fence, 0, &newer), &older);
	cr_assert_not(srv_fence_turn(&fence, 0, &older));
	cr_assert_null(srv_fence_leave(&fence, 0, &older));
}

/* What left without running (its path had died) is no reason to refuse an older one: it is to be
 * done again. */
Test(srv_fence, only_what_ran_counts)
{
	struct srv_fence_node newer;

	cr_assert(arrive_enter(&newer, 0, 8));
	cr_assert_null(srv_fence_leave(&fence, 0, &newer));
	cr_assert(runs(0, 7));
}

/* Without tags: between its reading and the fence another one has come, was done and answered. */
Test(srv_fence, older_arrival_does_not_run)
{
	struct srv_fence_node older;

	arrive(&older, 0, 0);
	cr_assert(runs(0, 0));
	cr_assert(enter(&older, 0));
	cr_assert_not(srv_fence_turn(&fence, 0, &older));
	cr_assert_null(srv_fence_leave(&fence, 0, &older));
}

/* A client that has tags from now on, or none any more: by arrival. */
Test(srv_fence, tag_beside_none)
{
	cr_assert(runs(0, 0));
	cr_assert(runs(0, 0));
	cr_assert(runs(0, 1));
	cr_assert(runs(0, 0));
	cr_assert(runs(0, 1));
}
