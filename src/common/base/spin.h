/* SPDX-License-Identifier: BSD-3-Clause */
/* Poll for a while, instead of a sleep and a wake-up, where the answer is about to come.
 *
 * Waking a thread on another CPU takes longer than many an answer.  So a waiting thread looks, and
 * yields between looks, for twice as long as recent answers took, and never longer than a limit.
 * Where answers take longer than the limit, the thread sleeps at once.
 *
 * The thread pauses looking after a yield that cost a time slice, given to another process, or
 * after several late answers in a row.  The pause doubles as long as such waits go on, and shrinks
 * slowly when looks succeed.
 *
 * A place where a single thread at a time waits has a struct spin, used by that thread or under a
 * lock, but for spin_set_limit().  No call fails, allocates or sleeps. */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct spin {
	atomic_uint limit_us;		/* 0: never */
	/* private */
	uint64_t mean_ns;		/* mean time of recent waits; 0: not known */
	uint64_t begin_ns;		/* start of this wait; 0: no wait */
	uint64_t end_ns;		/* end of looking; 0: do not look */
	uint64_t last_ns;		/* before the last yield */
	uint64_t pause_until_ns;
	uint64_t pause_ns;		/* the next pause */
	unsigned late, found;		/* waits in a row without, with success */
};

/* Initialise @s, which looks for @limit_us at most; 0: never. */
void spin_init(struct spin *s, unsigned limit_us);
/* Have @s look for @limit_us at most, from the next wait on; 0: never.  Any thread. */
static inline void spin_set_limit(struct spin *s, unsigned limit_us)
{
	atomic_store_explicit(&s->limit_us, limit_us, memory_order_relaxed);
}
static inline unsigned spin_limit(struct spin *s)
{
	return atomic_load_explicit(&s->limit_us, memory_order_relaxed);
}
/* spin_begin(), if @s has a limit. */
bool spin_try(struct spin *s);
/* spin_end(), if a wait has begun. */
void spin_learn(struct spin *s);

/* A wait begins.  True: look, and look again while spin_more() returns true.  False: sleep. */
static inline bool spin_begin(struct spin *s)
{
	return spin_limit(s) && spin_try(s);
}

/* Yield the CPU.  True: look again.  False: sleep. */
bool spin_more(struct spin *s);
/* The awaited event has come, by polling or after sleep.  Without a wait nothing happens.  Do not
 * call for a wait that ends for another reason: the next spin_begin() discards that wait. */
static inline void spin_end(struct spin *s)
{
	if (s->begin_ns)
		spin_learn(s);
}

#endif
