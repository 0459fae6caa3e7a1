/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of IOs, counted in buckets with a width of 1/64 of the value.  Finer than hist.h, and for a
 * single thread with a few histograms. */
#ifndef LAT_H
#define LAT_H

#include <stdint.h>

#define LAT_SUB 64			/* buckets of a power of two; each value below LAT_SUB has a
					 * bucket */
#define LAT_BUCKETS (LAT_SUB * 42)	/* the last: a day and more */

struct lat {				/* all 0: empty */
	uint64_t n[LAT_BUCKETS];
	uint64_t count, sum_ns, max_ns;
};

/* Count an IO that took @ns. */
void lat_count(struct lat *l, uint64_t ns);
/* The time in which @permille of 1000 IOs ended, with the precision of a bucket; 0: empty. */
uint64_t lat_quantile(const struct lat *l, unsigned permille);
/* The exact mean; 0: empty. */
uint64_t lat_mean(const struct lat *l);
/* Add @l to @sum. */
void lat_add(struct lat *sum, const struct lat *l);
/* Subtract @l, which was added before, from @sum.  @sum->max_ns stays, an upper limit. */
void lat_sub(struct lat *sum, const struct lat *l);
#define LAT_TEXT_MAX 32
/* Write @ns as "812.5 us": in us, ms or s, with up to 4 digits in front of the point (s: more).
 * Returns @buf. */
const char *lat_text(uint64_t ns, char buf[LAT_TEXT_MAX]);

#endif
