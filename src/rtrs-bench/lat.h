/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of IOs, counted in buckets that are 1/64 of their value wide: finer than hist.h, for one
 * thread that keeps a few of them. */
#ifndef LAT_H
#define LAT_H

#include <stdint.h>

#define LAT_SUB 64			/* buckets of a power of two; all below that have one
					 * each */
#define LAT_BUCKETS (LAT_SUB * 42)	/* the last: a day and more */

struct lat {				/* all 0: empty */
	uint64_t n[LAT_BUCKETS];
	uint64_t count, sum_ns, max_ns;
};

void lat_count(struct lat *l, uint64_t ns);
/* The time that @permille of 1000 are not above; 0: empty. */
uint64_t lat_quantile(const struct lat *l, unsigned permille);
uint64_t lat_mean(const struct lat *l);
/* Add @l to @sum, or take it away again, and leave @sum->max_ns an upper limit. */
void lat_add(struct lat *sum, const struct lat *l);
void lat_sub(struct lat *sum, const struct lat *l);
/* "812.5 us": in us, ms or s, at most 4 digits in front of the point but in s.  Returns @buf. */
#define LAT_TEXT_MAX 32
const char *lat_text(uint64_t ns, char buf[LAT_TEXT_MAX]);

#endif
