/* SPDX-License-Identifier: BSD-3-Clause */
/* Time and chance: what a program cannot know by itself.  A program links clock.c and random.c.
 * The simulation links its own and so owns time, and has chance from a seed; a test may have a time
 * of its own.  Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Monotonic milliseconds since some start; never goes back. */
uint64_t clock_now_ms(void);
/* The same in nanoseconds. */
uint64_t clock_now_ns(void);

#define CLOCK_NEVER UINT64_MAX

/* Nanoseconds of the machine's own clock, in the simulation, too.  For a measurement that decides
 * nothing. */
static inline uint64_t clock_measure_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The machine's own monotonic clock in @ms, for pthread_cond_clockwait() and sem_clockwait(). */
static inline struct timespec clock_in_ms(unsigned ms)
{
	uint64_t ns = clock_measure_ns() + ms * UINT64_C(1000000);

	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* ---- chance ---- */

/* Fill @buf with unpredictable bytes, at most 256, for uuids and jitter. */
void random_bytes(void *buf, size_t len);

/* Numbers that only look like chance.  SplitMix64: the next number of a row that @state, any value,
 * begins.  The same state leads to the same row; states that differ little lead to rows without a
 * resemblance. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#endif
