/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of a pool: how much a user of the pool may hold at a time, so that something is free
 * for users who hold little.
 *
 * RESERVE.  An eighth of the pool is for the first item of each user.  So as many users as the
 * eighth has items get one at once, in whatever order they come and however long others keep
 * theirs.  The only user of a pool leaves the reserve, and no more, to those who come later.
 *
 * THRESHOLD.  Of the rest a user may hold at most SHARE_OF_FREE times of what is free afterwards
 * (dynamic thresholds, as in switches whose ports share a buffer).  The share follows the
 * demand: with S = SHARE_OF_FREE and n users who want all, each one gets S / (nS + 1) of the
 * rest, and 1 / (nS + 1) stays free.  A user beside idle ones may hold eight ninths of it.  A
 * user who comes gets some of the free part at once, and the full share as others give back:
 * users beyond their share get nothing until then.  With S = 1 a user beside idle ones would
 * have half of the depth that slow storage needs; a larger S leaves less for a burst of the next
 * user.
 *
 * One without the other does not do: users who come one after the other, and keep what they get,
 * make the free part a ninth of a ninth; and a reserve alone lets users who keep their items for
 * long have all the rest for ever.
 *
 * Pure. */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "util.h"

#define SHARE_OF_FREE 8u
#define SHARE_RESERVE 8u		/* of so many items of the pool one is for first items */

/* What is left of the reserve of a pool of @size, for first items of @first each, when @nholders
 * have theirs. */
static inline uint64_t share_reserve(uint64_t size, uint64_t nholders, uint64_t first)
{
	uint64_t all = size / SHARE_RESERVE;

	return nholders < all / first ? all - nholders * first : 0;
}

/* May a user who holds @held take @want more of the @nfree that are free, of which @reserve are
 * share_reserve()? */
static inline bool share_may_take(uint64_t held, uint64_t want, uint64_t nfree, uint64_t reserve)
{
	if (want > nfree)
		return false;
	if (!held)
		return true;
	return nfree - want > reserve && held + want <= SHARE_OF_FREE * (nfree - want - reserve);
}

/* The same for the only user of the pool. */
static inline bool share_may_take_alone(uint64_t held, uint64_t want, uint64_t nfree,
					uint64_t reserve)
{
	return want <= nfree && (!held || nfree - want >= reserve);
}

#endif
