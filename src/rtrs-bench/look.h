/* SPDX-License-Identifier: BSD-3-Clause */
/* A look: the state of a load, with rates since the previous look, and the line of text with this
 * state. */
#ifndef LOOK_H
#define LOOK_H

#include <stddef.h>
#include <stdint.h>

#include "lat.h"

struct load;

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
void look_take(struct look *now, struct look_back *back, const struct load *l, uint64_t now_ns);
/* Write @now as "7 s left, 44864 IOPS, p99 7274 us".  Any thread.  Returns @buf. */
const char *look_text(const struct look *now, char buf[LOOK_TEXT_MAX]);

#endif
