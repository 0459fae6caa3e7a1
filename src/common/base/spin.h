/* SPDX-License-Identifier: BSD-3-Clause */
/* Look again for a while, instead of a sleep and a wake-up, where the answer is about to come.
 *
 * To wake a thread on another CPU takes longer than many an answer.  So whoever waits looks, and
 * yields between looks, for twice as long as answers took lately, and never longer than a limit.
 * Where answers take longer than the limit nobody looks.  Where another process got the CPU for a
 * time slice instead, or several answers in a row came late, nobody looks for a pause, which
 * doubles as long as that goes on, and shrinks slowly when it does not.
 *
 * One struct spin for each place where one thread at a time waits; that thread, or a lock around
 * it.  No call fails, allocates or sleeps. */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct spin {
	unsigned limit_us;		/* 0: never */
	/* private */
	uint64_t mean_ns;		/* how long waits took lately; 0: not known */
	uint64_t begin_ns;		/* of this wait; 0: none */
	uint64_t end_ns;		/* until when to look; 0: not at all */
	uint64_t last_ns;		/* before the last yield */
	uint64_t pause_until_ns;
	uint64_t pause_ns;		/* the next pause */
	unsigned late, found;		/* waits in a row whose looks were in vain, or were not */
};

void spin_init(struct spin *s, unsigned limit_us);
/* spin_begin() and spin_end() for those with a limit, and with a wait. */
bool spin_try(struct spin *s);
void spin_learn(struct spin *s);

/* A wait begins.  True: look, and go on as long as spin_more() says; false: sleep. */
static inline bool spin_begin(struct spin *s)
{
	return s->limit_us && spin_try(s);
}

/* Yields. */
bool spin_more(struct spin *s);
/* The awaited event has come, by polling or after sleep.  Without a wait nothing happens; a wait
 * that ends for another reason is not told of, and forgotten when the next one begins. */
static inline void spin_end(struct spin *s)
{
	if (s->begin_ns)
		spin_learn(s);
}

#endif
