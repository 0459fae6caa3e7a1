/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of what is asked of a device: each request once, as its user sees it, however many the
 * server gets for it, from the call to its end.
 *
 * A thread counts in the shard that clt_wait_hint() names, which few other threads have, and each
 * on cache lines of its own.  The service thread reads them where they are, so it may miss requests
 * that are being counted.  A reset remembers what was there and takes it away from what is read
 * later. */
#ifndef DEV_STAT_H
#define DEV_STAT_H

#include "io-stat.h"

struct dev;

#define DEV_STAT_SHARDS 16

struct dev_stat_count {
	struct counter bytes, errors;	/* @bytes of those without an error */
	struct hist latency;		/* also: how many */
};

struct dev_stat_shard {			/* all 0: nothing was counted */
	_Alignas(64) struct dev_stat_count op[IO_STAT_NOPS];
	struct hist queued;		/* of what is sent: times that it waited for
					 * (clt_op.waited_ns) */
};

struct dev_stat {
	struct io_stat io;
	struct hist queued;
};

/* Count a request for @bytes that ended with @status after @ns.  @hint: clt_wait_hint().  Any
 * thread. */
static inline void dev_stat_count(struct dev_stat_shard shards[DEV_STAT_SHARDS], unsigned hint,
				  enum io_stat_op op, int status, uint64_t bytes, uint64_t ns)
{
	struct dev_stat_count *c = &shards[hint % DEV_STAT_SHARDS].op[op];

	counter_add_shared(status ? &c->errors : &c->bytes, status ? 1 : bytes);
	hist_count_shared(&c->latency, ns);
}

/* Count that something of a request waited for @ns, unless that is 0.  Any thread. */
static inline void dev_stat_queued(struct dev_stat_shard shards[DEV_STAT_SHARDS], unsigned hint,
				   uint64_t ns)
{
	if (ns)
		hist_count_shared(&shards[hint % DEV_STAT_SHARDS].queued, ns);
}

/* ---- service thread ---- */

/* Write the counters since the last reset into @sum. */
void dev_stat_get(const struct dev *dev, struct dev_stat *sum);
/* Begin to count anew. */
void dev_stat_reset(struct dev *dev);

#endif
