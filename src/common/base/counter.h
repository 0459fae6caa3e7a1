/* SPDX-License-Identifier: BSD-3-Clause */
/* A counter is a number that a single thread increases and any thread reads.  The writer takes no
 * lock, runs no atomic read-modify-write, and shares no cache line with another writer. */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

struct counter {
	_Atomic(uint64_t) value;
};

/* The value now.  Any thread. */
static inline uint64_t counter_get(const struct counter *c)
{
	return atomic_load_explicit(&c->value, memory_order_relaxed);
}

/* Add @n.  Only the thread that owns @c. */
static inline void counter_add(struct counter *c, uint64_t n)
{
	atomic_store_explicit(&c->value, counter_get(c) + n, memory_order_relaxed);
}

/* Add @n, if other threads may write @c, too, though seldom.  Any thread. */
static inline void counter_add_shared(struct counter *c, uint64_t n)
{
	atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

#endif
