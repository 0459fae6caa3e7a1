/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out plans.  The start is the first plan that is applied.
 *
 * A plan is applied in two halves.  apply_prepare() does all that can fail for a single step and
 * that nobody sees yet: it opens what is added.  apply_commit() makes all of it hold.  A plan with
 * one step that cannot be prepared changes nothing: its caller ends, at the start, or goes on as
 * before.
 *
 * A server that runs changes options; it refuses to add and to remove exports until the store can
 * do that beside IO.  Main thread. */
#ifndef APPLY_H
#define APPLY_H

#include "exports.h"
#include "plan.h"

struct apply {
	struct exports *exports;	/* the caller's */
	bool runs;			/* a plan was committed */
};

void apply_init(struct apply *a, struct exports *exports);
/* Open what @plan adds.  0, or -errno with one line in @err that names the step; before the first
 * commit the exports that were opened stay with @exports, and exports_fini() closes them. */
int apply_prepare(struct apply *a, const struct plan *plan, char *err, size_t len);
/* Make @plan, which is prepared, hold as @wanted says.  The first one uses the state directory,
 * locks and claims what was opened, and may wait for it; then it may fail: -errno with one line in
 * @err.  A later one does not. */
int apply_commit(struct apply *a, const struct plan *plan, const struct srv_conf *wanted, char *err,
		 size_t len);
/* The exports are served no more.  After the rings were detached, and if nothing was committed. */
void apply_fini(struct apply *a);

#endif
