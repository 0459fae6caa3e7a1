/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of a block device of ublk: what belongs to whom when it ends. */
#include "fsm-rules.h"
#include "ublk-dev.h"
#include "ublk-queue.h"

Test(ublk_fsm, rules)
{
	fsm_rules(&ublk_dev_fsm);
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

static int disk_next(const char *state, const char *event)
{
	const struct fsm *f = &ublk_dev_fsm;
	int next = fsm_next(f, find(f->states, f->nstates, state),
			    find(f->events, f->nevents, event));

	return next;
}

/* A disk that has users, or may have, is left to the next process; a new one never. */
Test(ublk_fsm, only_a_new_disk_is_deleted)
{
	cr_assert_eq(disk_next("claimed", "delete"), -1);
	cr_assert_eq(disk_next("live", "delete"), -1);
	cr_assert_eq(disk_next("lost", "delete"), -1);
	cr_assert_eq(disk_next("added", "leave"), -1);
}

Test(ublk_fsm, a_queue_that_leaves_serves_no_more)
{
	const struct fsm *f = &ublk_queue_fsm;
	unsigned all = (1u << f->nevents) - 1, begin = find(f->events, f->nevents, "begin");

	cr_assert_eq(fsm_reach(f, UBLK_QUEUE_LEAVES, all & ~(1u << begin)),
		     1u << UBLK_QUEUE_LEAVES | 1u << UBLK_QUEUE_IDLE);
}
