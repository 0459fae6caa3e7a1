/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a queue of a block device of ublk. */
#include "fsm-rules.h"
#include "ublk-queue.h"

Test(ublk_fsm, rules)
{
	fsm_rules(&ublk_queue_fsm);
}

/* The number of the state or event @name of @names. */
static unsigned find(const char *const *names, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	cr_assert_fail("no %s", name);
	return 0;
}

Test(ublk_fsm, a_queue_that_leaves_serves_no_more)
{
	const struct fsm *f = &ublk_queue_fsm;
	unsigned all = (1u << f->nevents) - 1, begin = find(f->events, f->nevents, "begin");

	cr_assert_eq(fsm_reach(f, UBLK_QUEUE_LEAVES, all & ~(1u << begin)),
		     1u << UBLK_QUEUE_LEAVES | 1u << UBLK_QUEUE_IDLE);
}
