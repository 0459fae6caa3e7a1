/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the IO of a path: each connection has counters, and the path adds these up.
 *
 * A request is counted by the thread of the answer, in memory that no other thread writes.  The
 * time of a request is from arrival to answer; the clock is read once for all requests of a poll
 * and once for all answers of a pass.
 *
 * The control thread reads the counters in place, without a message to any thread: a thread held
 * by the storage would not answer, and just then the counters matter.  So a reader may miss
 * requests that are being counted.  A reset remembers the counts, and later reads subtract the
 * remembered counts.  Control thread. */
#ifndef SRV_STAT_H
#define SRV_STAT_H

#include "io-stat.h"

struct srv_path;

/* Add up in @sum the counts since the last reset. */
void srv_stat_path(const struct srv_path *path, struct io_stat *sum);
/* The requests on @path that are not answered. */
uint64_t srv_stat_inflight(const struct srv_path *path);
/* Count @path from now on from zero.  0 or -ENOMEM. */
int srv_stat_reset_path(struct srv_path *path);

#endif
