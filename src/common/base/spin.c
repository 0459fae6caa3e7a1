/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <string.h>

#include "clock.h"
#include "spin.h"
#include "util.h"

#define WEIGHT 8			/* of the past, against the last wait */
#define LATE_MAX 4			/* late answers, before a pause */
#define FOUND_MIN 64			/* answers in time, before pauses become shorter */
/* A yield that takes so long gave a time slice to another process.  A thread that is about to
 * answer needs less. */
#define SLICE_NS 500000
#define PAUSE_MIN_NS 5000000
#define PAUSE_MAX_NS 640000000

void spin_init(struct spin *s, unsigned limit_us)
{
	memset(s, 0, sizeof(*s));
	spin_set_limit(s, limit_us);
	s->pause_ns = PAUSE_MIN_NS;
}

static void spin_pause(struct spin *s, uint64_t now)
{
	s->pause_until_ns = now + s->pause_ns;
	s->pause_ns = MIN(2 * s->pause_ns, (uint64_t)PAUSE_MAX_NS);
	s->late = s->found = 0;
}

bool spin_try(struct spin *s)
{
	uint64_t limit = spin_limit(s) * UINT64_C(1000), now = clock_now_ns();

	s->begin_ns = s->last_ns = now;
	s->end_ns = 0;
	if (s->mean_ns > limit || now < s->pause_until_ns)
		return false;
	s->end_ns = now + (s->mean_ns ? MIN(2 * s->mean_ns, limit) : limit);
	return true;
}

bool spin_more(struct spin *s)
{
	uint64_t now;

	sched_yield();
	now = clock_now_ns();
	if (now - s->last_ns >= SLICE_NS) {
		spin_pause(s, now);
		return false;
	}
	s->last_ns = now;
	if (now < s->end_ns)
		return true;
	s->found = 0;
	if (++s->late == LATE_MAX)
		spin_pause(s, now);
	return false;
}

void spin_learn(struct spin *s)
{
	uint64_t took = clock_now_ns() - s->begin_ns;

	/* A wait that took a second tells nothing of the next wait. */
	took = MIN(took, spin_limit(s) * UINT64_C(4000));
	s->mean_ns = s->mean_ns ? (s->mean_ns * (WEIGHT - 1) + took) / WEIGHT : took;
	if (s->end_ns && s->begin_ns + took < s->end_ns) {
		s->late = 0;
		if (++s->found % FOUND_MIN == 0)
			s->pause_ns = MAX(s->pause_ns / 2, (uint64_t)PAUSE_MIN_NS);
	}
	s->begin_ns = 0;
}
