/* SPDX-License-Identifier: BSD-3-Clause */
/* Which account gets a permit, and in which order those that wait do. */
#include "unit.h"

#include "clt-io-priv.h"

/* ---- the share ---- */

Test(clt_account, share_at_its_limit)
{
	static const struct { uint64_t held, want, nfree, reserve; bool may; } cases[] = {
		/* nothing is free, or too little */
		{ 0, 1, 0, 0, false }, { 7, 1, 0, 0, false }, { 0, 3, 2, 0, false },
		{ 0, 3, 3, 0, true }, { UINT64_MAX / 2, 1, 2, 0, false },
		/* the first item, whatever is left, and a second one */
		{ 0, 1, 1, 9, true }, { 1, 1, 1, 0, false }, { 1, 1, 2, 0, true },
		/* held + 1 against 8 * (nfree - 1) */
		{ 78, 1, 11, 0, true }, { 79, 1, 11, 0, true }, { 80, 1, 11, 0, false },
		{ 79, 1, 10, 0, false }, { 80, 1, 12, 0, true },
		/* nfree - 1 against the reserve, and what is left of it */
		{ 2, 1, 11, 9, true }, { 2, 1, 11, 10, false }, { 2, 1, 11, 11, false },
		{ 7, 1, 11, 9, true }, { 8, 1, 11, 9, false }, { 8, 1, 11, 8, true },
		/* the same in bytes */
		{ 700 << 10, 100 << 10, 250 << 10, 50 << 10, true },
		{ (700 << 10) + 1, 100 << 10, 250 << 10, 50 << 10, false },
		{ 700 << 10, 100 << 10, (250 << 10) - 1, 50 << 10, false },
		{ 700 << 10, 100 << 10, 250 << 10, (50 << 10) + 1, false },
		{ 0, 100 << 10, 100 << 10, 1 << 20, true },
	};

	for_each_case(c, cases)
		cr_assert_eq(share_may_take(c->held, c->want, c->nfree, c->reserve), c->may,
			     "%llu and %llu more of %llu", (unsigned long long)c->held,
			     (unsigned long long)c->want, (unsigned long long)c->nfree);
}

Test(clt_account, reserve_at_its_limit)
{
	static const struct { uint64_t size, nholders, first, reserve; } cases[] = {
		{ 0, 5, 1, 0 }, { 7, 0, 1, 0 }, { 8, 0, 1, 1 }, { 8, 1, 1, 0 }, { 8, 2, 1, 0 },
		{ 127, 0, 1, 15 }, { 127, 14, 1, 1 }, { 127, 15, 1, 0 }, { 127, 16, 1, 0 },
		{ 1 << 20, 3, 32768, 32768 }, { 1 << 20, 4, 32768, 0 },
		{ 1 << 20, UINT64_MAX, 32768, 0 }, { 1 << 10, 0, 4096, 0 },
	};

	for_each_case(c, cases)
		cr_assert_eq(share_reserve(c->size, c->nholders, c->first), c->reserve,
			     "of %llu, with %llu", (unsigned long long)c->size,
			     (unsigned long long)c->nholders);
}

/* ---- a session whose operations only get permits ---- */

#define ACCOUNTS 64u
#define PERMITS 128u			/* 127 of IO */

static struct clt_io io;
static struct clt_account accounts[ACCOUNTS];
static unsigned nlooks;

static void wait_look(struct clt_waiter *w)
{
	nlooks++;
}

static void wait_batch(void)
{
}

static const struct clt_wait_ops wait_ops = {
	.look = wait_look, .batch_begin = wait_batch, .batch_end = wait_batch,
};

static void world(unsigned permits, unsigned naccounts)
{
	memset(&io, 0, sizeof(io));
	io.wait = &wait_ops;
	io.nloops = 1;
	clt_slot_init(&io);
	cr_assert_eq(clt_slot_limit(&io, permits), (int)permits);
	for (unsigned i = 0; i < naccounts; i++)
		clt_account_open(&accounts[i], &io);
	nlooks = 0;
}

/* Operations, each with one permit or none. */
struct user {
	struct clt_op op;
	struct clt_slot *slot;
};

/* True if @u has its permit. */
static bool asks(struct user *u)
{
	u->slot = clt_slot_get(&u->op);
	return u->slot;
}

static bool begins(struct user *u, struct clt_account *a, enum clt_op_kind kind)
{
	u->op = (struct clt_op){ .io = &io, .account = a, .kind = kind };
	clt_op_start(&u->op, NULL);
	return asks(u);
}

static void ends(struct user *u)
{
	clt_slot_put(&u->op, u->slot);
	u->slot = NULL;
	clt_slot_leave(&u->op);
}

/* Take permits for @a, with no operation in line, until none more comes.  Returns how many. */
static unsigned fill(struct clt_account *a, struct clt_slot **slots)
{
	unsigned n = 0;

	while ((slots[n] = clt_account_take(a)))
		n++;
	return n;
}

static void give_back(struct clt_account *a, struct clt_slot **slots, unsigned n)
{
	struct clt_op op = { .io = &io, .account = a };

	while (n--)
		clt_slot_put(&op, slots[n]);
}

static void world_end(unsigned naccounts)
{
	for (unsigned i = 0; i < naccounts; i++)
		clt_account_close(&accounts[i]);
	cr_assert_eq(atomic_load(&io.slots.ntaken), 0u);
	clt_slot_fini(&io);
}

/* ---- how many ---- */

/* With @permits the first account gets @most, and the second one then @others, at once. */
Test(clt_account, a_greedy_one_leaves_some)
{
	static const struct { unsigned permits, most, others; } cases[] = {
		{ 1, 1, 0 }, { 2, 1, 0 }, { 3, 1, 1 }, { 4, 2, 1 }, { 5, 3, 1 }, { 6, 4, 1 },
		{ 7, 5, 1 }, { 8, 6, 1 }, { 9, 7, 1 }, { 10, 8, 1 }, { 11, 8, 1 }, { 127, 99, 12 },
		{ 128, 100, 12 }, { 129, 100, 12 }, { 512, 399, 45 },
	};
	static struct clt_slot *slots[2][1024];

	for_each_case(c, cases) {
		unsigned n, m;

		world(c->permits, 2);
		n = fill(&accounts[0], slots[0]);
		m = fill(&accounts[1], slots[1]);
		cr_assert(n == c->most && m == c->others, "of %u: %u, and %u", c->permits, n, m);
		give_back(&accounts[1], slots[1], m);
		give_back(&accounts[0], slots[0], n);
		world_end(2);
	}
}

/* The only account of a session has all but the reserve, which the next ones find. */
Test(clt_account, the_only_one_leaves_the_reserve)
{
	static const struct { unsigned permits, most; } cases[] = {
		{ 1, 1 }, { 2, 1 }, { 3, 2 }, { 8, 7 }, { 9, 8 }, { 16, 15 }, { 17, 15 },
		{ 25, 22 },
		{ 127, 112 }, { 128, 113 }, { 129, 113 }, { 512, 449 },
	};
	static struct clt_slot *slots[1024], *other[1024];
	unsigned n, m;

	for_each_case(c, cases) {
		world(c->permits, 1);
		n = fill(&accounts[0], slots);
		cr_assert_eq(n, c->most, "%u of %u", n, c->permits);
		clt_account_open(&accounts[1], &io);
		m = fill(&accounts[1], other);
		cr_assert_eq(m >= 1, c->permits > 16, "%u of %u", m, c->permits);
		give_back(&accounts[1], other, m);
		give_back(&accounts[0], slots, n);
		world_end(2);
	}
}

/* Greedy accounts come one after the other, and keep what they get: as many as an eighth of the
 * permits get something at once.  None of them is open before. */
Test(clt_account, many_greedy_ones_leave_some)
{
	static const struct { unsigned permits, accounts; } cases[] = {
		{ 9, 2 }, { 128, 3 }, { 128, 14 }, { 128, 15 }, { 512, 63 },
	};
	static struct clt_slot *slots[ACCOUNTS][1024];
	unsigned n[ACCOUNTS];

	for_each_case(c, cases) {
		world(c->permits, 2);
		for (unsigned i = 0; i < c->accounts; i++) {
			if (i >= 2)
				clt_account_open(&accounts[i], &io);
			n[i] = fill(&accounts[i], slots[i]);
			cr_assert_geq(n[i], 1u, "%u of %u, of %u permits", i, c->accounts,
				      c->permits);
		}
		for (unsigned i = 0; i < c->accounts; i++)
			give_back(&accounts[i], slots[i], n[i]);
		world_end(c->accounts);
	}
}

/* More idle accounts do not take from the one that works. */
Test(clt_account, idle_ones_cost_nothing)
{
	static struct clt_slot *slots[PERMITS];
	unsigned n;

	for (unsigned idle = 1; idle < ACCOUNTS; idle++) {
		world(PERMITS, 1 + idle);
		n = fill(&accounts[0], slots);
		cr_assert_eq(n, 100u, "%u beside %u idle ones", n, idle);
		give_back(&accounts[0], slots, n);
		world_end(1 + idle);
	}
}

/* End a request of each account in turns, @n times, and begin another for it. */
static void churn(struct user users[][PERMITS], unsigned naccounts, unsigned n)
{
	for (unsigned r = 0; r < n * naccounts; r++) {
		struct user *u = &users[r % naccounts][r / naccounts % PERMITS];

		if (!u->slot && !asks(u))
			continue;
		ends(u);
		begins(u, u->op.account, CLT_OP_IO);
	}
}

/* What greedy accounts give back goes to who holds less, until all hold the same. */
Test(clt_account, greedy_ones_become_equal)
{
	static struct user users[3][PERMITS];
	unsigned held;

	world(PERMITS, 3);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < PERMITS; k++)
			begins(&users[i][k], &accounts[i], CLT_OP_IO);
	}
	cr_assert_gt(atomic_load(&accounts[0].held), 4 * atomic_load(&accounts[1].held));
	churn(users, 3, 10 * PERMITS);
	/* 8/25 of 127 without the reserve is 36; 5 free ones are a threshold of 40 */
	for (unsigned i = 0; i < 3; i++) {
		held = atomic_load(&accounts[i].held);
		cr_assert(held >= 30 && held <= 40, "account %u: %u", i, held);
	}
	cr_assert_geq(clt_slot_nfree(&io.slots), 15u);
}

/* ---- who is next ---- */

static struct user by_letter['z' - 'a' + 1];

/* A step of the user @word begins with; false if it did not go so. */
static bool step(const char *word)
{
	struct user *u = &by_letter[*word - 'a'];

	switch (word[strlen(word) - 1]) {
	case '!':
		return asks(u);
	case '?':
		return !asks(u);
	case '.':
		ends(u);
		return true;
	case '<':
		clt_slot_leave(&u->op);
		return true;
	}
	return begins(u, word[1] == '*' ? NULL : &accounts[word[1] - '0'],
		      word[1] == '*' ? CLT_OP_FREE : CLT_OP_IO) == (word[2] == '+');
}

/* Users, with one operation each:
 *	a0+ b0- m*-	begins for account 0 and has a permit, or waits; a user message
 *	a! a?		asks again, and has it now or not yet
 *	a. a<		ends; leaves the line
 *	( )		a pass begins and ends
 *	looks=2		so many were told to ask since the last one began */
Test(clt_account, steps)
{
	static const struct { unsigned permits, accounts; const char *steps; } cases[] = {
		/* An account whose line is long does not keep others' operations: of two permits
		 * each gets one in its turn.  The account of b holds none, and is the first in
		 * turn; when z ends, a second permit would be the last free one. */
		{ 3, 4, "a0+ b0- c0- d0- e0- f0- z3+ s1- t2- a. looks=1 s? b! b. s! s. t! t. c! "
		  "z. d? c. d! d. e! e. f! f." },
		/* What becomes free in a pass is given when it ends, and all at once; nothing stays
		 * of it. */
		{ 3, 2, "a0+ b1+ c0- d1- ( a. b. looks=0 ) looks=2 c! d! ( ) looks=2 c. d." },
		/* Operations of an account keep their order, also behind one that leaves. */
		{ 2, 2, "a0+ b0- c0- d0- b< a. d? c! c. d! d." },
		/* A permit that was laid aside for an operation that leaves goes to the next
		 * account. */
		{ 2, 3, "a0+ b1- c2- a. b< c! c." },
		/* User messages have no share, and stand in front; m has the control slot. */
		{ 2, 2, "a0+ b0- m*+ n*- a. b? n! n. b! b. m." },
	};

	for_each_case(c, cases) {
		char text[128], *line = text, *word;

		world(c->permits, c->accounts);
		snprintf(text, sizeof(text), "%s", c->steps);
		while ((word = strsep(&line, " "))) {
			bool right = true;

			if (*word == '(')
				clt_pass_begin();
			else if (*word == ')')
				clt_pass_end();
			else if (!strncmp(word, "looks=", 6))
				right = nlooks == strtoul(word + 6, NULL, 10);
			else
				right = step(word);
			cr_assert(right, "%s: not %s in front of \"%s\"", c->steps, word,
				  line ? line : "the end");
			if (strpbrk(word, "+-"))
				nlooks = 0;
		}
		world_end(c->accounts);
	}
}

/* Give back @n of the @left permits of accounts[2] in a pass. */
static void pass_of(struct clt_slot **slots, unsigned *left, unsigned n)
{
	clt_pass_begin();
	*left -= n;
	give_back(&accounts[2], slots + *left, n);
	clt_pass_end();
}

/* Of 127 permits a turn has seven; who had fewer keeps the place for the next pass. */
Test(clt_account, a_turn_is_a_few)
{
	static struct clt_slot *slots[PERMITS];
	static struct user users[2][12];
	unsigned n;

	world(PERMITS, 3);
	n = fill(&accounts[2], slots);
	while ((slots[n] = clt_slot_take(&io.slots)))		/* what its share left */
		n++;
	atomic_store(&accounts[2].held, n);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 12; k++)
			cr_assert_not(begins(&users[i][k], &accounts[i], CLT_OP_IO));
	}
	/* Fourteen more than the reserve, which is for accounts that hold none, as is the last
	 * one. */
	pass_of(slots, &n, 14 + (unsigned)share_reserve(PERMITS - 1, 3, 1));
	cr_assert_eq(atomic_load(&accounts[0].held), 7u);
	cr_assert_eq(atomic_load(&accounts[1].held), 6u);
	pass_of(slots, &n, 3);
	cr_assert_eq(atomic_load(&accounts[0].held), 8u);
	cr_assert_eq(atomic_load(&accounts[1].held), 8u);
	pass_of(slots, &n, 3);
	cr_assert_eq(atomic_load(&accounts[0].held), 10u);
	cr_assert_eq(atomic_load(&accounts[1].held), 8u);
	while (n)
		pass_of(slots, &n, 1);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 12; k++) {
			cr_assert(asks(&users[i][k]));
			ends(&users[i][k]);
		}
	}
	world_end(3);
}

/* ---- what lets those that wait go on ---- */

/* The account that stays may hold more when the others have gone. */
Test(clt_account, others_close)
{
	static struct clt_slot *slots[8];
	struct user u;
	unsigned n;

	world(4, 2);
	n = fill(&accounts[0], slots);
	cr_assert_eq(n, 2u);
	cr_assert_not(begins(&u, &accounts[0], CLT_OP_IO));
	clt_account_close(&accounts[1]);
	cr_assert(asks(&u));
	ends(&u);
	give_back(&accounts[0], slots, n);
	world_end(1);
}

/* A path that came back lets so many permits be used, and fewer before. */
Test(clt_account, limit_changes)
{
	static struct clt_slot *slots[PERMITS];
	struct user u;
	unsigned n;

	world(PERMITS, 2);
	n = fill(&accounts[0], slots);
	clt_slot_limit(&io, 64);
	cr_assert_eq(clt_slot_nfree(&io.slots), 0u);
	cr_assert_not(begins(&u, &accounts[1], CLT_OP_IO));
	while (!u.slot && n) {
		give_back(&accounts[0], &slots[--n], 1);
		asks(&u);
	}
	cr_assert(u.slot && u.slot->id < 64);
	cr_assert_eq(atomic_load(&io.slots.ntaken), 63u);
	clt_slot_limit(&io, PERMITS);
	cr_assert_eq(clt_slot_nfree(&io.slots), PERMITS - 1 - 63);
	ends(&u);
	give_back(&accounts[0], slots, n);
	world_end(2);
}
