/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of IOs, and the state of a load with them.  Times are counted in buckets with a
 * width of 1/64 of the value.  Finer than counter.h, and for a single thread with a few
 * histograms. */
#ifndef LAT_H
#define LAT_H

#include <stddef.h>
#include <stdint.h>

struct load;

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

/* ---- a look ----
 * The state of a load, with rates since the previous look, and the line of text with this
 * state. */

#define LOOK_UNKNOWN UINT64_MAX
#define LOOK_TEXT_MAX 80

enum look_phase { LOOK_RUNS, LOOK_READS_BACK, LOOK_ENDS };

struct look {
	enum look_phase phase;
	uint64_t left_s;		/* LOOK_RUNS: at this rate, or LOOK_UNKNOWN */
	unsigned percent;		/* LOOK_READS_BACK: of the blocks */
	unsigned inflight;
	uint64_t iops;
	uint64_t p99_ns;		/* 0: no IO has ended */
};

/* The previous look. */
struct look_back {
	uint64_t at_ns, ended;
	struct lat all;			/* of all IOs that had ended */
	struct lat since;		/* of IOs that have ended since: too large for a stack */
};

/* Look at @l, which has run since l->began_ns, at @now_ns.  @back is all 0 at the first look, and
 * kept between looks.  The thread of @l. */
void lat_look(struct look *now, struct look_back *back, const struct load *l, uint64_t now_ns);
/* Write @now as "7 s left, 44864 IOPS, p99 7274 us".  Any thread.  Returns @buf. */
const char *lat_look_text(const struct look *now, char buf[LOOK_TEXT_MAX]);

#endif
