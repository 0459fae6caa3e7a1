/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the requests to a device.  A request counts once, from the user's call to its end,
 * however many requests the server gets.
 *
 * A thread counts in the shard of its clt_io_hint(), which few other threads share; each shard
 * has cache lines of its own.  The service thread reads the shards in place, and may miss requests
 * that are being counted.  A reset keeps the present counts and subtracts them from later
 * results. */
#ifndef DEV_STAT_H
#define DEV_STAT_H

#include "counter.h"

struct client;
struct dev;

#define DEV_STAT_SHARDS 16

/* A shard, or their sum; all 0: no request was counted. */
struct dev_stat {
	_Alignas(64) struct io_stat io;	/* .count in sums alone: a shard's is the total of
					 * .latency */
	struct hist queued;		/* waiting times of requests before they were sent
					 * (clt_op.waited_ns) */
};

/* Count a request for @bytes that ended with @status after @ns.  @hint: clt_io_hint().  Any
 * thread. */
static inline void dev_stat_count(struct dev_stat shards[DEV_STAT_SHARDS], unsigned hint,
				  enum io_stat_op op, int status, uint64_t bytes, uint64_t ns)
{
	struct io_stat_count *c = &shards[hint % DEV_STAT_SHARDS].io.op[op];

	counter_add_shared(status ? &c->errors : &c->bytes, status ? 1 : bytes);
	hist_count_shared(&c->latency, ns);
}

/* Count that a request waited for @ns, unless @ns is 0.  Any thread. */
static inline void dev_stat_queued(struct dev_stat shards[DEV_STAT_SHARDS], unsigned hint,
				   uint64_t ns)
{
	if (ns)
		hist_count_shared(&shards[hint % DEV_STAT_SHARDS].queued, ns);
}

/* ---- service thread ---- */

/* Write the counters since @dev was opened into @sum; resets change nothing. */
void dev_stat_ever(const struct dev *dev, struct dev_stat *sum);
/* Write the counters since the last reset into @sum. */
void dev_stat_get(const struct dev *dev, struct dev_stat *sum);
/* Begin to count again. */
void dev_stat_reset(struct dev *dev);

/* Look at the requests that have not ended, of users and of the client itself.  Returns the age of
 * the oldest of the session; dev_stat_oldest_ns() has the oldest of each device.  0: there is none.
 * The age counts from the time when the user asked, across lost paths. */
uint64_t dev_stat_ages(struct client *clt);
/* What dev_stat_ages() has found for @dev. */
uint64_t dev_stat_oldest_ns(const struct dev *dev);

#endif
