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

static bool runs(unsigned id, uint32_t tag)
{
	struct srv_fence_node node;
	bool turn;

	cr_assert(arrive_enter(&node, id, tag));
	turn = srv_fence_turn(&fence, id, &node);
	cr_assert_null(srv_fence_leave(&fence, id, &node));
	return turn;
}

/* One step of the copies a, b and c, as it stands in the table; true if it went so. */
static bool step(struct srv_fence_node *copies, unsigned id, const char *word)
{
	struct srv_fence_node *a = &copies[(*word - 'a') & 3], *b = &copies[(word[2] - 'a') & 3];
	uint32_t tag = (uint32_t)strtoul(word + 2, NULL, 10);

	switch (word[1]) {
	case '+':
		return arrive_enter(a, id, tag);
	case '-':
		return !arrive_enter(a, id, tag);
	case '*':
		arrive(a, id, tag);
		return true;
	case '>':
		return enter(a, id);
	case '!':
		return srv_fence_turn(&fence, id, a);
	case '?':
		return !srv_fence_turn(&fence, id, a);
	case '~':
		return !srv_fence_newer(&a->order, &b->order);
	case '<':
		return srv_fence_leave(&fence, id, a) == (word[2] ? b : NULL);
	}
	return false;
}

/* Copies of a request with tags, or without (0):
 *	a+5 b-5		arrives and has its turn, or waits for it; a*5 a> is the former in two steps
 *	a! a?		runs, or does not
 *	a<b a<		leaves, and b is the next one, or nobody
 *	b~a		is not newer
 *	5! 5?		one alone, from its arrival to its end, runs or does not */
Test(srv_fence, steps)
{
	static const struct { unsigned id; const char *steps; } cases[] = {
		{ 2, "a+0 a! a< a+0 a! a< a+0 a! a<" },
		/* A newer copy waits until the older one has left; here three lives of a path: the
		 * first copy is in the storage, the second was held when its path died, the third
		 * is the one that counts. */
		{ 0, "a+0 b-0 a<b b<" }, { 1, "a+0 b-0 c-0 a<b b<c c<" },
		/* A node is used again when it has left, as a chunk is when its answer arrives. */
		{ 3, "a+0 b-0 a<b a-0 b<a b-0 a<b a-0 b<a b-0 a<b b<" },
		/* An older copy that is read when the newer one has left, and when its number has
		 * been used again; tags wrap. */
		{ 0, "5! 4? 5? 6! 4?" }, { 1, "4!" },
		{ 2, "4294967294! 4294967295! 1! 4294967295? 2!" },
		/* The older copy has been read and waits, while the newer one overtakes it on the
		 * way to the queue. */
		{ 1, "a+8 a! b-7 b~a a<b b? b<" },
		/* What left without running (its path had died) is no reason to refuse an older
		 * one: it is to be done again. */
		{ 3, "a+8 a< 7!" },
		/* Without tags: between its reading and the fence another one has come, was done
		 * and answered. */
		{ 2, "a*0 0! a> a? a<" },
		/* A client that has tags from now on, or none any more: by arrival. */
		{ 0, "0! 0! 1! 0! 1!" },
	};

	for_each_case(c, cases) {
		struct srv_fence_node copies[4] = { 0 };
		char text[128], *line = text, *word;

		snprintf(text, sizeof(text), "%s", c->steps);
		while ((word = strsep(&line, " "))) {
			uint32_t tag = (uint32_t)strtoul(word, NULL, 10);
			bool right = strchr("abc", *word) ? step(copies, c->id, word) :
				     runs(c->id, tag) == (word[strlen(word) - 1] == '!');

			cr_assert(right, "%s: not %s in front of \"%s\"", c->steps, word,
				  line ? line : "the end");
		}
	}
}
