/* SPDX-License-Identifier: BSD-3-Clause */
/* The only reader of time.  A program links clock.c; the simulation links its own and so owns
 * time.  Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

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

#endif
