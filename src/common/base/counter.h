/* SPDX-License-Identifier: BSD-3-Clause */
/* A number that one thread makes grow and any thread may read: on the writer's side no lock, no
 * atomic read-modify-write, and no cache line that another thread writes. */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

struct counter {
	_Atomic(uint64_t) value;
};

/* Any thread. */
static inline uint64_t counter_get(const struct counter *c)
{
	return atomic_load_explicit(&c->value, memory_order_relaxed);
}

/* The one thread that writes @c. */
static inline void counter_add(struct counter *c, uint64_t n)
{
	atomic_store_explicit(&c->value, counter_get(c) + n, memory_order_relaxed);
}

/* Where other threads may write @c, too, though they seldom do. */
static inline void counter_add_shared(struct counter *c, uint64_t n)
{
	atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

#endif
